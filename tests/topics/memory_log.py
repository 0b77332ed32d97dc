"""Memory log: lists that keep the promises of storage/api.py.

For tests of the data plane, and of others that need a TopicLog without a disk. A log can be told
to fail; `journaled` logs show nothing to readers until their high watermark is moved.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from storage.api import (
    AbortedTransaction,
    Corrupt,
    LogSettings,
    StoredProducer,
    TopicPartition,
    UnendedTransaction,
)
from storage.batch.record_batch import (
    BatchHeader,
    iter_batches,
    read_header,
    read_records,
    with_offsets,
)


class MemoryProducerFiles:
    """Snapshots by offset."""

    def __init__(self) -> None:
        self.rolled_at = -1
        self.files: dict[int, Sequence[StoredProducer]] = {}

    def write(self, offset: int, producers: Sequence[StoredProducer]) -> None:
        self.files = {offset: producers}

    def drop_beyond(self, log_end: int) -> None:
        """As a start does."""
        self.files = {each: found for each, found in self.files.items() if each <= log_end}

    def read(self, log_start: int, log_end: int) -> tuple[int, Sequence[StoredProducer]] | None:
        found = [each for each in self.files if log_start <= each <= log_end]
        return (max(found), self.files[max(found)]) if found else None


class MemoryLog:
    """A TopicLog. Segments are imitated: retention drops whole batches from the front."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        settings: LogSettings | None = None,
        *,
        leader_epoch: int = 0,
        journaled: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.settings = settings or LogSettings()
        self.leader_epoch = leader_epoch
        self.log_start_offset = 0
        self.stored: list[bytes] = []
        self.aborted: list[AbortedTransaction] = []
        self.producer_files = MemoryProducerFiles()
        self.left_open: Sequence[UnendedTransaction] = ()
        self.last_producer_id = -1
        self.flushes = 0
        self.closed = False
        self.cold_before = 0  # what is below is in files that are not open
        self.fail_next: Exception | None = None
        self._journaled = journaled
        self._high_watermark = 0

    @property
    def log_end_offset(self) -> int:
        return read_header(self.stored[-1]).next_offset if self.stored else self.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self._high_watermark if self._journaled else self.log_end_offset

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        assert self._journaled
        self._high_watermark = offset

    def greatest_producer_id(self) -> int:
        self._maybe_fail()
        return max((read_header(batch).producer_id for batch in self.stored), default=-1)

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.stored))

    def append(self, batches: bytes, now_ms: int) -> int:
        self._maybe_fail()
        first = end = self.log_end_offset
        for position, header in iter_batches(batches):
            batch = batches[position : position + header.size]
            self.stored.append(with_offsets(batch, end, self.leader_epoch))
            end += header.last_offset_delta + 1
        return first

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> bytes:
        self._maybe_fail()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise IndexError(offset)
        found = b""
        for batch, header in self._from(offset):
            if header.base_offset >= up_to:
                break
            if len(found) + len(batch) > max_bytes and not (at_least_one and not found):
                break
            found += batch
        return found

    def read_open(
        self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool
    ) -> bytes | None:
        if offset < self.cold_before and offset < up_to:
            return None
        return self.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)

    def aborted_among(self, batches: bytes) -> Sequence[AbortedTransaction]:
        if not batches:
            return ()
        headers = [header for _, header in iter_batches(batches)]
        return [
            aborted
            for aborted in self.aborted
            if aborted.last_offset >= headers[0].base_offset
            and aborted.first_offset < headers[-1].next_offset
        ]

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        self.aborted.append(aborted)

    def replace_aborted(self, from_offset: int, aborted: Sequence[AbortedTransaction]) -> None:
        kept = [each for each in self.aborted if each.last_offset < from_offset]
        self.aborted = [*kept, *aborted]

    def sync_aborted(self) -> None:
        pass

    def batches(self, from_offset: int) -> Iterator[bytes]:
        return (batch for batch, _ in self._from(from_offset))

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        for batch in self.stored:
            for offset, timestamp, *_ in read_records(batch):
                if timestamp >= timestamp_ms and offset >= self.log_start_offset:
                    return timestamp, offset
        return None

    def max_timestamp(self) -> tuple[int, int] | None:
        times = [(t, -offset) for batch in self.stored for offset, t, *_ in read_records(batch)]
        if not times:
            return None
        timestamp, offset = max(times)
        return timestamp, -offset

    def delete_before(self, offset: int) -> int:
        self.log_start_offset = max(self.log_start_offset, min(offset, self.high_watermark))
        kept = [b for b in self.stored if read_header(b).next_offset > self.log_start_offset]
        self.stored = kept
        return self.log_start_offset

    def enforce_retention(self, now_ms: int) -> int:
        self._maybe_fail()
        before = len(self.stored)
        oldest_ms = now_ms - self.settings.retention_ms
        while (
            self.settings.cleanup_delete
            and self.stored
            and self.settings.retention_ms >= 0
            and read_header(self.stored[0]).max_timestamp < oldest_ms
        ):
            self.log_start_offset = read_header(self.stored.pop(0)).next_offset
        return before - len(self.stored)

    def flush(self) -> None:
        self._maybe_fail()
        self.flushes += 1

    def close(self) -> None:
        self.closed = True

    def _from(self, offset: int) -> Iterator[tuple[bytes, BatchHeader]]:
        for batch in self.stored:
            header = read_header(batch)
            if header.next_offset > offset:
                yield batch, header

    def _maybe_fail(self) -> None:
        fault, self.fail_next = self.fail_next, None
        if fault is not None:
            raise fault


