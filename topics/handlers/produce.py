"""Produce: appends record batches to partitions, and answers with their offsets.

Route: dispatch -> ProduceHandler.handle -> the appender thread (`append.py`) -> reply. Each
partition is decided by itself: here by the request and the topic, there by the batch, the sequence
numbers and the append. A request whose check takes long, or that needs a log to be read first, is
prepared in the checker thread, so that others do not wait for it. When the producer is answered the
records are in the page cache, and on the disk if `flush.messages` says so. With one replica,
acks=all is the same as acks=1: a larger `min.insync.replicas` counts as one, as in Kafka.

The requests that follow a Produce on its connection wait for its answer (`broker/net/dispatch.py`),
so its batches stay in order.

Transactional batches are verified first (`topics/transaction_verification.py`).
Kafka's counterpart: `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from protocol.acl_codes import AclOperation
from protocol.messages import Request
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.names import ErrorCode, TopicName, TransactionalId
from seams.authorizer import Authorizer
from seams.io_executor import IoExecutor
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import TopicPartition
from storage.batch.record_batch import NO_PRODUCER_ID, BatchHeader
from topics.append import AppendFailed, AppendJob, AppendOutcome, AppendResult, LogAppender
from topics.batch_check import RejectedBatch, check_request, is_transactional
from topics.events import PartitionFailed, ProduceRefused, RecordsAppended, TopicEvent
from topics.maintenance import TopicMaintenance
from topics.producer_recovery import ProducerRecovery
from topics.producer_snapshot import ProducerSnapshots
from topics.registry import TopicRegistry
from topics.topic import Topic
from topics.topic_rights import NONE_FORBIDDEN, forbidden_topics
from topics.transaction_verification import (
    SEVERAL_PRODUCERS,
    TRANSACTION_UNNAMED,
    TransactionVerification,
)

_NO_OFFSET: Final = -1
_FIRST_VERSION_WITH_IDS: Final = 13

CHECKED_RECORDS_MAX: Final = 10_000
"""Records of a request that the appender checks itself, in about ten milliseconds."""

CHECKED_BYTES_MAX: Final = 2 << 20
"""Bytes of a request that the appender checks: checksum and copy take a millisecond."""

_UNKNOWN = RejectedBatch(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition", has_log_start=False
)
_UNKNOWN_ID = RejectedBatch(ErrorCode.UNKNOWN_TOPIC_ID, "no such topic id", has_log_start=False)
_BAD_ACKS = RejectedBatch(
    ErrorCode.INVALID_REQUIRED_ACKS, "acks is none of 0, 1 and -1", has_log_start=False
)
_INTERNAL = RejectedBatch(
    ErrorCode.INVALID_TOPIC_EXCEPTION, "clients do not write to it", has_log_start=False
)
_FORBIDDEN = RejectedBatch(
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no right to write to it", has_log_start=False
)
_TRANSACTION_FORBIDDEN = RejectedBatch(
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "no right to write with the transactional id",
    has_log_start=False,
)


class PartitionAppend(Struct):
    """One partition of a request, and its outcome."""

    topic_partition: TopicPartition
    outcome: AppendOutcome | None
    job: AppendJob | None = None


class PendingProduce(Struct):
    """A request in progress; its partitions in its order, by topic."""

    request: ProduceRequest
    token: ReplyToken
    now: Now
    topics: list[tuple[TopicProduceData, list[PartitionAppend]]] = field(default_factory=list)
    has_transactions: bool = False

    @property
    def jobs(self) -> list[PartitionAppend]:
        return [part for _, parts in self.topics for part in parts if part.job is not None]


class ProduceHandler:
    """Answers Produce."""

    def __init__(
        self,
        registry: TopicRegistry,
        snapshots: ProducerSnapshots,
        maintenance: TopicMaintenance,
        recovery: ProducerRecovery,
        verification: TransactionVerification,
        authorizer: Authorizer,
        *,
        appender: IoExecutor,
        checker: IoExecutor,
        reply: Callable[[ReplyToken, ProduceResponse | None], None],
        hang_up: Callable[[ReplyToken], None],
        readable: Callable[[TopicPartition], None],
        observe: Callable[[TopicEvent], None],
    ) -> None:
        self._registry = registry
        self._appending = LogAppender(snapshots)
        self._recovery = recovery
        self._verification = verification
        self._authorizer = authorizer
        self._appender = appender
        self._checker = checker
        self._maintenance = maintenance
        self._reply = reply
        self._hang_up = hang_up
        self._readable = readable
        self._observe = observe

    def handle(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, ProduceRequest)
        pending = PendingProduce(request, token, now)
        by_id = token.api_version >= _FIRST_VERSION_WITH_IDS
        forbidden = NONE_FORBIDDEN
        if self._authorizer.is_enabled:
            refusal = self._transaction_refusal(request, token)
            if refusal is not None:
                self._refuse_all(pending, refusal)
                return
            forbidden = self._forbidden(request, token, by_id=by_id)
        for data in request.topic_data:
            topic = (
                self._registry.by_id(data.topic_id) if by_id else self._registry.by_name(data.name)
            )
            name = data.name if topic is None else topic.name
            parts = []
            for partition_data in data.partition_data:
                topic_partition = TopicPartition(name, partition_data.index)
                if name in forbidden:
                    parts.append(PartitionAppend(topic_partition, _FORBIDDEN))
                elif topic is None:
                    parts.append(
                        PartitionAppend(topic_partition, _UNKNOWN_ID if by_id else _UNKNOWN)
                    )
                else:
                    parts.append(
                        self._partition_append(topic, topic_partition, partition_data, pending)
                    )
            pending.topics.append((data, parts))
        if pending.has_transactions:
            self._verify(pending)
        else:
            self._append_checked(pending)

    # Rights

    def _transaction_refusal(
        self, request: ProduceRequest, token: ReplyToken
    ) -> RejectedBatch | None:
        """Of the whole request: the right on the transactional id comes before all topics."""
        if not any(
            is_transactional(part.records)
            for data in request.topic_data
            for part in data.partition_data
        ):
            return None
        name = request.transactional_id
        if name is None:
            return TRANSACTION_UNNAMED
        is_allowed = self._authorizer.may_write_transactional_id(token, TransactionalId(name))
        return None if is_allowed else _TRANSACTION_FORBIDDEN

    def _forbidden(
        self, request: ProduceRequest, token: ReplyToken, *, by_id: bool
    ) -> frozenset[TopicName]:
        """An unknown id names no topic; an unknown name is forbidden like any other."""
        names = [data.name for data in request.topic_data]
        if by_id:
            found = [self._registry.topic_name(data.topic_id) for data in request.topic_data]
            names = [name for name in found if name is not None]
        return forbidden_topics(self._authorizer, token, AclOperation.WRITE, names)

    def _refuse_all(self, pending: PendingProduce, refusal: RejectedBatch) -> None:
        for data in pending.request.topic_data:
            topic = self._registry.topic_name(data.topic_id) or data.name
            keys = [TopicPartition(topic, part.index) for part in data.partition_data]
            pending.topics.append((data, [PartitionAppend(key, refusal) for key in keys]))
        self._answer(pending)

    def _append_checked(self, pending: PendingProduce) -> None:
        jobs = [part.job for part in pending.jobs if part.job is not None]
        if not jobs:
            self._answer(pending)
        elif self._takes_long(jobs):
            self._checker.submit(lambda: self._prepare(jobs), lambda _: self._append(pending, jobs))
        else:
            self._append(pending, jobs)

    # Transactions

    def _verify(self, pending: PendingProduce) -> None:
        """Ask the transaction coordinator, then append what may be appended."""
        name = pending.request.transactional_id
        transactional_id = None if name is None else TransactionalId(name)
        parts = [part for part in pending.jobs if part.job and _is_verified(part.job.header)]
        producers = {_producer(part.job) for part in parts if part.job}
        if transactional_id is None or len(producers) > 1:
            refusal = TRANSACTION_UNNAMED if transactional_id is None else SEVERAL_PRODUCERS
            for part in [part for _, parts in pending.topics for part in parts]:
                part.outcome, part.job = refusal, None
            self._answer(pending)
            return
        token, now = pending.token, pending.now

        def restored() -> None:
            known = [part for part in parts if part.job and part.job.partition.producers]
            for part in parts:
                if part.job is not None and part not in known:
                    part.outcome, part.job = _not_restored(part.job), None
            jobs = [part.job for part in known if part.job is not None]

            def verified(refused: dict[int, RejectedBatch]) -> None:
                for number, refusal in refused.items():
                    known[number].outcome, known[number].job = refusal, None
                self._append_checked(pending)

            self._verification.verify(transactional_id, jobs, token.api_version, now, verified)

        self._recovery.ensure(
            [part.job.partition for part in parts if part.job is not None], now, restored
        )

    def _partition_append(
        self,
        topic: Topic,
        topic_partition: TopicPartition,
        data: PartitionProduceData,
        pending: PendingProduce,
    ) -> PartitionAppend:
        """The batch to be appended, or the error."""
        partition = self._registry.partition(*topic_partition)
        if partition is None:
            return PartitionAppend(topic_partition, _UNKNOWN)
        header = check_request(data.records, pending.token.api_version)
        if isinstance(header, RejectedBatch):
            return PartitionAppend(topic_partition, header)
        if pending.request.acks not in (-1, 0, 1):
            return PartitionAppend(topic_partition, _BAD_ACKS)
        pending.has_transactions |= header.is_transactional
        if topic.is_internal:
            return PartitionAppend(topic_partition, _INTERNAL)
        log = partition.usable_log()
        if isinstance(log, ErrorCode):
            text = "the partition is not available"
            return PartitionAppend(topic_partition, RejectedBatch(log, text, has_log_start=False))
        assert data.records is not None
        job = AppendJob(partition, log, topic.effective, data.records, header, pending.now)
        return PartitionAppend(topic_partition, None, job)

    # Threads

    def _takes_long(self, jobs: list[AppendJob]) -> bool:
        return (
            sum(job.header.records_count for job in jobs) > CHECKED_RECORDS_MAX
            or sum(job.header.size for job in jobs) > CHECKED_BYTES_MAX
            or any(self._appending.must_read(job) for job in jobs)
        )

    def _prepare(self, jobs: list[AppendJob]) -> None:
        for job in jobs:
            self._appending.prepare(job, self._checker.pause)

    def _append(self, pending: PendingProduce, jobs: list[AppendJob]) -> None:
        append = self._appending.append
        self._appender.submit(
            lambda: [append(job) for job in jobs],
            lambda outcomes: self._appended(pending, outcomes),
        )

    def _appended(self, pending: PendingProduce, outcomes: list[AppendOutcome] | Exception) -> None:
        assert not isinstance(outcomes, Exception), "an error is the outcome of its batch"
        for part, outcome in zip(pending.jobs, outcomes, strict=True):
            part.outcome = outcome
            assert part.job is not None
            if isinstance(outcome, AppendFailed):
                part.outcome = self._failed(part.job, outcome)
            elif isinstance(outcome, AppendResult) and outcome.is_new:
                header = part.job.header
                self._observe(
                    RecordsAppended(part.topic_partition, header.records_count, header.size)
                )
                flush_ms = part.job.config.flush_ms
                if flush_ms is not None and not outcome.is_flushed:
                    self._maintenance.flush_by(part.job.partition, pending.now.mono_ms + flush_ms)
        self._answer(pending)

    def _failed(self, job: AppendJob, fault: AppendFailed) -> RejectedBatch:
        partition = job.partition
        if partition.deleted:
            return _UNKNOWN  # deleted meanwhile
        self._observe(
            PartitionFailed(partition.topic_partition, fault.reason, offline=partition.offline)
        )
        return RejectedBatch(ErrorCode.KAFKA_STORAGE_ERROR, fault.reason, has_log_start=False)

    # Response

    def _answer(self, pending: PendingProduce) -> None:
        written: list[TopicPartition] = []
        refused = False
        responses = []
        for data, parts in pending.topics:
            answers = []
            for part in parts:
                outcome = part.outcome
                assert isinstance(outcome, AppendResult | RejectedBatch)
                if isinstance(outcome, RejectedBatch):
                    refused = True
                    answers.append(self._refusal(part.topic_partition, outcome))
                    continue
                answers.append(
                    PartitionProduceResponse(
                        index=part.topic_partition.partition,
                        base_offset=outcome.base_offset,
                        log_append_time_ms=outcome.timestamp_ms,
                        log_start_offset=outcome.log_start_offset,
                    )
                )
                written.append(part.topic_partition)
            responses.append(TopicProduceResponse(data.name, data.topic_id, answers))
        if pending.request.acks != 0:
            self._reply(pending.token, ProduceResponse(responses))
        elif refused:
            # Without a response, only a closed connection makes the producer refresh its metadata.
            self._hang_up(pending.token)
        else:
            self._reply(pending.token, None)
        for topic_partition in written:
            self._readable(topic_partition)

    def _refusal(
        self, topic_partition: TopicPartition, refusal: RejectedBatch
    ) -> PartitionProduceResponse:
        self._observe(ProduceRefused(topic_partition, refusal.error_code, refusal.reason))
        log_start_offset = _NO_OFFSET
        if refusal.has_log_start:
            partition = self._registry.partition(*topic_partition)
            if partition is not None and partition.log is not None:
                log_start_offset = partition.log.log_start_offset
        return PartitionProduceResponse(
            index=topic_partition.partition,
            error_code=refusal.error_code,
            base_offset=_NO_OFFSET,
            log_start_offset=log_start_offset,
            record_errors=refusal.record_errors,
            error_message=refusal.message,
        )


def _is_verified(header: BatchHeader) -> bool:
    """As in Kafka, a transactional batch without a producer is not part of a transaction."""
    return header.is_transactional and header.producer_id > NO_PRODUCER_ID


def _producer(job: AppendJob) -> tuple[int, int]:
    return job.header.producer_id, job.header.producer_epoch


def _not_restored(job: AppendJob) -> RejectedBatch:
    error_code = job.partition.read_error()
    return RejectedBatch(error_code, "the producers are not known", has_log_start=False)
