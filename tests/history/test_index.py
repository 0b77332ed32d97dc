"""History index: memory holds the last rebalances, within its limits, and always those that run."""

import tracemalloc

import pytest
from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.encoding import decode, encode
from history.entries import (
    GroupDeletedEntry,
    GroupLoadedEntry,
    MemberAddedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
)
from history.entry_values import (
    JoinedMember,
    MemberWait,
    PartitionMove,
)
from history.index import HistoryIndex, IndexLimits, bytes_of


def ended(group_id: str, generation: int) -> RebalanceEndedEntry:
    return RebalanceEndedEntry(
        group_id,
        generation,
        Rebalance(
            Cause.MEMBER_LEFT,
            0,
            end=End.STABLE,
            generation_before=generation - 1,
            generation_after=generation,
        ),
    )


def generations(index: HistoryIndex, group_id: str) -> list[int | None]:
    return [rebalance.generation_after for rebalance in index.rebalances(group_id)]


def test_the_newest_comes_first_and_the_oldest_goes() -> None:
    index = HistoryIndex(IndexLimits(rebalances_per_group=3))
    for generation in range(1, 6):
        index.apply(ended("g", generation))
        index.check()
    assert generations(index, "g") == [5, 4, 3]
    assert index.kept == 3


def test_groups_that_were_touched_long_ago_go_first_but_not_what_runs() -> None:
    index = HistoryIndex(IndexLimits(rebalances_per_group=10, rebalances=4))
    index.apply(ended("old", 1))
    index.apply(RebalanceBegunEntry("old", 5, generation=1))
    for generation in (1, 2):
        index.apply(ended("middle", generation))
        index.apply(ended("new", generation))
    index.check()
    assert [rebalance.end for rebalance in index.rebalances("old")] == [End.RUNNING]
    assert generations(index, "middle") == [2, 1]
    for generation in (3, 4, 5, 6):
        index.apply(ended("new", generation))
    assert generations(index, "middle") == []
    assert generations(index, "new") == [6, 5, 4, 3]
    assert index.running("old") is not None


def test_what_is_no_rebalance_takes_no_place() -> None:
    index = HistoryIndex(IndexLimits())
    index.apply(MemberAddedEntry("g", 0))
    index.apply(GroupDeletedEntry("h", 0))
    assert list(index.groups()) == []
    assert index.rebalances("g") == []
    assert index.running("g") is None


def test_a_story_that_begins_in_the_middle() -> None:
    """Retention, or the reading of a tail, may have taken the beginning."""
    index = HistoryIndex(IndexLimits())
    index.apply(GroupLoadedEntry("g", 3, generation=7, members=2))
    index.apply(ended("g", 8))
    assert generations(index, "g") == [8, 7]


def test_another_one_is_taken_over() -> None:
    index = HistoryIndex(IndexLimits(rebalances_per_group=2))
    index.apply(ended("g", 8))
    other = index.without_stories()
    for generation in (3, 4, 5):
        other.apply(ended("h", generation))
    index.take_over(other)
    index.check()
    assert index.rebalances("g") == []
    assert generations(index, "h") == [5, 4]


def large(group_id: str, generation: int, members: int) -> RebalanceEndedEntry:
    identities = [
        MemberIdentity(
            f"consumer-{n}-0b5d7f3e-1111-2222-3333-{n:012}", None, f"consumer-{n}", "/10.0.0.7"
        )
        for n in range(members)
    ]
    waits = tuple(MemberWait(member, 100, WaitEnd.REJOINED) for member in identities)
    joined = tuple(JoinedMember(member, 100) for member in identities)
    event = ended(group_id, generation)
    return replace(event, rebalance=replace(event.rebalance, waited_for=waits, joined=joined))


def test_memory_is_bounded_in_bytes_however_large_the_groups_are() -> None:
    limit = 1 << 20
    index = HistoryIndex(IndexLimits(rebalances_per_group=20, memory_bytes=limit))
    for generation in range(1, 40):
        for group in range(30):
            index.apply(large(f"g{group}", generation, members=10 * (group % 4)))
        index.check()
        assert index.kept_bytes <= limit
    assert index.kept_bytes > limit // 2
    assert generations(index, "g29")[0] == 39  # the newest is there
    assert len(generations(index, "g0")) < 20


def test_one_that_is_larger_than_the_limit_is_not_kept() -> None:
    index = HistoryIndex(IndexLimits(memory_bytes=10_000))
    index.apply(large("g", 1, members=200))
    assert (index.kept, index.kept_bytes) == (0, 0)
    index.apply(ended("g", 2))
    assert generations(index, "g") == [2]


@pytest.mark.parametrize("members", [2, 20, 200])
def test_the_estimate_is_near_the_truth(members: int) -> None:
    """As read back from the topic, where no text is shared with the group."""
    value = encode(large("g", 1, members))[1]
    decode(value)  # what is made once is made
    count = 50
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [decode(value) for _ in range(count)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(kept[0], RebalanceEndedEntry)
    assert bytes_of(kept[0].rebalance) == pytest.approx((after - before) / count, rel=0.4)


def test_moves_and_those_that_went_together_count() -> None:
    plain = ended("g", 1).rebalance
    moved = replace(plain, moves=tuple(PartitionMove("t", n, "a", "b") for n in range(20)))
    together = replace(plain, with_trigger=(MemberIdentity("m-1"), MemberIdentity("m-2")))
    assert bytes_of(moved) > bytes_of(plain) + 20 * 200
    assert bytes_of(together) > bytes_of(plain) + 2 * 200
