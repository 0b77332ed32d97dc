"""Journal bridge: from the journal's flusher thread to the event loop, one call for each flush.

The way back of a request: the flusher reports what it stored (`stored`; what the group writer has
stored the loop learns from a descriptor, and asks the journal), and on the loop the bridge
hands the positions to the coordinator of their topic, whose shards release their answers, and to
the data plane, whose delayed fetches wait for records. What has to follow each flush comes after
that. Once the loop is closed no report arrives, and nothing is lost: what was stored is stored.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Final, Protocol

from broker.loop.clock import SystemClock
from broker.observe.stats import Histogram, LoopStalls
from seams.now import Now
from storage.api import Position, TopicPartition
from storage.journal.flush import OnStored, StoredPositions

FLUSH_BUCKETS_S: Final[tuple[float, ...]] = (
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0,
)  # fmt: skip
PARTITION_BUCKETS: Final[tuple[int, ...]] = (1, 2, 3, 5, 10, 20, 50)


Collect = Callable[[OnStored], None]
"""The `collect` of a journal."""


def _nothing(_report: OnStored) -> None:
    return None


class ShardOwner(Protocol):
    """A coordinator: its shards append to its topic."""

    def on_stored(self, partition: int, position: Position, now: Now) -> None: ...


class LogReaders(Protocol):
    """The data plane: clients read every log."""

    is_awaited: Callable[[TopicPartition], bool]
    """Whether a delayed fetch waits for records of a log: seldom for those of a coordinator."""

    def advanced(self, topic_partition: TopicPartition, now: Now) -> None: ...


class JournalBridge:
    """The attributes without an underscore are set by build.py, before the journal starts."""

    clock: SystemClock
    shards: Mapping[str, ShardOwner]
    """By topic."""
    readers: LogReaders
    stalls: LoopStalls
    on_failed: Callable[[Exception], None]
    on_reopened: Callable[[], None]

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.on_flush: tuple[Callable[[], None], ...] = ()
        """Called on the loop after the positions of a flush are handed over."""
        self.flushes = 0
        self.flush_seconds = Histogram(FLUSH_BUCKETS_S)
        self.flush_partitions = Histogram(PARTITION_BUCKETS)
        self._undelivered: deque[tuple[StoredPositions, float]] = deque()  # in order
        self._report = -1
        self._collect: Collect = _nothing

    def open_report(self, collect: Collect) -> int:
        """The descriptor through which the group writer reports; `collect` passes on what it
        stored."""
        self._collect = collect
        self._report = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loop.add_reader(self._report, self._reported)
        return self._report

    def close_report(self) -> None:
        """Once the journal is closed."""
        if self._report >= 0:
            self._loop.remove_reader(self._report)
            os.close(self._report)
        self._report = -1

    # In the flusher's thread.

    def stored(self, stored: StoredPositions, seconds: float) -> None:
        self._undelivered.append((stored, seconds))
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver_all)

    def failed(self, failure: Exception) -> None:
        # `on_failed` is read on the loop: recovery may meet a full disk before it is set.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self.on_failed(failure))

    def reopened(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.on_reopened)

    # On the loop.

    def _reported(self) -> None:
        try:  # noqa: SIM105 - for each flush; `suppress` is not compiled
            os.eventfd_read(self._report)
        except BlockingIOError:
            pass
        self._collect(self._collected)
        self._deliver_all()

    def _collected(self, stored: StoredPositions, seconds: float) -> None:
        self._undelivered.append((stored, seconds))

    def _deliver_all(self) -> None:
        while self._undelivered:
            self._deliver(*self._undelivered.popleft())

    def _deliver(self, stored: StoredPositions, seconds: float) -> None:
        self.flushes += 1
        self.flush_seconds.add(seconds)
        self.flush_partitions.add(len(stored))
        now = self.clock.now()
        began_s = perf_counter()
        for topic_partition, position in stored:
            owner = self.shards.get(topic_partition.topic)
            if owner is not None:
                owner.on_stored(topic_partition.partition, position, now)
            if self.readers.is_awaited(topic_partition):
                self.readers.advanced(topic_partition, now)
        for follow in self.on_flush:
            follow()
        self.stalls.record("answers that were stored", perf_counter() - began_s)
