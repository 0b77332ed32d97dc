"""Does a client's leader epoch stand, and where did an epoch end?

A single node is its partitions' only leader, so most logs know one epoch, and its end is the end of
the log. Where batches of earlier epochs lie in a log, their starts are read from it, once and only
if a client asks. Kafka's counterpart: `Partition.checkCurrentLeaderEpoch`, `LeaderEpochFileCache`.
"""

from bisect import bisect_right
from typing import Final

from protocol.names import ErrorCode
from storage.api import TopicLog
from storage.record_batch import read_header

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


def epoch_error(log: TopicLog, current_leader_epoch: int) -> ErrorCode | None:
    """Why a client that believes in this epoch must refresh its metadata; None if it need not."""
    if current_leader_epoch in (NO_EPOCH, log.leader_epoch):
        return None
    if current_leader_epoch < log.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


class LeaderEpochs:
    """The epochs of one log before its current one, read when needed."""

    __slots__ = ("_starts",)

    def __init__(self) -> None:
        self._starts: list[tuple[int, int]] | None = None  # (epoch, its first offset), ascending

    def end_of(self, log: TopicLog, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the latest epoch up to this one; (-1, -1) for one yet unknown."""
        if leader_epoch == log.leader_epoch:
            return leader_epoch, log.log_end_offset
        if not NO_EPOCH < leader_epoch < log.leader_epoch:
            return NO_EPOCH, NO_OFFSET
        starts = self._read(log)
        after = bisect_right(starts, leader_epoch, key=lambda start: start[0])
        end = starts[after][1]  # there is one: the current epoch is greater
        return (leader_epoch if after == 0 else starts[after - 1][0]), end

    def _read(self, log: TopicLog) -> list[tuple[int, int]]:
        """The epochs in the log and the current one, the last; earlier ones no longer change."""
        if self._starts is None:
            self._starts = []
            for batch in log.batches(log.log_start_offset):
                header = read_header(batch)
                if not self._starts or self._starts[-1][0] < header.partition_leader_epoch:
                    self._starts.append((header.partition_leader_epoch, header.base_offset))
            if not self._starts or self._starts[-1][0] < log.leader_epoch:
                self._starts.append((log.leader_epoch, log.log_end_offset))
        return self._starts

    @staticmethod
    def at(log: TopicLog, offset: int) -> int:
        """The leader epoch of the record at an offset below the high watermark."""
        if log.leader_epoch == 0:
            return 0
        batch = log.read(offset, 0, up_to=log.high_watermark, at_least_one=True)
        return read_header(batch).partition_leader_epoch if batch else NO_EPOCH
