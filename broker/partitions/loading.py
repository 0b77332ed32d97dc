"""Loading: a partition's state from the disk into the coordinator, a snapshot and then the log.

The snapshot is read whole, in a thread, and its groups stay undecoded. The log from its position on
is read in the thread, and replayed by the coordinator in slices on the loop. Without a usable
snapshot the whole log is read. `ownership.py` chooses the next partition and what follows.

Batches that the compiled build reads in C are parsed on the loop, too: that takes less of its time
than to share the interpreter with a thread that parses. Other batches are parsed in the thread.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from broker.background.snapshot_job import load_start_of
from broker.observe.events import SnapshotIgnored
from broker.partitions.load_progress import LoadProgress
from coordinator.image import LoadStart
from storage.api import Corrupt, Log, TopicLog
from storage.batch.compiled_batch import LEADING_BATCHES_IN_C
from storage.batch.record_batch import batch_offsets, records_count
from storage.snapshot import SkippedSnapshot, Snapshot

R = TypeVar("R")
"""What a coordinator reads of its log, in its order."""

SLICE_RECORDS: Final = 100
"""Records, or batches of commits, that the coordinator replays in one slice: a few milliseconds of
the loop, if the group of each has to be decoded first."""

LOAD_READ_BYTES: Final = 262_144
"""Bytes of batches that are read and parsed in one step, off the loop."""

FETCH_BYTES: Final = 1 << 20
"""Bytes of batches that are read in one step, off the loop, to be parsed on it."""

SLICE_BYTES: Final = 131_072
"""Bytes of batches that are parsed and replayed in one slice on the loop: half a millisecond if
they have 50 commits each, two if they have one."""


QuickRecords = Callable[[bytes], Sequence[R] | None]


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

    @property
    def quick_records_of(self) -> "QuickRecords[R] | None":
        """The same for usual batches, on the loop: it takes a microsecond a batch or little more.

        None is its answer to a batch that it leaves to `records_of`."""

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
        coordinator = self._coordinator
        # In pieces it may be read before and after a cleaning, which may have removed tombstones
        # of what was read. If there is a snapshot, that is noticed: then it does not stand.
        quick_records_of = None if snapshot is None else coordinator.quick_records_of
        tail = Tail(log, snapshot, coordinator.records_of, quick_records_of)
        self._coordinator.load_from(partition, tail.load_start)
        loop = asyncio.get_running_loop()
        count = 0
        while tail.has_more and await loop.run_in_executor(None, tail.read_next):
            for records in tail.slices():
                if not is_wanted():
                    return count
                self._coordinator.load(partition, records, tail.next_offset)
                await asyncio.sleep(0)
            count += tail.count
            self.progress.took(tail.count, tail.size)
        return count


class Tail(Generic[R]):
    """What a load reads of the log after the snapshot, in portions."""

    __slots__ = (
        "_batches",
        "_fetched",
        "_log",
        "_quick_records_of",
        "_records_of",
        "_unusual_to",
        "count",
        "load_start",
        "next_offset",
        "records",
        "size",
    )

    def __init__(
        self,
        log: TopicLog,
        snapshot: Snapshot | None,
        records_of: Callable[[bytes], Sequence[R]],
        quick_records_of: QuickRecords[R] | None = None,
    ) -> None:
        self.load_start = load_start_of(snapshot, log.log_start_offset)
        position = self.load_start.position
        self._log = log
        self._batches: Iterator[bytes] | None = None
        self._fetched = b""
        self._unusual_to = 0  # below this offset are batches that the quick reader has left
        self._records_of = records_of
        self._quick_records_of = quick_records_of
        self.records: list[R] = []
        self.next_offset = position
        """After the portion, or after the slice of it that was taken last."""
        self.count = 0
        """Of records in the log; one of `records` may stand for several."""
        self.size = 0

    @property
    def has_more(self) -> bool:
        return self.next_offset < self._log.high_watermark

    def read_next(self) -> bool:
        """The next portion, in a thread, for `slices`; False at the end of the log."""
        if not self.may_be_quick:
            return self.read_on()
        self.fetch()
        return True

    def read_on(self) -> bool:
        """The next portion, parsed; False at the end of the log."""
        self.records, self.count, self.size = [], 0, 0
        if self._batches is None:
            self._batches = self._log.batches(self.next_offset)
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

    @property
    def may_be_quick(self) -> bool:
        """Whether `fetch` is to read the next portion."""
        has_reader = self._quick_records_of is not None and LEADING_BATCHES_IN_C is not None
        return has_reader and self.next_offset >= self._unusual_to

    def fetch(self) -> None:
        """Read the next portion; `slices` parses it. Whatever is wrong with it is left to
        `read_on`."""
        self.records, self.count, self.size = [], 0, 0
        log, self._batches = self._log, None
        try:
            self._fetched = log.read(
                self.next_offset, FETCH_BYTES, up_to=log.high_watermark, at_least_one=True
            )
        except (Corrupt, IndexError):
            self._fetched = b""
        if not self._fetched:
            self._unusual_to = log.high_watermark

    def slices(self) -> Iterator[list[R]]:
        """What the portion says, on the loop."""
        if self._fetched:
            fetched, self._fetched = self._fetched, b""
            yield from self._quick_slices(fetched)
        for at in range(0, len(self.records), SLICE_RECORDS):
            yield self.records[at : at + SLICE_RECORDS]

    def _quick_slices(self, fetched: bytes) -> Iterator[list[R]]:
        """As far as batches are sound and usual; the next portion begins where it stopped."""
        assert LEADING_BATCHES_IN_C is not None
        assert self._quick_records_of is not None
        batches = LEADING_BATCHES_IN_C(fetched)
        if sum(map(len, batches)) < len(fetched):
            self._unusual_to = self._log.high_watermark  # damaged: `read_on` says how
        found: list[R] = []
        size, end = 0, self.next_offset
        for batch in batches:
            records = self._quick_records_of(batch)
            if records is None:
                self._unusual_to = max(self._unusual_to, batch_offsets(batches[-1])[1] + 1)
                break
            found += records
            size += len(batch)
            self.count += records_count(batch)
            end = batch_offsets(batch)[1] + 1
            if size >= SLICE_BYTES:
                self.next_offset, self.size = end, self.size + size
                yield found
                found, size = [], 0
        self.next_offset, self.size = end, self.size + size
        if found:
            yield found