class MemoryStore:
    """A LogStore. `logs` outlives a data plane, as a disk does."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, MemoryLog] = {}
        self.room: int | None = None  # how many more logs the disk takes
        self.damaged: dict[TopicPartition, UUID] = {}
        self.strays: list[TopicPartition] = []
        self.unexpected: list[TopicPartition] = []
        self.fail_deletions = False
        self.fail_next: Exception | None = None  # to make logs

    def partitions(self) -> dict[TopicPartition, MemoryLog]:
        return dict(self.logs)

    def unserved(self) -> dict[TopicPartition, UUID]:
        return dict(self.damaged)

    def create(
        self, topic_partition: TopicPartition, topic_id: UUID, settings: LogSettings
    ) -> MemoryLog:
        return self.create_all([topic_partition], topic_id, settings)[0]

    def create_all(
        self, topic_partitions: Sequence[TopicPartition], topic_id: UUID, settings: LogSettings
    ) -> list[MemoryLog]:
        fault, self.fail_next = self.fail_next, None
        if fault is not None:
            raise fault
        for key in topic_partitions:
            if key in self.damaged:
                raise Corrupt("a folder", 7, "a checksum that does not hold")
            if key in self.logs and self.logs[key].topic_id.int:
                raise FileExistsError(17, "another topic's")
        if self.room is not None:
            if self.room < len(topic_partitions):
                raise OSError(24, "Too many open files")
            self.room -= len(topic_partitions)
        logs = [MemoryLog(key, topic_id, settings) for key in topic_partitions]
        self.logs.update(zip(topic_partitions, logs, strict=True))
        return logs

    def delete(self, *topic_partitions: TopicPartition) -> None:
        for key in topic_partitions:
            if key in self.damaged:
                del self.damaged[key]
            else:
                del self.logs[key]
        if self.fail_deletions:
            raise OSError(5, "Input/output error")

    def mark_stray(self, *topic_partitions: TopicPartition) -> list[str]:
        self.strays += topic_partitions
        for key in topic_partitions:
            self.logs.pop(key, None)
            self.damaged.pop(key, None)
        return [f"{key.topic}-{key.partition}.x-stray" for key in topic_partitions]


class MemoryFile:
    """A CatalogFile. A save that fails leaves the content as it was."""

    name = "topic catalog"

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content
        self.saves = 0
        self.kept: list[bytes] = []
        self.fail_next: OSError | None = None

    def load(self) -> bytes | None:
        return self.content

    def save(self, content: bytes) -> None:
        fault, self.fail_next = self.fail_next, None
        if fault is not None:
            raise fault
        self.content = content
        self.saves += 1

    def append(self, content: bytes, position: int) -> None:
        assert self.content is not None
        self.save(self.content[:position] + content)

    def discard(self) -> None:
        self.content = None

    def keep_copy(self) -> str:
        assert self.content is not None
        self.kept.append(self.content)
        return f"{self.name}.damaged"
