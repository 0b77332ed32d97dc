"""Loading: a partition's state from the disk into the coordinator, a snapshot and then the log.

The snapshot is read whole, in a thread, and its groups stay undecoded. The log from its position on
is read and parsed in the thread, and replayed by the coordinator in slices on the loop. Without a
usable snapshot the whole log is read. `ownership.py` chooses the next partition and what follows.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from broker.background.snapshot_job import load_start_of
from broker.observe.events import SnapshotIgnored
from broker.partitions.load_progress import LoadProgress
from coordinator.image import LoadStart
from storage.api import Log, TopicLog
from storage.batch.record_batch import batch_offsets, records_count
from storage.snapshot import SkippedSnapshot, Snapshot

R = TypeVar("R")
"""What a coordinator reads of its log, in its order."""

SLICE_RECORDS: Final = 100
"""Records, or batches of commits, that the coordinator replays in one slice: a few milliseconds of
the loop, if the group of each has to be decoded first."""

LOAD_READ_BYTES: Final = 262_144
"""Bytes of batches that are read and parsed in one step, off the loop."""


class LoadSize(NamedTuple):
    """How much there is to load of a partition, by the sizes of its files."""

    log_bytes: int
    snapshot_bytes: int


class OwnedLogs(Protocol):
    """The logs of a coordinator's topic, as the daemon opened them."""

    def elect(self, partition: int) -> int:
        """Begin a leader epoch; which one. Raises OSError or Corrupt."""

    def open(self, partition: int) -> tuple[Log, TopicLog]:
        """The end to append to, and the view to read. Raises OSError or Corrupt."""

    def load_sizes(self, partitions: Iterable[int]) -> dict[int, LoadSize]:
        """How much there is to load; reads no content. In a thread. Raises OSError."""

    def snapshot(self, partition: int) -> tuple[Snapshot | None, list[SkippedSnapshot]]:
        """The newest usable one, and those that cannot be used. In a thread."""

    def stands(self, snapshot: Snapshot) -> bool:
        """Whether it still belongs to the log: a cleaning removes it. In a thread."""


class Loading(Protocol[R]):
    """What a load needs of the coordinator, which says what it reads a batch as."""

    def load_from(self, partition: int, load_start: LoadStart) -> None: ...

    def records_of(self, batch: bytes, /) -> Sequence[R]:
        """In a thread. Raises InvalidBatch, and what says that it cannot be understood."""

    def load(self, partition: int, records: Sequence[R], next_offset: int) -> None: ...


class PartitionLoad(Generic[R]):
    """Loads partitions that the coordinator has begun to, one at a time."""

    __slots__ = ("_coordinator", "_logs", "_observe", "progress")

    def __init__(
        self,
        logs: OwnedLogs,
        coordinator: Loading[R],
        observe: Callable[[SnapshotIgnored], None],
        progress: LoadProgress,
    ) -> None:
        self._logs = logs
        self._coordinator = coordinator
        self._observe = observe
        self.progress = progress

    async def run(
        self, partition: int, log: TopicLog, is_wanted: Callable[[], bool], *, use_snapshot: bool
    ) -> int:
        """Read it to its end, or while `is_wanted`; how many records. Raises whatever a damaged
        log leads to."""
        loop = asyncio.get_running_loop()
        records = 0
        while True:
            snapshot = None
            if use_snapshot:
                snapshot, ignored = await loop.run_in_executor(None, self._logs.snapshot, partition)
                for unused in ignored:
                    self._observe(SnapshotIgnored(partition, unused.path, unused.reason))
            if not is_wanted():
                return records
            records += await self._read(partition, log, snapshot, is_wanted)
            if snapshot is None or await loop.run_in_executor(None, self._logs.stands, snapshot):
                return records
            # The log was cleaned meanwhile: it does not continue that snapshot any more.

    async def _read(
        self,
        partition: int,
        log: TopicLog,
        snapshot: Snapshot | None,
        is_wanted: Callable[[], bool],
    ) -> int:
        tail = Tail(log, snapshot, self._coordinator.records_of)
        self._coordinator.load_from(partition, tail.load_start)
        if tail.load_start.position >= log.high_watermark:
            return 0
        loop = asyncio.get_running_loop()
        count = 0
        while await loop.run_in_executor(None, tail.read_on):
            records = tail.records
            for at in range(0, len(records), SLICE_RECORDS):
                if not is_wanted():
                    return count
                part = records[at : at + SLICE_RECORDS]
                self._coordinator.load(partition, part, tail.next_offset)
                await asyncio.sleep(0)
            count += tail.count
            self.progress.took(tail.count, tail.size)
        return count


class Tail(Generic[R]):
    """What a load reads of the log after the snapshot, in portions."""

    __slots__ = (
        "_batches",
        "_records_of",
        "count",
        "load_start",
        "next_offset",
        "records",
        "size",
    )

    def __init__(
        self, log: TopicLog, snapshot: Snapshot | None, records_of: Callable[[bytes], Sequence[R]]
    ) -> None:
        self.load_start = load_start_of(snapshot, log.log_start_offset)
        position = self.load_start.position
        self._batches = log.batches(position)
        self._records_of = records_of
        self.records: list[R] = []
        self.next_offset = position
        """After the portion."""
        self.count = 0
        """Of records in the log; one of `records` may stand for several."""
        self.size = 0

    def read_on(self) -> bool:
        """The next portion, in a thread; False at the end of the log."""
        self.records, self.count, self.size = [], 0, 0
        batch = b""
        for batch in self._batches:
            self.records += self._records_of(batch)
            self.count += records_count(batch)
            self.size += len(batch)
            if self.size >= LOAD_READ_BYTES and self.records:
                break
        if batch:
            self.next_offset = batch_offsets(batch)[1] + 1
        return bool(self.records)
