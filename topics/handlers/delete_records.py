"""DeleteRecords: removes the records of partitions below an offset.

The new log start offset is on the disk before it is answered. The producers' states are restored
and saved first: the records may be the only other place that has them. Fetches that wait below the
new start are answered.
Kafka differs: it writes the log start offsets each minute, so that a crash brings records back.
Kafka's counterpart: `ReplicaManager.deleteRecords`, `Partition.deleteRecordsOnLeader`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from protocol.acl_codes import AclOperation
from protocol.messages import Request
from protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from protocol.names import ErrorCode, TopicName
from seams.authorizer import Authorizer
from seams.io_executor import IoExecutor
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Corrupt, LogClosed, TopicLog, TopicPartition
from topics.events import PartitionFailed, RecordsDeleted, TopicEvent
from topics.maintenance import TopicMaintenance
from topics.partition import Partition
from topics.producer_recovery import ProducerRecovery
from topics.registry import TopicRegistry
from topics.topic_rights import forbidden_topics

HIGH_WATERMARK: Final = -1
"""As the offset: all records that a consumer can read."""

DELETED_AT_ONCE: Final = 10
"""Partitions of one job of the appender, each with an fsync: appends wait for no more of them."""

_NO_LOW_WATERMARK: Final = -1


class DeletionJob(Struct):
    """One partition whose records are to be deleted, and the outcome."""

    partition: Partition
    log: TopicLog
    offset: int
    low_watermark: int = _NO_LOW_WATERMARK
    error_code: ErrorCode = ErrorCode.NONE
    event: TopicEvent | None = None

    def run(self) -> None:
        """In the appender."""
        end = self.log.high_watermark
        offset = end if self.offset == HIGH_WATERMARK else self.offset
        if self.partition.deleted:
            self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif self.partition.offline:
            self.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        elif not 0 <= offset <= end:
            self.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            self._delete_before(offset)

    def _delete_before(self, offset: int) -> None:
        key, before = self.partition.topic_partition, self.log.log_start_offset
        try:
            self.low_watermark = self.log.delete_before(offset)
        except (OSError, Corrupt, LogClosed) as fault:
            self.error_code = self.partition.read_error()
            if not self.partition.deleted:
                reason = f"{type(fault).__name__}: {fault}"
                self.event = PartitionFailed(key, reason, self.partition.offline)
            return
        if self.low_watermark > before:
            self.event = RecordsDeleted(key, self.low_watermark)


class PendingDeletion(Struct):
    """A request in progress."""

    token: ReplyToken
    outcomes: dict[TopicPartition, DeletionJob | ErrorCode] = field(default_factory=dict)

    @property
    def jobs(self) -> list[DeletionJob]:
        return [o for o in self.outcomes.values() if isinstance(o, DeletionJob)]


class DeleteRecordsHandler:
    def __init__(
        self,
        registry: TopicRegistry,
        maintenance: TopicMaintenance,
        recovery: ProducerRecovery,
        authorizer: Authorizer,
        *,
        appender: IoExecutor,
        reply: Callable[[ReplyToken, DeleteRecordsResponse], None],
        hang_up: Callable[[ReplyToken], None],
        readable: Callable[[TopicPartition], None],
        observe: Callable[[TopicEvent], None],
    ) -> None:
        """`hang_up` ends a request that a bug left without an answer."""
        self._registry = registry
        self._maintenance = maintenance
        self._recovery = recovery
        self._authorizer = authorizer
        self._appender = appender
        self._reply = reply
        self._hang_up = hang_up
        self._readable = readable
        self._observe = observe

    def handle(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DeleteRecordsRequest)
        pending = PendingDeletion(token)
        names = [topic.name for topic in request.topics]
        forbidden = forbidden_topics(self._authorizer, token, AclOperation.DELETE, names)
        for topic in request.topics:
            for asked in topic.partitions:  # of one that is named twice the later one counts
                key = TopicPartition(topic.name, asked.partition_index)
                pending.outcomes[key] = (
                    ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    if topic.name in forbidden
                    else self._job(key, asked.offset)
                )
        jobs = pending.jobs
        if not jobs:
            self._answer(pending)
            return
        partitions = [job.partition for job in jobs]
        maintenance = self._maintenance

        def restored() -> None:
            maintenance.save_producers_of(partitions, now, lambda: self._delete(pending, jobs))

        self._recovery.ensure(partitions, now, restored)

    def _job(self, key: TopicPartition, offset: int) -> DeletionJob | ErrorCode:
        topic = self._registry.by_name(TopicName(key.topic))
        partition = self._registry.partition(*key)
        if topic is None or partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic.is_internal:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        log = partition.usable_log()
        if isinstance(log, ErrorCode):
            return log
        settings = topic.effective.log
        if settings.cleanup_compact and not settings.cleanup_delete:
            return ErrorCode.POLICY_VIOLATION
        return DeletionJob(partition, log, offset)

    def _delete(self, pending: PendingDeletion, jobs: Sequence[DeletionJob]) -> None:
        """A few partitions at a time, so that producers do not wait for all of them."""
        some, rest = jobs[:DELETED_AT_ONCE], jobs[DELETED_AT_ONCE:]

        def work() -> None:
            for job in some:
                job.run()

        def done(fault: Exception | None) -> None:
            if fault is not None:
                self._hang_up(pending.token)
                raise fault
            if rest:
                self._delete(pending, rest)
            else:
                self._answer(pending)

        self._appender.submit(work, done)

    def _answer(self, pending: PendingDeletion) -> None:
        topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
        for key, outcome in pending.outcomes.items():
            topics.setdefault(key.topic, []).append(_result(key.partition, outcome))
        results = [DeleteRecordsTopicResult(TopicName(n), topics[n]) for n in topics]
        self._reply(pending.token, DeleteRecordsResponse(topics=results))
        for job in pending.jobs:
            if job.event is not None:
                self._observe(job.event)
                self._readable(job.partition.topic_partition)


def _result(index: int, outcome: DeletionJob | ErrorCode) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, ErrorCode):
        return DeleteRecordsPartitionResult(index, _NO_LOW_WATERMARK, outcome)
    return DeleteRecordsPartitionResult(index, outcome.low_watermark, outcome.error_code)
