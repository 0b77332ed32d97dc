"""Partition: the state of one partition: its log, its producers, what is not flushed yet.

Mutable, owned by `registry.py`, used by produce, fetch and maintenance. A partition of the offsets
topic has no log until the broker attaches the one that the coordinator writes.

The data plane's appender, a thread of its own in the daemon, writes `producers`, `offline`, what is
unflushed and, for logs that it appends to, `written_bytes`. Other threads only read those.
"""

from typing import Final

from protocol.names import ErrorCode
from storage.api import SyncFailed, TopicLog, TopicPartition
from topics.producers import ProducerStates

NO_LEADER: Final = -1
"""The leader of an offline partition, in responses."""


class Partition:
    __slots__ = (
        "deleted",
        "dirty_since_ms",
        "log",
        "offline",
        "producers",
        "seen",
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

    def attach(self, log: TopicLog) -> None:
        self.log = log
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

    def flush(self) -> None:
        """fsync. Raises OSError; after a failed fsync the partition is offline until a restart."""
        if self.log is None or self.dirty_since_ms is None:
            return
        try:
            self.log.flush()
        except SyncFailed:
            self.offline = True
            raise
        self.unflushed_records = 0
        self.dirty_since_ms = None
