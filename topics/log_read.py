"""Log read: reads one partition for a Fetch, and makes its part of the answer.

A read_committed consumer gets the batches below the last stable offset, and the aborted
transactions among them; any other one those below the high watermark. Runs in any thread.
Kafka's counterparts: `ReplicaManager.readFromLog`, `UnifiedLog.read`, `LogReadResult`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    PartitionData,
)
from protocol.names import ErrorCode, ProducerId
from storage.api import Corrupt, TopicLog
from topics.fetch_session import RequestedPartition
from topics.leader_epochs import NO_EPOCH, end_of_epoch, epoch_error
from topics.partition import NO_STABLE_OFFSET, READ_COMMITTED, Partition

_NO_OFFSET: Final = -1


class ReadablePartition(NamedTuple):
    """A partition to be read, as it was when the request was validated."""

    requested: RequestedPartition
    partition: Partition
    log: TopicLog
    written_bytes: int  # before the read: later bytes count as new


class PartitionEnds(NamedTuple):
    """The offsets of a partition that every response has, as they were before the read."""

    high_watermark: int
    stable_offset: int
    log_start_offset: int


class LogReadResult(NamedTuple):
    """The result of reading one partition; `partition` is None if it is unknown."""

    requested: RequestedPartition
    data: PartitionData
    partition: Partition | None = None
    written_bytes: int = 0
    fault: str | None = None  # of the disk
    limit: int = 0  # of bytes, of this partition

    @property
    def size(self) -> int:
        return len(self.data.records or b"")

    @property
    def ends_waiting(self) -> bool:
        return self.data.error_code is not ErrorCode.NONE or self.data.diverging_epoch is not None


def readable_partition(
    request: FetchRequest, requested: RequestedPartition, partition: Partition
) -> ReadablePartition | LogReadResult:
    """The partition to be read, or its error."""
    log = partition.usable_log()
    if isinstance(log, ErrorCode):
        return failed_read(requested, partition, log)
    partition.update_written_bytes()
    # Every negative epoch is no epoch in a Fetch; in the other requests only -1 is.
    error_code = epoch_error(log, max(requested.asked.current_leader_epoch, NO_EPOCH))
    if error_code is None and is_follower(request):
        error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error_code is not None:
        return failed_read(requested, partition, error_code)
    is_committed = request.isolation_level == READ_COMMITTED
    written_bytes = partition.committed_bytes if is_committed else partition.written_bytes
    return ReadablePartition(requested, partition, log, written_bytes)


def read_log_partition(
    request: FetchRequest,
    target: ReadablePartition,
    room: int,
    *,
    at_least_one: bool,
    may_open: bool,
) -> LogReadResult | None:
    """In any thread; None if a file must be opened and may not."""
    requested, partition, log, written_bytes = target
    asked = requested.asked
    if not may_open and 0 <= asked.last_fetched_epoch != log.leader_epoch:
        return None  # the end of an earlier epoch is read from the log
    max_bytes = min(max(asked.partition_max_bytes, 0), room)
    high_watermark = log.high_watermark
    stable_offset = partition.last_stable_offset(high_watermark)
    up_to = high_watermark
    if request.isolation_level == READ_COMMITTED:
        if stable_offset == NO_STABLE_OFFSET:
            return failed_read(
                requested, partition, partition.read_error(), "producers not restored"
            )
        up_to = stable_offset
    try:
        diverging = _diverging(log, asked)
        records: bytes | None = b""
        if diverging is None:
            read = log.read if may_open else log.read_open
            records = read(asked.fetch_offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
        aborted = _aborted(request, log, records)
    except IndexError:
        return failed_read(requested, partition, ErrorCode.OFFSET_OUT_OF_RANGE)
    except (Corrupt, OSError) as fault:
        reason = f"{type(fault).__name__}: {fault}"
        return failed_read(requested, partition, ErrorCode.KAFKA_STORAGE_ERROR, reason)
    if records is None:
        return None
    if records and asked.fetch_offset < log.log_start_offset:
        # Deleted meanwhile, with the list of the aborted transactions among them.
        return failed_read(requested, partition, ErrorCode.OFFSET_OUT_OF_RANGE)
    ends = PartitionEnds(high_watermark, stable_offset, log.log_start_offset)
    data = _found(requested, records, aborted, diverging, ends)
    return LogReadResult(requested, data, partition, written_bytes, limit=max_bytes)


def is_follower(request: FetchRequest) -> bool:
    """Whether a broker asks, not a consumer."""
    replica_id = request.replica_id
    if request.replica_state is not None:
        replica_id = request.replica_state.replica_id
    return replica_id >= 0


def _diverging(log: TopicLog, asked: FetchPartition) -> EpochEndOffset | None:
    """The end of the consumer's last epoch, if it read beyond that. IndexError if unknown."""
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end_offset = end_of_epoch(log, asked.last_fetched_epoch)
    if epoch == NO_EPOCH or asked.fetch_offset < log.log_start_offset:
        raise IndexError(asked.fetch_offset)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch, end_offset)
    return None


def _found(
    requested: RequestedPartition,
    records: bytes,
    aborted: Sequence[AbortedTransaction] | None,
    diverging: EpochEndOffset | None,
    ends: PartitionEnds,
) -> PartitionData:
    return PartitionData(
        partition_index=requested.asked.partition,
        high_watermark=ends.high_watermark,
        last_stable_offset=ends.stable_offset,
        log_start_offset=ends.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=aborted,
        records=records,
    )


def _aborted(
    request: FetchRequest, log: TopicLog, records: bytes | None
) -> Sequence[AbortedTransaction] | None:
    if request.isolation_level != READ_COMMITTED:
        return None
    return [
        AbortedTransaction(ProducerId(aborted.producer_id), aborted.first_offset)
        for aborted in log.aborted_among(records or b"")
    ]


def refused_read(requested: RequestedPartition, error_code: ErrorCode) -> LogReadResult:
    return LogReadResult(requested, failed_partition(requested.asked.partition, error_code, ()))


def failed_read(
    requested: RequestedPartition,
    partition: Partition,
    error_code: ErrorCode,
    fault: str | None = None,
) -> LogReadResult:
    return LogReadResult(
        requested,
        failed_partition(requested.asked.partition, error_code, None),
        partition,
        fault=fault,
    )


def failed_partition(index: int, error_code: ErrorCode, aborted: tuple[()] | None) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error_code,
        high_watermark=_NO_OFFSET,
        aborted_transactions=aborted,
        records=b"",
    )
