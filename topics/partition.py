"""Partition: the state of one partition: its log, its producers, what is not flushed yet.

Mutable, owned by `registry.py`, used by produce, fetch and maintenance. A partition of the offsets
topic has no log until the broker attaches the one that the coordinator writes.

The data plane's appender, a thread of its own in the daemon, writes `producers`, `offline`, what is
unflushed and, for logs that it appends to, `written_bytes` and the first unstable offset. Other
threads only read those.

The last stable offset is where a read_committed consumer has to stop: the first unstable offset,
which is where the oldest open transaction begins, or the high watermark. The writer of the log sets
the first unstable offset before a batch that opens a transaction can be read, and clears it when
the marker is in the log and the list of aborted transactions is up to date. A reader reads the high
watermark first: then it never takes a batch of an open transaction for a stable one.
"""

from typing import Final

from protocol.names import ErrorCode
from storage.api import SyncFailed, TopicLog, TopicPartition
from topics.producers import ProducerStates

NO_LEADER: Final = -1
"""The leader of an offline partition, in responses."""

NONE_OPEN: Final = 2**63 - 1
"""The first unstable offset where no transaction is open."""

NOT_RESTORED: Final = -1
"""The first unstable offset as long as the producer states were not restored."""

READ_COMMITTED: Final = 1
"""The isolation level of a consumer that reads up to the last stable offset."""

NO_STABLE_OFFSET: Final = -1
"""The last stable offset, in responses, where it is not known."""


class Partition:
    __slots__ = (
        "_bytes_before",
        "deleted",
        "dirty_since_ms",
        "first_unstable_offset",
        "log",
        "offline",
        "producers",
        "seen",
        "stable_bytes",
        "topic_partition",
        "unflushed_records",
        "written_bytes",
    )

    def __init__(self, topic_partition: TopicPartition, log: TopicLog | None) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.producers: ProducerStates | None = None  # read from the log when first needed
        self.deleted = False
        self.offline = False  # its disk failed; a failed fsync is not retried
        # Bytes that became readable since the start. It never falls: a delayed fetch compares two
        # values of it, which retention would change of the log's size.
        self.written_bytes = 0
        # Size and high watermark of an attached log when last read; None for our own logs.
        self.seen: tuple[int, int] | None = None
        self.unflushed_records = 0
        self.dirty_since_ms: int | None = None
        self.first_unstable_offset = NOT_RESTORED
        self.stable_bytes = 0  # written bytes below the first unstable offset
        self._bytes_before: dict[int, int] = {}  # the first offset of a transaction: bytes below it

    def attach(self, log: TopicLog) -> None:
        """Serve a log that another writer appends to; it also sets the first unstable offset."""
        self.log = log
        if self.first_unstable_offset == NOT_RESTORED:
            self.first_unstable_offset = NONE_OPEN
        self.seen = (log.size_bytes, log.high_watermark)

    @property
    def leader_epoch(self) -> int:
        return 0 if self.log is None else self.log.leader_epoch

    def usable_log(self) -> TopicLog | ErrorCode:
        """The log, or the error if there is none to use."""
        if self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.log is None:
            # The coordinator has not loaded it yet: clients refresh their metadata and retry.
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return self.log

    def read_error(self) -> ErrorCode:
        """The error if the log could not be read."""
        if self.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # deleted meanwhile
        return ErrorCode.KAFKA_STORAGE_ERROR

    # The last stable offset

    def last_stable_offset(self, high_watermark: int) -> int:
        """`high_watermark` must have been read before the call; NO_STABLE_OFFSET if unknown."""
        first_unstable = self.first_unstable_offset
        if self.log is None:
            return NO_STABLE_OFFSET
        start = self.log.log_start_offset
        if high_watermark <= start:
            return start  # no record can be read, so it is the same whatever is open
        if first_unstable == NOT_RESTORED:
            return NO_STABLE_OFFSET
        return max(min(first_unstable, high_watermark), start)

    @property
    def committed_bytes(self) -> int:
        """As `written_bytes`, of what a read_committed consumer may read."""
        is_stable = self.first_unstable_offset == NONE_OPEN
        return self.written_bytes if is_stable else self.stable_bytes

    def begin_transaction(self, first_offset: int) -> None:
        """Before the batch at this offset, which opens a transaction, can be read."""
        self._bytes_before[first_offset] = self.written_bytes
        if first_offset < self.first_unstable_offset:
            self.stable_bytes = self.written_bytes
            self.first_unstable_offset = first_offset

    def set_first_unstable(self, first_offset: int | None) -> None:
        """After a marker: where the oldest transaction begins that is still open."""
        if first_offset is None:
            self._bytes_before.clear()
            self.first_unstable_offset = NONE_OPEN
            return
        for begun in [begun for begun in self._bytes_before if begun < first_offset]:
            del self._bytes_before[begun]
        # One that was open at the start has no count: its bytes do, once it has ended.
        self.stable_bytes = self._bytes_before.get(first_offset, self.stable_bytes)
        self.first_unstable_offset = first_offset

    # Appends

    def appended(self, records: int, size: int, now_ms: int) -> None:
        """Count an append of the data plane; readers may have read it already."""
        self.written_bytes += size
        self.unflushed_records += records
        if self.dirty_since_ms is None:
            self.dirty_since_ms = now_ms

    def update_written_bytes(self) -> None:
        """Count what the coordinator appended to an attached log and is readable now."""
        if self.log is None or self.seen is None or self.log.high_watermark == self.seen[1]:
            return
        size = self.log.size_bytes
        # At least one byte: compaction may have removed more than was added.
        self.written_bytes += max(size - self.seen[0], 1)
        self.seen = (size, self.log.high_watermark)

    def flush(self, *, earlier_too: bool = False) -> None:
        """fsync. Raises OSError; after a failed fsync the partition is offline until a restart.

        `earlier_too`: also what a process before this one appended, which may have been killed.
        """
        if self.log is None or (self.dirty_since_ms is None and not earlier_too):
            return
        try:
            self.log.flush()
        except SyncFailed:
            self.offline = True
            raise
        self.unflushed_records = 0
        self.dirty_since_ms = None
