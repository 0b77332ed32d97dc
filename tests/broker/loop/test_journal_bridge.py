"""Journal bridge: what a flush stored reaches shards and readers in one pass of the loop."""

import asyncio
import os
from threading import Thread

import pytest

from broker.loop.clock import SystemClock
from broker.loop.journal_bridge import JournalBridge
from broker.observe.stats import LoopStalls
from protocol.names import OFFSETS_TOPIC
from seams.now import Now
from storage.api import Position, TopicPartition

SHARD, USER = TopicPartition(OFFSETS_TOPIC, 7), TopicPartition("orders", 0)


class Listener:
    """The parts behind the bridge: records who is called, in which order."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.unread: set[TopicPartition] = set()

    def on_stored(self, partition: int, position: Position, now: Now) -> None:
        self.calls.append(("shard", partition, position))

    def is_awaited(self, topic_partition: TopicPartition) -> bool:
        return topic_partition not in self.unread

    def advanced(self, topic_partition: TopicPartition, now: Now) -> None:
        self.calls.append(("reader", topic_partition))


def bridge_to(listener: Listener, loop: asyncio.AbstractEventLoop) -> JournalBridge:
    bridge = JournalBridge(loop)
    bridge.clock, bridge.stalls = SystemClock(), LoopStalls()
    bridge.shards, bridge.readers = {SHARD.topic: listener}, listener
    bridge.on_flush = (lambda: listener.calls.append("flushed"),)
    bridge.on_failed = listener.calls.append
    bridge.on_reopened = lambda: listener.calls.append("reopened")
    return bridge


async def test_a_flush_reaches_shards_then_readers_then_what_follows_a_flush() -> None:
    listener = Listener()
    bridge = bridge_to(listener, asyncio.get_running_loop())

    flusher = Thread(target=bridge.stored, args=([(SHARD, 5), (USER, 9)], 0.002))
    flusher.start()
    flusher.join()
    assert listener.calls == []  # nothing runs in the flusher's thread
    await asyncio.sleep(0)

    assert listener.calls == [
        ("shard", 7, 5),
        ("reader", SHARD),
        ("reader", USER),
        "flushed",
    ]
    assert (bridge.flushes, bridge.flush_seconds.total, bridge.flush_partitions.total) == (
        1,
        0.002,
        2,
    )


async def test_readers_hear_of_logs_alone_that_a_fetch_waits_for() -> None:
    listener = Listener()
    listener.unread = {SHARD}
    bridge = bridge_to(listener, asyncio.get_running_loop())

    bridge.stored([(SHARD, 5), (USER, 9)], 0.002)
    await asyncio.sleep(0)

    assert listener.calls == [("shard", 7, 5), ("reader", USER), "flushed"]


async def test_what_the_flusher_reported_earlier_comes_before_what_the_group_writer_stored() -> (
    None
):
    listener = Listener()
    bridge = bridge_to(listener, asyncio.get_running_loop())
    report = bridge.open_report(lambda stored: stored([(SHARD, 7)], 0.001))

    bridge.stored([(SHARD, 5)], 0.002)
    os.eventfd_write(report, 1)
    bridge._reported()  # before the loop runs the call that the flusher has scheduled

    in_order = [("shard", 7, 5), ("reader", SHARD), "flushed"]
    in_order += [("shard", 7, 7), ("reader", SHARD), "flushed"]
    assert listener.calls == in_order
    await asyncio.sleep(0)
    assert len(listener.calls) == 6
    bridge.close_report()


async def test_a_report_is_polled_until_it_is_closed() -> None:
    listener, loop = Listener(), asyncio.get_running_loop()
    bridge = bridge_to(listener, loop)
    collected = asyncio.Event()
    report = bridge.open_report(lambda _: collected.set())

    os.eventfd_write(report, 1)
    await collected.wait()

    assert listener.calls == []  # nothing was stored
    with pytest.raises(BlockingIOError):
        os.eventfd_read(report)
    bridge.close_report()
    bridge.close_report()
    assert not loop.remove_reader(report)


async def test_a_failure_and_a_reopening_come_in_order() -> None:
    listener = Listener()
    bridge = bridge_to(listener, asyncio.get_running_loop())
    failure = OSError(28, "No space left on device")

    bridge.failed(failure)
    bridge.reopened()
    await asyncio.sleep(0)

    assert listener.calls == [failure, "reopened"]


async def test_a_failure_before_the_parts_are_connected_is_delivered_to_them() -> None:
    bridge = JournalBridge(asyncio.get_running_loop())
    failures: list[Exception] = []

    bridge.failed(failure := OSError(28, "No space left on device"))
    bridge.on_failed = failures.append
    await asyncio.sleep(0)

    assert failures == [failure]


def test_after_the_loop_is_closed_nothing_is_delivered() -> None:
    loop = asyncio.new_event_loop()
    listener = Listener()
    bridge = bridge_to(listener, loop)
    loop.close()

    bridge.stored([(SHARD, 5)], 0.001)
    bridge.failed(OSError())
    bridge.reopened()

    assert listener.calls == []
    assert (bridge.flushes, sum(bridge.flush_seconds.counts)) == (0, 0)
