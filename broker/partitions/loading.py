"""Loading: a partition's state from the disk into the coordinator, a snapshot and then the log.

The snapshot is read whole, in a thread, and its groups stay undecoded. The log from its position on
is read and parsed in the thread, and replayed by the coordinator in slices on the loop. Without a
usable snapshot the whole log is read. `ownership.py` chooses the next partition and what follows.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from broker.background.snapshot_job import load_start_of
from broker.observe.events import SnapshotIgnored
from broker.partitions.load_progress import LoadProgress
from coordinator.image import LoadStart
from storage.api import Log, LoggedRecord, TopicLog
from storage.batch.control_batch import logged_records
from storage.snapshot import SkippedSnapshot, Snapshot

SLICE_RECORDS: Final = 500
"""Records that the coordinator replays in one slice: about two milliseconds of the loop."""

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


class Loading(Protocol):
    """What a load needs of the coordinator."""

    def load_from(self, partition: int, load_start: LoadStart) -> None: ...

    def load(self, partition: int, records: Sequence[LoggedRecord], next_offset: int) -> None: ...


class PartitionLoad:
    """Loads partitions that the coordinator has begun to, one at a time."""

    __slots__ = ("_coordinator", "_logs", "_observe", "progress")

    def __init__(
        self,
        logs: OwnedLogs,
        coordinator: Loading,
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
        tail = Tail(log, snapshot)
        self._coordinator.load_from(partition, tail.load_start)
        if tail.load_start.position >= log.high_watermark:
            return 0
        loop = asyncio.get_running_loop()
        count = 0
        while await loop.run_in_executor(None, tail.read_on):
            records, size = tail.records, tail.size
            for at in range(0, len(records), SLICE_RECORDS):
                if not is_wanted():
                    return count
                part = records[at : at + SLICE_RECORDS]
                self._coordinator.load(partition, part, part[-1].offset + 1)
                count += len(part)
                await asyncio.sleep(0)
            self.progress.took(len(records), size)
        return count


class Tail:
    """What a load reads of the log after the snapshot, in portions."""

    __slots__ = ("_batches", "load_start", "records", "size")

    def __init__(self, log: TopicLog, snapshot: Snapshot | None) -> None:
        self.load_start = load_start_of(snapshot, log.log_start_offset)
        position = self.load_start.position
        self._batches = log.batches(position)
        self.records: list[LoggedRecord] = []
        self.size = 0

    def read_on(self) -> bool:
        """The next records, in a thread; False at the end of the log."""
        self.records, self.size = [], 0
        for batch in self._batches:
            self.records += logged_records(batch)
            self.size += len(batch)
            if self.size >= LOAD_READ_BYTES and self.records:
                break
        return bool(self.records)
