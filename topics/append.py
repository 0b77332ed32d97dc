"""Append: checks a produced batch and appends it to its partition's log, off the event loop.

`prepare` checks the batch (`batch_check.py`) and reads the log as far as the partition's producer
states need it. It changes nothing and may run in any thread. `append` checks the sequence numbers
(`producers.py`), appends, and flushes if `flush.messages` requires it. It runs only in the data
plane's appender thread, which therefore owns the producer states and the unflushed records.
Kafka's counterpart: `UnifiedLog.append`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from protocol.names import ErrorCode
from seams.now import Now
from storage.api import Corrupt, LogClosed, TopicLog
from storage.batch.record_batch import NO_PRODUCER_ID, BatchHeader, InvalidBatch
from topics.append_marker import write_producers
from topics.batch_check import RejectedBatch, ValidatedBatch, check_batch
from topics.configs import EffectiveConfig
from topics.partition import Partition
from topics.producer_recovery import install
from topics.producer_snapshot import ProducerSnapshots
from topics.producers import ProducerStates, SentBatch, Verification

_NO_TIMESTAMP: Final = -1


class AppendResult(NamedTuple):
    """Where a batch is stored; `timestamp_ms` is set with LogAppendTime only."""

    base_offset: int
    log_start_offset: int
    timestamp_ms: int = _NO_TIMESTAMP
    is_new: bool = True  # not a repeated batch
    is_flushed: bool = False


class AppendFailed(NamedTuple):
    """The disk failed, or returned invalid data."""

    reason: str


AppendOutcome = AppendResult | RejectedBatch | AppendFailed


class AppendJob(Struct):
    """A batch to be appended to a log."""

    partition: Partition
    log: TopicLog
    config: EffectiveConfig
    records: bytes
    header: BatchHeader
    now: Now
    checked: ValidatedBatch | RejectedBatch | AppendFailed | None = None
    restored: ProducerStates | None = None
    verification: Verification | None = None  # of a transactional batch
    must_verify: bool = False  # it may begin its transaction only with that


class LogAppender:
    def __init__(self, snapshots: ProducerSnapshots) -> None:
        self._snapshots = snapshots

    def must_read(self, job: AppendJob) -> bool:
        """Whether the log must be read before sequence numbers can be checked."""
        if job.header.producer_id <= NO_PRODUCER_ID or job.partition.producers is not None:
            return False
        return self._snapshots.must_read(job.log)

    def prepare(self, job: AppendJob, pause: Callable[[], None] | None) -> None:
        """Do what takes long and changes nothing; `pause` is called regularly."""
        try:
            job.checked = check_batch(
                job.records,
                job.header,
                job.config,
                job.partition.topic_partition,
                job.now.wall_ms,
                pause,
            )
            if isinstance(job.checked, ValidatedBatch) and self.must_read(job):
                job.restored = self._snapshots.restore(job.log)
        except _DISK_FAULTS as fault:
            job.checked = AppendFailed(_reason(fault))
        except Exception as error:  # noqa: BLE001 - a bug fails one batch
            job.checked = _bug(error)

    def append(self, job: AppendJob) -> AppendOutcome:
        """In the appender: check sequence numbers, append, flush."""
        if job.checked is None:
            self.prepare(job, None)
        checked = job.checked
        if not isinstance(checked, ValidatedBatch):
            assert checked is not None, "prepared above"
            return checked
        try:
            return self._append(job, checked)
        except _DISK_FAULTS as fault:
            return AppendFailed(_reason(fault))
        except Exception as error:  # noqa: BLE001 - as above
            return _bug(error)

    def _append(self, job: AppendJob, checked: ValidatedBatch) -> AppendOutcome:
        """Append, unless the sequence numbers are repeated or out of order."""
        partition, log, header = job.partition, job.log, checked.header
        if partition.offline:
            return AppendFailed("the partition is offline")
        self._restore_producers(job)
        producers = partition.producers
        if header.producer_id > NO_PRODUCER_ID:
            assert producers is not None, "restored above"
            checked_sequence = producers.check(
                header, job.verification, must_verify=job.must_verify
            )
            if isinstance(checked_sequence, SentBatch):
                # It may be repeated because its flush failed.
                _flush_if_due(partition, job.config)
                first, at_ms = checked_sequence.first_offset, checked_sequence.timestamp_ms
                return AppendResult(first, log.log_start_offset, at_ms, is_new=False)
            if checked_sequence is not None:
                return RejectedBatch(checked_sequence.error_code, checked_sequence.reason)
        base_offset = self._append_to(partition, log, checked, job.now)
        if producers is not None and log.producer_files.rolled_at == base_offset:
            write_producers(log, producers)  # as of the end of the segment before
        partition.appended(header.records_count, header.size, job.now.mono_ms)
        if producers is not None:
            producers.appended(header, base_offset, checked.max_timestamp)
        is_flushed = _flush_if_due(partition, job.config)
        append_time_ms = job.now.wall_ms if job.config.log_append_time else _NO_TIMESTAMP
        return AppendResult(
            base_offset, log.log_start_offset, append_time_ms, is_flushed=is_flushed
        )

    def _append_to(
        self, partition: Partition, log: TopicLog, checked: ValidatedBatch, now: Now
    ) -> int:
        producers, header = partition.producers, checked.header
        if (
            producers is None
            or header.producer_id <= NO_PRODUCER_ID  # nobody could end it
            or not header.is_transactional
            or producers.has_open(header.producer_id)
        ):
            return log.append(checked.batch, now.wall_ms)
        # First: no reader may take the batch for one outside of a transaction.
        partition.begin_transaction(log.log_end_offset)
        try:
            return log.append(checked.batch, now.wall_ms)
        except BaseException:
            partition.set_first_unstable(producers.first_unstable_offset)
            raise

    def _restore_producers(self, job: AppendJob) -> None:
        """Restore the producer states if this batch needs them, or if no log must be read."""
        partition, log = job.partition, job.log
        if partition.producers is not None:
            return
        restored = job.restored
        if restored is None:
            if job.header.producer_id <= NO_PRODUCER_ID and self._snapshots.must_read(log):
                return
            restored = self._snapshots.restore(log)
        install(self._snapshots, partition, restored, job.now)


def _flush_if_due(partition: Partition, config: EffectiveConfig) -> bool:
    """Flush if flush.messages requires it; whether it did. Raises OSError."""
    is_due = partition.unflushed_records >= config.flush_messages
    if is_due:
        partition.flush()
    return is_due


_DISK_FAULTS: Final = (OSError, LogClosed, Corrupt, InvalidBatch, IndexError)


def _reason(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"


def _bug(error: Exception) -> RejectedBatch:
    return RejectedBatch(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error), has_log_start=False)
