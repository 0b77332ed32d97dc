"""Transaction markers: ends the transactions of producers in the data plane's partitions.

The transaction coordinator decides how a transaction ends and hands its marker to every partition
of it. A marker is appended by the appender thread, also where the producer never wrote. With
`rollcall.flush=commit` it is durable before the coordinator hears of it, and so are, with `sync`,
the records of the transaction before the decision is recorded.

This is the data plane's part of `seams/transactions.py`; `append_marker.py` is what the appender
does.
Kafka's counterpart: `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from collections.abc import Callable, Sequence

from protocol.names import ErrorCode, TopicName
from seams.io_executor import IoExecutor
from seams.now import Now
from seams.topic_names import is_internal
from seams.transactions import Done, TransactionMarker
from storage.api import Corrupt, LogClosed, TopicPartition
from storage.batch.record_batch import InvalidBatch
from topics.append_marker import append_marker
from topics.events import MarkerNotAppended, PartitionFailed, TopicEvent
from topics.partition import Partition
from topics.producer_recovery import ProducerRecovery
from topics.producers import RejectedSequence
from topics.registry import TopicRegistry

_DISK_FAULTS = (OSError, LogClosed, Corrupt, InvalidBatch)


class TransactionMarkers:
    """Writes markers to partitions, and syncs the records before them."""

    def __init__(
        self,
        registry: TopicRegistry,
        recovery: ProducerRecovery,
        *,
        appender: IoExecutor,
        must_flush: bool,
        readable: Callable[[TopicPartition], None],
        observe: Callable[[TopicEvent], None],
    ) -> None:
        """`must_flush`: durable is what an fsync has covered; otherwise, what was written."""
        self._registry = registry
        self._recovery = recovery
        self._appender = appender
        self._must_flush = must_flush
        self._readable = readable
        self._observe = observe

    def sync(self, partitions: Sequence[TopicPartition], done: Done) -> None:
        """As `TransactionPartitions.sync`."""
        if not self._must_flush:
            done(dict.fromkeys(partitions, ErrorCode.NONE))
            return
        answers = _Answers(partitions, done)
        for key in partitions:
            partition = self._registry.partition(*key)
            if partition is None or partition.log is None or is_internal(key.topic):
                answers.add(key, ErrorCode.NONE)  # it is gone, or not ours
            else:
                self._flush(partition, answers)

    def _flush(self, partition: Partition, answers: "_Answers") -> None:
        key = partition.topic_partition

        def flushed(fault: Exception | None) -> None:
            answers.add(key, self._error(partition, fault))

        self._appender.submit(lambda: partition.flush(earlier_too=True), flushed)

    def write_markers(
        self,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        now: Now,
        done: Done,
    ) -> None:
        """As `TransactionPartitions.write_markers`."""
        answers = _Answers(partitions, done)
        found: list[Partition] = []
        for key in partitions:
            partition = self._registry.partition(*key)
            if partition is None or is_internal(key.topic):  # those have writers of their own
                answers.add(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            log = partition.usable_log()
            if isinstance(log, ErrorCode):
                answers.add(key, log)
            else:
                found.append(partition)

        def restored() -> None:
            for partition in found:
                self._write(marker, partition, now, answers)

        self._recovery.ensure(found, now, restored)

    def _write(
        self, marker: TransactionMarker, partition: Partition, now: Now, answers: "_Answers"
    ) -> None:
        key = partition.topic_partition
        if partition.producers is None:
            answers.add(key, self._error(partition, None, ErrorCode.KAFKA_STORAGE_ERROR))
            return
        topic = self._registry.by_name(TopicName(key.topic))
        log_append_time = topic is not None and topic.effective.log_append_time

        def write() -> RejectedSequence | None:
            if partition.offline:
                raise LogClosed("the partition is offline")
            refused = append_marker(partition, marker, now, log_append_time=log_append_time)
            if refused is None and self._must_flush:
                partition.flush()
            return refused

        def written(refused: RejectedSequence | Exception | None) -> None:
            if isinstance(refused, RejectedSequence):
                self._observe(MarkerNotAppended(key, refused.error_code, refused.reason))
                answers.add(key, refused.error_code)
                return
            answers.add(key, self._error(partition, refused))
            if refused is None:
                self._readable(key)

        self._appender.submit(write, written)

    def _error(
        self, partition: Partition, fault: Exception | None, otherwise: ErrorCode = ErrorCode.NONE
    ) -> ErrorCode:
        """The error of a partition; reports a fault of the disk."""
        if fault is None and otherwise is ErrorCode.NONE:
            return ErrorCode.NONE
        if partition.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if fault is not None:
            reason = f"{type(fault).__name__}: {fault}"
            self._observe(PartitionFailed(partition.topic_partition, reason, partition.offline))
            if not isinstance(fault, _DISK_FAULTS):
                return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.KAFKA_STORAGE_ERROR


class _Answers:
    """Calls `done` once there is an answer for every partition."""

    def __init__(self, partitions: Sequence[TopicPartition], done: Done) -> None:
        self._missing = set(partitions)
        self._errors: dict[TopicPartition, ErrorCode] = {}
        self._done = done
        if not self._missing:
            done({})

    def add(self, key: TopicPartition, error_code: ErrorCode) -> None:
        self._errors[key] = error_code
        self._missing.discard(key)
        if not self._missing:
            self._done(self._errors)
