"""Storage fixtures: records and batches, a store and its journal."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from storage.api import LogSettings, Position, Record, TopicPartition
from storage.batch.record_batch import encode_batch, stored_records
from storage.disk import Disk
from storage.journal.journal import Journal
from storage.journal.journal_limits import JournalLimits
from storage.journal.journaled_log import JournaledLog
from storage.journal.recovery import Recovered
from storage.log.log_store import LogStore, StoreOpened
from tests.simulator.disk import SimulatedDisk

DATA = "/data"
OFFSETS = "__consumer_offsets"
TOPIC_ID = UUID("61746f6d-6963-4672-a963-6b6c65733031")
NOW_MS = 1_700_000_000_000

# Small enough that a few hundred records fill the write-ahead file and roll segments.
SMALL_LIMITS = JournalLimits(
    queue_bytes=8 << 10,
    queue_entries=20,
    batch_bytes=4 << 10,
    group_bytes=2 << 10,
    file_bytes=24 << 10,
)
SMALL_SEGMENTS = LogSettings(segment_bytes=4 << 10, index_interval_bytes=256)


def records(*names: str) -> list[Record]:
    return [Record(name.encode(), b"value of " + name.encode()) for name in names]


def batch(*names: str, base_offset: int = 0, timestamp_ms: int = NOW_MS) -> bytes:
    return encode_batch(records(*names), base_offset, timestamp_ms)


def keys_in(batches: Sequence[bytes]) -> list[str]:
    return [(record.key or b"").decode() for each in batches for record in stored_records(each)]


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_dir(DATA)
    disk.sync_dir("/")
    return disk


@dataclass
class Rig:
    """A started store with its journal, pumped by hand; `restarted_on` starts the next one."""

    disk: Disk
    settings: LogSettings = SMALL_SEGMENTS
    limits: JournalLimits = SMALL_LIMITS
    is_synced: bool = True
    stored: list[tuple[TopicPartition, Position]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = LogStore(self.disk, DATA, lambda _: self.settings)
        self.opened: StoreOpened = self.store.open()
        self.journal = Journal(
            self.disk,
            self.store,
            on_stored=lambda stored, _seconds: self.stored.extend(stored),
            on_failed=self.failures.append,
            is_synced=self.is_synced,
            limits=self.limits,
        )
        self.recovered: Recovered = self.journal.recover()

    def log(self, partition: int = 0) -> JournaledLog:
        key = TopicPartition(OFFSETS, partition)
        if self.store.partition_log(key) is None:
            self.store.create(key, TOPIC_ID, self.settings)
        return self.journal.log(key)

    def keys(self, partition: int = 0) -> list[str]:
        return keys_in(list(self.store.partitions()[TopicPartition(OFFSETS, partition)].batches(0)))

    def stop(self) -> None:
        assert self.journal.close()
        assert self.store.close() == []

    def restarted_on(self, disk: Disk) -> "Rig":
        return Rig(disk, self.settings, self.limits, self.is_synced)
