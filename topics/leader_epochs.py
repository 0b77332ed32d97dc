"""Leader epochs: whether a client's epoch is current, and where an epoch ended.

The current epoch ends at the log's end. For earlier ones the batches are read: each has the epoch
it was written in, and epochs only rise, so a binary search finds the end in a few reads.
Kafka's counterpart: `Partition.checkCurrentLeaderEpoch`, `LeaderEpochFileCache`.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from protocol.names import ErrorCode
from storage.api import TopicLog
from storage.batch.record_batch import BatchHeader, read_header

T = TypeVar("T")

NO_EPOCH: Final = -1
_NO_OFFSET: Final = -1


def epoch_error(log: TopicLog, current_leader_epoch: int) -> ErrorCode | None:
    """The error of a client with this epoch, so that it refreshes its metadata; None if current."""
    if current_leader_epoch in (NO_EPOCH, log.leader_epoch):
        return None
    if current_leader_epoch < log.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def end_of_epoch(log: TopicLog, leader_epoch: int) -> tuple[int, int]:
    """(epoch, end offset) of the latest epoch up to this one; (-1, -1) for a future one."""
    if leader_epoch == log.leader_epoch:
        return leader_epoch, log.log_end_offset
    if not NO_EPOCH < leader_epoch < log.leader_epoch:
        return NO_EPOCH, _NO_OFFSET
    return retry_while_start_moves(log, lambda: _search(log, leader_epoch))


def retry_while_start_moves(log: TopicLog, lookup: Callable[[], T]) -> T:
    """Repeat a lookup that failed because retention moved the log's start meanwhile.

    Kafka's lookups never fail for that: deleted files remain for file.delete.delay.ms.
    Raises IndexError if the start has not moved.
    """
    while True:
        start = log.log_start_offset
        try:
            return lookup()
        except IndexError:
            if log.log_start_offset == start:
                raise


def _search(log: TopicLog, leader_epoch: int) -> tuple[int, int]:
    start, end = log.log_start_offset, log.high_watermark
    low, high = start, end  # the first batch of a later epoch is in low..high
    while low < high:
        middle = (low + high) // 2
        header = _batch_at(log, middle)
        if header is None or header.partition_leader_epoch > leader_epoch:
            high = middle
        else:
            low = header.next_offset
    later = _batch_at(log, low)
    end_offset = log.log_end_offset if later is None else max(later.base_offset, start)
    if low == start:
        return leader_epoch, end_offset  # all remaining records are of later epochs
    return epoch_at(log, low - 1), end_offset


def epoch_at(log: TopicLog, offset: int) -> int:
    """The leader epoch of the record at an offset below the high watermark."""
    header = _batch_at(log, offset)
    return NO_EPOCH if header is None else header.partition_leader_epoch


def _batch_at(log: TopicLog, offset: int) -> BatchHeader | None:
    """The batch with the offset, or the next one after a gap of compaction."""
    batch = log.read(offset, 0, up_to=log.high_watermark, at_least_one=True)
    return read_header(batch) if batch else None
