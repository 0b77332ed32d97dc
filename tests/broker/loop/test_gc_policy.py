"""GC policy: the collector leaves old objects alone, and none of ours form a cycle."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.loop.gc_policy import GcPolicy
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.names import ErrorCode
from tests.broker.members import Member, make_topic
from tests.broker.node import Node

OURS = {"broker", "coordinator", "history", "protocol", "purgatory", "storage", "topics"}
OLDEST = 2


class Ring:
    """Which only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collector_of_this_process() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    gc.unfreeze()
    if not was_enabled:
        gc.disable()


@contextmanager
def started() -> Iterator[None]:
    gc_policy = GcPolicy()
    gc_policy.start()
    yield
    gc_policy.stop()
    gc_policy.stop()


def grow() -> int:
    """Memory grows by half, with objects that stay; how often all of it was looked through.

    Python looks when a quarter has come: of what there is after many tests, that is a lot.
    """
    count = 500_000 + len(gc.get_objects()) // 2
    before = gc.get_stats()[OLDEST]["collections"]
    kept = [[number] for number in range(count)]
    assert len(kept) == count
    return gc.get_stats()[OLDEST]["collections"] - before


def test_growing_memory_is_not_examined_again_and_again() -> None:
    gc.collect()
    assert grow() > 0  # what Python does by itself
    thresholds = gc.get_threshold()
    with started():
        assert grow() == 0
    assert gc.get_threshold() == thresholds
    gc.unfreeze()
    gc.collect()
    assert grow() > 0


def test_a_ring_that_dies_young_is_freed() -> None:
    with started():
        ring = Ring()
        is_there = weakref.ref(ring)
        del ring
        rounds = [[number] for number in range(100_000)]
        assert is_there() is None
    assert rounds


async def test_what_is_ours_goes_with_its_last_reference(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        stays = await node.client()
        await make_topic(stays)
        await live(node, "before")  # what is made once, and kept, is made by now
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await live(node, "now")
            gc.collect()
            cycles = {type(item).__module__ for item in gc.garbage}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        assert not {name for name in cycles if name.partition(".")[0] in OURS}


async def live(node: Node, group_id: str) -> None:
    """A group's life, with a member that leaves, one that waits and hangs up, and a deletion."""
    first, second, third = [Member(await node.client(), group_id) for _ in range(3)]
    await first.enter()
    assert await first.commit(7) is ErrorCode.NONE
    await second.get_id()
    second.client.ask(second.join_request())  # parked: the first has not come back
    third.client.send(b"\x00\x00\x00\x04junk")
    await third.client.closed()
    assert await first.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    second.client.close()
    for member in (first, second):
        leave = LeaveGroupRequest(first.group_id, members=[MemberIdentity(member.member_id)])
        left = await first.client.call(leave)
        assert isinstance(left, LeaveGroupResponse)
        assert left.error_code is ErrorCode.NONE
    deleted = await first.client.call(DeleteGroupsRequest([first.group_id]))
    assert isinstance(deleted, DeleteGroupsResponse)
    assert deleted.results[0].error_code is ErrorCode.NONE
    first.client.close()
