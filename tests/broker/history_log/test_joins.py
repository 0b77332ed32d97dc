"""Waiting entries: those of one pass of the event loop are appended together, in order."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from broker.history_log.view import HistoryView
from broker.history_log.writer import BATCH_BYTES_MAX, WAITING_PER_BATCH, HistoryLog
from coordinator.classic.events import JoinKind, MemberAdded
from coordinator.classic.group import ClassicGroup
from coordinator.member_identity import MemberIdentity
from history.entries import (
    GroupCreatedEntry,
    HistoryEntry,
    MemberAddedEntry,
    RebalanceEndedEntry,
)
from protocol.names import GroupId, GroupState, MemberId
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.batch.record_batch import iter_batches
from tests.broker.members import Member
from tests.broker.node import Node

G = GroupId("g")
NOW = Now(5, 1_700_000_000_000)


def join(history: HistoryLog, number: int, reason: str = "") -> None:
    """A member joins: a turn that stores nothing but this."""
    group = ClassicGroup(G, 0)
    added = MemberAdded(
        group_id=G,
        at_ms=NOW.wall_ms,
        now_ms=NOW.mono_ms,
        state=GroupState.PREPARING_REBALANCE,
        join_kind=JoinKind.PENDING,
        member=MemberIdentity(MemberId(f"m{number}"), None, "c", "/127.0.0.1"),
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=(),
        session_deadline_ms=1,
        token=ReplyToken(9, "c", "/127.0.0.1"),
        reason=reason,
    )
    history.begin()
    history.record(group, (added,), NOW)
    history.end()


async def entries(node: Node) -> list[HistoryEntry]:
    """Oldest first."""
    assert node.daemon.history is not None
    view = HistoryView(node.daemon.history, node.daemon.coordinator, node.daemon.clock)
    found = await view.events("g", 10_000, (MemberAddedEntry, GroupCreatedEntry))
    return [entry for _, entry in reversed(found)]


def batches(folder: Path) -> list[int]:
    """How many records each has, after a stop."""
    segments = (folder / "data").glob("__group_history-*/*.log")
    (written,) = [written for segment in segments if (written := segment.read_bytes())]
    return [header.records_count for _, header in iter_batches(written)]


async def test_those_of_one_pass_are_one_batch(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        for number in range(3):
            join(history, number)
        assert history.events_written == 0
        await asyncio.sleep(0)
        assert history.events_written == 3
    assert batches(tmp_path) == [3]


async def test_what_follows_them_is_appended_behind_them(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        join(history, 1)
        history.record_entry(GroupCreatedEntry("g", NOW.wall_ms, simple=False), NOW)
        assert history.events_written == 2
        join(history, 2)
    async with Node(tmp_path) as node:  # the stop has written the last one
        assert [type(entry) for entry in await entries(node)] == [
            MemberAddedEntry,
            GroupCreatedEntry,
            MemberAddedEntry,
        ]


async def test_batches_are_bounded_by_members_and_by_bytes(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        for number in range(WAITING_PER_BATCH + 1):
            join(history, number)
        assert history.events_written == WAITING_PER_BATCH
        await asyncio.sleep(0)
        for number in range(4):
            join(history, number, reason="x" * (BATCH_BYTES_MAX // 3))
        await asyncio.sleep(0)
    assert batches(tmp_path) == [WAITING_PER_BATCH, 1, 2, 2]


async def test_with_a_reopened_journal_those_not_stored_have_not_happened(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        join(history, 1)
        history.reopen()
        await asyncio.sleep(0)
        assert await entries(node) == []


async def test_the_end_of_a_rebalance_waits_until_its_last_answer_is_written(
    tmp_path: Path,
) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        later: list[Callable[[], None]] = []
        heard: list[HistoryEntry] = []
        history.call_soon = later.append
        history.subscribe(heard.append)
        await Member(await node.client()).enter()
        assert not [entry for entry in heard if isinstance(entry, RebalanceEndedEntry)]
        for append in later:
            append()
        assert isinstance(heard[-1], RebalanceEndedEntry)


async def test_a_listener_that_fails_costs_the_others_nothing(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        history = node.daemon.history
        assert history is not None
        heard: list[HistoryEntry] = []

        def fail(_: HistoryEntry) -> None:
            raise ZeroDivisionError

        history.subscribe(fail)
        history.subscribe(heard.append)
        join(history, 1)
        join(history, 2)
        history.record_entry(GroupCreatedEntry("g", NOW.wall_ms, simple=False), NOW)
    joined, also_joined, created = heard
    assert isinstance(joined, MemberAddedEntry)
    assert isinstance(also_joined, MemberAddedEntry)
    assert isinstance(created, GroupCreatedEntry)
