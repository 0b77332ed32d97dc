"""Journaled view: a partition that is written through the journal, as its readers may see it.

Fetch and ListOffsets on `__consumer_offsets`, and a shard that loads, read a partition's segments
through this `TopicLog`: up to the position that the journal reported stored, which is the high
watermark. Only the coordinator writes there, so an append is refused, and durability, rolling and
cleaning are the journal's business. It may be read while the flusher's thread appends.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol
from uuid import UUID

from storage.api import (
    AbortedTransaction,
    LogClosed,
    LogSettings,
    Position,
    TopicPartition,
    UnendedTransaction,
)
from storage.batch.record_batch import batch_offsets, iter_batches, read_header
from storage.log.partition_log import PartitionLog
from storage.log.producer_files import ProducerFiles


class JournalPositions(Protocol):
    """The journal's end of the same log."""

    @property
    def end_position(self) -> Position: ...

    @property
    def stored_position(self) -> Position: ...

    def enforce_retention(self, now_ms: int) -> int: ...


class AbortedSource(Protocol):
    """The coordinator of the log: it knows the aborted transactions."""

    def aborted_between(self, from_offset: int, up_to: int) -> Sequence[AbortedTransaction]:
        """Those with a marker at or after `from_offset` that begin before `up_to`; any thread."""


class JournaledView:
    """A TopicLog for readers only."""

    __slots__ = ("_log", "_partition_log", "aborted_source")

    def __init__(self, partition_log: PartitionLog, log: JournalPositions) -> None:
        self._partition_log = partition_log
        self._log = log
        self.aborted_source: AbortedSource | None = None  # None: the log has no transactions

    @property
    def topic_partition(self) -> TopicPartition:
        return self._partition_log.topic_partition

    @property
    def topic_id(self) -> UUID:
        return self._partition_log.topic_id

    @property
    def leader_epoch(self) -> int:
        return self._partition_log.leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self._partition_log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._log.end_position

    @property
    def high_watermark(self) -> int:
        return self._log.stored_position

    @property
    def size_bytes(self) -> int:
        return self._partition_log.size_bytes

    @property
    def last_producer_id(self) -> int:
        return self._partition_log.last_producer_id

    def greatest_producer_id(self) -> int:
        return self._partition_log.greatest_producer_id()

    @property
    def settings(self) -> LogSettings:
        return self._partition_log.settings

    @settings.setter
    def settings(self, settings: LogSettings) -> None:
        self._partition_log.settings = settings

    def append(self, batches: bytes, now_ms: int) -> int:  # noqa: ARG002
        raise LogClosed(f"{self.topic_partition.topic} is written by the daemon itself only")

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> bytes:
        up_to = min(up_to, self.high_watermark)
        if up_to <= offset <= self.log_end_offset:
            return b""  # what is queued or in flight: the segments may not have it yet
        try:
            return self._partition_log.read(
                offset, max_bytes, up_to=up_to, at_least_one=at_least_one
            )
        except FileNotFoundError:
            # The journal's thread has dropped that segment at this moment.
            raise IndexError(f"{offset} is below {self.log_start_offset}") from None

    def read_open(
        self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool
    ) -> bytes | None:
        up_to = min(up_to, self.high_watermark)
        if up_to <= offset <= self.log_end_offset:
            return b""
        return self._partition_log.read_open(
            offset, max_bytes, up_to=up_to, at_least_one=at_least_one
        )

    def aborted_among(self, batches: bytes) -> Sequence[AbortedTransaction]:
        if self.aborted_source is None or not batches:
            return self._partition_log.aborted_among(batches)
        up_to = max(header.next_offset for _, header in iter_batches(batches))
        return self.aborted_source.aborted_between(read_header(batches).base_offset, up_to)

    @property
    def left_open(self) -> Sequence[UnendedTransaction]:
        return self._partition_log.left_open

    @property
    def producer_files(self) -> ProducerFiles:
        return self._partition_log.producer_files

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        self._partition_log.add_aborted(aborted)

    def replace_aborted(self, from_offset: int, aborted: Sequence[AbortedTransaction]) -> None:
        self._partition_log.replace_aborted(from_offset, aborted)

    def sync_aborted(self) -> None:
        self._partition_log.sync_aborted()

    def batches(self, from_offset: int) -> Iterator[bytes]:
        up_to = self.high_watermark
        for batch in self._partition_log.checked_batches(from_offset):
            if batch_offsets(batch)[0] >= up_to:
                return
            yield batch

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        return self._partition_log.offset_for_timestamp(timestamp_ms)

    def max_timestamp(self) -> tuple[int, int] | None:
        return self._partition_log.max_timestamp()

    def delete_before(self, offset: int) -> int:  # noqa: ARG002
        """Kafka refuses DeleteRecords on a compacted topic; so nothing moves here."""
        return self.log_start_offset

    def enforce_retention(self, now_ms: int) -> int:
        """Done by the journal's thread, a little later: counts what went since the last call."""
        if not self.settings.cleanup_delete:
            return 0  # the journal rolls when it appends; what is compacted is not dropped
        return self._log.enforce_retention(now_ms)

    def flush(self) -> None:
        """The journal does, before it reports a position stored."""

    def close(self) -> None:
        """The journal and the store do."""
