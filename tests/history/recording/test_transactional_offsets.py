"""Transactional offsets in the history: what a commit made visible, and what an abort dropped."""

from history.encoding import decode, encode
from history.entries import OffsetsMovedEntry, PendingOffsetsEndedEntry
from history.entry_values import OffsetChange, RequestClient
from history.text.entry_text import format_entry
from tests.coordinator.transaction_givens import P1, TransactionWorld
from tests.history.history_world import HistoryWorld

CLIENT = RequestClient("client", "/127.0.0.1")


class TransactionHistoryWorld(HistoryWorld, TransactionWorld):
    """A world with both."""


def test_a_commit_without_a_member_is_recorded_when_it_becomes_visible() -> None:
    world = TransactionHistoryWorld()
    world.commit("g", offsets={0: 1})
    before = len(world.history)
    world.txn_commit(offsets={0: 5, 1: 6})
    assert len(world.history) == before
    world.mark()
    (moved,) = world.history[before:]
    assert isinstance(moved, OffsetsMovedEntry)
    assert moved.changes == (OffsetChange("t", 0, 1, 5), OffsetChange("t", 1, None, 6))
    assert (moved.producer_id, moved.client) == (P1, CLIENT)


def test_a_members_transactional_commit_is_its_work_and_no_history() -> None:
    world = TransactionHistoryWorld()
    (member_id,) = world.consumers(1)
    before = len(world.recorded.turns)
    generation_id = world.group().generation_id
    world.txn_commit(member_id=member_id, generation_id=generation_id)
    world.mark()
    assert len(world.recorded.turns) == before


def test_an_abort_is_recorded_with_what_it_dropped() -> None:
    world = TransactionHistoryWorld()
    (member_id,) = world.consumers(1)
    generation_id = world.group().generation_id
    before = len(world.history)
    world.txn_commit("g", P1, 3, member_id=member_id, generation_id=generation_id)
    world.mark(P1, 3, commits=False)
    (aborted,) = world.history[before:]
    assert aborted == PendingOffsetsEndedEntry(
        "g", world.now.wall_ms, P1, 3, (OffsetChange("t", 0, None, 1),), CLIENT
    )
    assert decode(encode(aborted)[1]) == aborted
    assert format_entry(aborted) == (
        "of producer 101 by client at 127.0.0.1: 1 offset dropped: t-0 1"
    )


def test_the_marker_and_its_history_are_stored_by_one_flush() -> None:
    world = TransactionHistoryWorld()
    world.txn_commit("a")
    world.txn_commit("b")
    turns = len(world.recorded.turns)
    begun: list[int] = []
    begin = world.recorded.begin

    def noted() -> None:
        begun.append(world.log.end_position)
        begin()

    world.recorded.begin = noted  # type: ignore[method-assign]
    marker_at = world.log.end_position
    world.mark(commits=False)
    assert begun == [marker_at]
    written = [entry.group_id for turn in world.recorded.turns[turns:] for entry in turn]
    assert written == ["a", "b"]
