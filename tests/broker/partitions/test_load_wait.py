"""Requests while partitions load: which wait, when they are asked for, and what is next."""

import asyncio

import pytest

from broker.partitions import load_wait
from broker.partitions.load_wait import LoadWait
from broker.partitions.loading import SLICE_RECORDS
from protocol.messages import Request
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.names import GroupId
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Corrupt
from tests.broker.partitions.test_ownership import Node
from tests.broker.shell import WAIT_S


class Clients:
    """A node whose load has begun: partition 0 is being read, the others are queued."""

    def __init__(self, records: list[int]) -> None:
        self.node = Node(records)
        self.asked: list[tuple[str, list[int]]] = []  # of whom, and what was served then
        self.bugs: list[Exception] = []
        self.fault: Exception | None = None
        self.waiting = LoadWait(
            self.node.ownership,
            lambda group_id: int(group_id[-1]),  # the partition of "group-3" is 3
            self.node.clock,
            lambda _token, error: self.bugs.append(error),
        )

    async def begin(self) -> "asyncio.Future[None]":
        first = self.node.coordinator.on_slice = asyncio.Event()
        electing = asyncio.ensure_future(self.node.elect())
        await asyncio.wait_for(first.wait(), WAIT_S)
        return electing

    def send(self, request: Request) -> bool:
        """Whether it waits."""
        return self.waiting.takes(request, ReplyToken(8, "a-client", "/127.0.0.1"), self.handle)

    def handle(self, request: Request, _token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, OffsetFetchRequest)
        (group,) = request.groups
        self.asked.append((group.group_id, self.node.coordinator.finished()))
        if self.fault is not None:
            raise self.fault


def fetch(*group_ids: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GroupId(name)) for name in group_ids])


async def test_a_fetch_waits_for_its_partition_which_is_next() -> None:
    clients = Clients([SLICE_RECORDS * 9, 1, 1, 1])
    electing = await clients.begin()
    assert clients.send(fetch("group-3"))
    assert clients.send(fetch("group-2"))
    assert clients.send(fetch("another-3"))
    await electing
    assert clients.asked == [
        ("group-3", [0, 3]),
        ("another-3", [0, 3]),
        ("group-2", [0, 3, 2]),
    ]
    assert not clients.send(fetch("group-3"))  # it is served now


async def test_a_write_and_a_request_over_several_groups_do_not_wait() -> None:
    clients = Clients([SLICE_RECORDS * 9, 1, 1, 1])
    electing = await clients.begin()
    assert not clients.send(OffsetCommitRequest(GroupId("group-3")))
    assert not clients.send(fetch("group-2", "group-1"))
    await electing
    assert clients.node.coordinator.finished() == [0, 3, 2, 1]
    assert clients.asked == []


async def test_who_waited_too_long_is_asked_for_before_the_load_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_wait, "HOLD_S", 0)
    clients = Clients([SLICE_RECORDS * 200, 1])
    electing = await clients.begin()
    assert clients.send(fetch("group-1"))
    await electing
    assert clients.asked == [("group-1", [])]  # the handler refuses it, as in Kafka


async def test_who_waits_for_a_partition_that_cannot_be_read_is_asked_for() -> None:
    clients = Clients([SLICE_RECORDS * 9, 3])
    clients.node.logs.logs[1].damage = Corrupt("a.log", 61, "the checksum does not match")
    electing = await clients.begin()
    assert clients.send(fetch("group-1"))
    await electing
    assert clients.asked == [("group-1", [0])]


async def test_a_bug_in_a_handler_neither_ends_the_load_nor_the_other_requests() -> None:
    clients = Clients([SLICE_RECORDS * 9, 1])
    clients.fault = ZeroDivisionError("a bug of ours")
    electing = await clients.begin()
    assert clients.send(fetch("group-1"))
    assert clients.send(fetch("another-1"))
    await electing
    assert [name for name, _ in clients.asked] == ["group-1", "another-1"]
    assert clients.bugs == [clients.fault, clients.fault]
    assert clients.node.coordinator.finished() == [0, 1]
