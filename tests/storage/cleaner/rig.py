"""The words of the cleaner's tests: a partition in memory, written batch by batch and cleaned.

log = Partition()
log.write(a=1, b=2)         one batch of two records; log.write(a=None) is a tombstone
log.roll()                  what comes now is another segment's
log.clean(at=NOW_MS)        everything sealed
log.kept() == {0: ("b", "2"), ...}    by offset
"""

from collections.abc import Mapping

from storage.api import LogSettings, Record, TopicPartition
from storage.batch.record_batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    encode_batch,
    read_header,
    read_records,
)
from storage.cleaner.cleaner import inspect_log, plan_pass, swap_in_pass
from storage.cleaner.cleaner_pass import PassResult, run_pass
from storage.cleaner.messages import LastOfProducer
from storage.disk import Disk
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, NOW_MS, TOPIC_ID, new_disk

KEY = TopicPartition("compacted", 0)
FOLDER = f"{DATA}/compacted-0"
SETTINGS = LogSettings(
    segment_bytes=1 << 20,
    index_interval_bytes=256,
    cleanup_delete=False,
    cleanup_compact=True,
    delete_retention_ms=1_000,
)
ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


class Partition:
    def __init__(self, disk: SimulatedDisk | None = None, settings: LogSettings = SETTINGS) -> None:
        self.disk: Disk = disk or new_disk()
        self.log = PartitionLog(self.disk, FOLDER, KEY, settings)
        self.clean_to: int | None = None
        self.now_ms = NOW_MS  # the time of what is written
        if self.disk.exists(FOLDER):
            self.log.open(EVERYTHING)
        else:
            self.log.create(TOPIC_ID)

    # Writing.

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def append(self, batch: bytes) -> int:
        """A batch that has its offsets; its base offset."""
        header = read_header(batch)
        self.log.append_placed([(batch, header.last_offset, header.max_timestamp)], NOW_MS)
        return header.base_offset

    def write(self, *, at: int | None = None, **values: object) -> int:
        at = self.now_ms if at is None else at
        return self.append(encode_batch(records_of(values), self.end, at))

    def produce(self, producer: int, *, epoch: int = 0, sequence: int = 0, **values: object) -> int:
        return self.append(
            encode_batch(records_of(values), self.end, self.now_ms, 0, producer, epoch, sequence)
        )

    def in_transaction(self, producer: int, **values: object) -> int:
        return self.append(
            encode_batch(
                records_of(values),
                self.end,
                self.now_ms,
                0,
                producer,
                0,
                0,
                attributes=TRANSACTIONAL_FLAG,
            )
        )

    def mark(self, producer: int, marker: bytes) -> int:
        """ABORT or COMMIT."""
        record = Record(marker, bytes(6))
        attributes = TRANSACTIONAL_FLAG | CONTROL_FLAG
        return self.append(
            encode_batch([record], self.end, self.now_ms, 0, producer, 0, -1, attributes=attributes)
        )

    def roll(self) -> None:
        self.log.roll()

    # Cleaning.

    def clean(
        self,
        *,
        at: int = NOW_MS,
        map_bytes: int = 128 << 20,
        producers: Mapping[int, LastOfProducer] | None = None,
    ) -> PassResult:
        """One pass over all that is sealed; as the daemon does it."""
        result = self.run(at=at, map_bytes=map_bytes, producers=producers)
        swap_in_pass(self.disk, self.log, result)
        self.clean_to = result.end_offset
        return result

    def run(
        self,
        *,
        at: int = NOW_MS,
        map_bytes: int = 128 << 20,
        producers: Mapping[int, LastOfProducer] | None = None,
    ) -> PassResult:
        """The pass alone: `.cleaned` files."""
        found = inspect_log(self.log, checkpoint=self.clean_to, stable_to=self.end, now_ms=at).found
        job = plan_pass(
            self.log,
            found,
            stable_to=self.end,
            now_ms=at,
            map_bytes=map_bytes,
            producers=producers if producers is not None else {},
        )
        return run_pass(self.disk, job)

    # Reading.

    def batches(self) -> list[bytes]:
        return list(self.log.batches(0))

    def headers(self) -> list[BatchHeader]:
        return [read_header(batch) for batch in self.batches()]

    def kept(self) -> dict[int, tuple[str | None, str | None]]:
        """Every record that is no marker."""
        found = {}
        for batch in self.batches():
            if not read_header(batch).is_control:
                for offset, _, key, value, _ in read_records(batch):
                    found[offset] = (_text(key), _text(value))
        return found

    def names(self) -> list[str]:
        return sorted(self.disk.listdir(FOLDER))

    def reopened(self) -> "Partition":
        assert isinstance(self.disk, SimulatedDisk)
        again = Partition(self.disk, self.log.settings)
        again.clean_to = self.clean_to
        return again


def records_of(values: Mapping[str, object]) -> list[Record]:
    return [
        Record(key.encode(), None if value is None else str(value).encode())
        for key, value in values.items()
    ]


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()
