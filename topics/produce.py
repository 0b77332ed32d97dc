"""Produce: are these records taken, and at which offsets do they lie?

Route: dispatch -> DataPlane.handle -> Producing.handle -> TopicLog.append -> reply. Each partition
is decided for itself: the topic, the batch (`batch_check.py`), the producer's sequence numbers
(`producers.py`), then the append. Records are in the page cache when the producer is answered, and
on the disk if `flush.messages` says so; with one replica acks=all asks for no more than acks=1.

Transactions are not served yet. A transactional batch is answered as by a broker that does not know
its transactional id, which ends the producer's transaction for good.
Kafka's counterpart: `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from protocol.names import ErrorCode
from protocol.reply_token import ReplyToken
from purgatory.now import Now
from storage.api import LogClosed, TopicLog, TopicPartition
from storage.record_batch import NO_PRODUCER_ID
from topics.batch_check import Checked, Refusal, check_batch, check_request
from topics.events import PartitionFailed, ProduceRefused, RecordsAppended, TopicEvent
from topics.partition import Partition
from topics.producer_snapshot import ProducerSnapshots
from topics.producers import SentBatch
from topics.registry import Topic, TopicRegistry
from topics.upkeep import Upkeep

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
FIRST_VERSION_WITH_IDS: Final = 13

_UNKNOWN = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition", tells_log_start=False)
_UNKNOWN_ID = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "no such topic id", tells_log_start=False)
_BAD_ACKS = Refusal(
    ErrorCode.INVALID_REQUIRED_ACKS, "acks is none of 0, 1 and -1", tells_log_start=False
)
_INTERNAL = Refusal(
    ErrorCode.INVALID_TOPIC_EXCEPTION, "clients do not write to it", tells_log_start=False
)
_TRANSACTION_UNKNOWN = Refusal(
    ErrorCode.INVALID_PRODUCER_ID_MAPPING, "transactions are not served", tells_log_start=False
)
_TRANSACTION_UNNAMED = Refusal(
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "a transactional batch without a transactional id",
    tells_log_start=False,
)


class Appended(NamedTuple):
    """Where a batch lies; `timestamp_ms` is told where the log, not the producer, gave the time."""

    base_offset: int
    log_start_offset: int
    timestamp_ms: int = NO_TIMESTAMP


class Producing:
    """Answers Produce."""

    def __init__(
        self,
        registry: TopicRegistry,
        snapshots: ProducerSnapshots,
        upkeep: Upkeep,
        *,
        reply: Callable[[ReplyToken, ProduceResponse | None], None],
        hang_up: Callable[[ReplyToken], None],
        readable: Callable[[TopicPartition], None],
        observe: Callable[[TopicEvent], None],
    ) -> None:
        self._registry = registry
        self._snapshots = snapshots
        self._upkeep = upkeep
        self._reply = reply
        self._hang_up = hang_up
        self._readable = readable
        self._observe = observe

    def handle(self, request: ProduceRequest, token: ReplyToken, now: Now) -> None:
        written: list[TopicPartition] = []
        refused = False
        responses = []
        for topic_data in request.topic_data:
            by_id = token.api_version >= FIRST_VERSION_WITH_IDS
            topic = (
                self._registry.by_id(topic_data.topic_id)
                if by_id
                else self._registry.by_name(topic_data.name)
            )
            answers = []
            for data in topic_data.partition_data:
                if topic is None:
                    result: Appended | Refusal = _UNKNOWN_ID if by_id else _UNKNOWN
                else:
                    result = self._produce(topic, data, request, token.api_version, now)
                if isinstance(result, Refusal):
                    refused = True
                    name = topic_data.name if topic is None else topic.name
                    answers.append(self._refusal(TopicPartition(name, data.index), result))
                    continue
                answers.append(
                    PartitionProduceResponse(
                        index=data.index,
                        base_offset=result.base_offset,
                        log_append_time_ms=result.timestamp_ms,
                        log_start_offset=result.log_start_offset,
                    )
                )
                if topic is not None:
                    written.append(TopicPartition(topic.name, data.index))
            responses.append(TopicProduceResponse(topic_data.name, topic_data.topic_id, answers))
        if request.acks != 0:
            self._reply(token, ProduceResponse(responses))
        elif refused:
            # Nobody waits for an answer; only a closed connection makes such a producer look again.
            self._hang_up(token)
        else:
            self._reply(token, None)
        for topic_partition in written:
            self._readable(topic_partition)

    def _produce(
        self,
        topic: Topic,
        data: PartitionProduceData,
        request: ProduceRequest,
        api_version: int,
        now: Now,
    ) -> Appended | Refusal:
        partition = self._registry.partition(topic.name, data.index)
        if partition is None:
            return _UNKNOWN
        header = check_request(data.records, api_version)
        if isinstance(header, Refusal):
            return header
        if request.acks not in (-1, 0, 1):
            return _BAD_ACKS
        if header.is_transactional:
            known = request.transactional_id is not None
            return _TRANSACTION_UNKNOWN if known else _TRANSACTION_UNNAMED
        if topic.is_internal:
            return _INTERNAL
        log = partition.usable_log()
        if isinstance(log, ErrorCode):
            return Refusal(log, "the partition is not available", tells_log_start=False)
        assert data.records is not None
        checked = check_batch(
            data.records, header, topic.effective, partition.topic_partition, now.wall_ms
        )
        if isinstance(checked, Refusal):
            return checked
        return self._append(topic, partition, log, checked, now)

    def _append(
        self, topic: Topic, partition: Partition, log: TopicLog, checked: Checked, now: Now
    ) -> Appended | Refusal:
        """Append, unless the producer's numbers say that it was done before or is out of turn."""
        header = checked.header
        producers = partition.producers
        if header.producer_id != NO_PRODUCER_ID:
            producers = self._snapshots.producers_of(partition, log, now.wall_ms)
            verdict = producers.check(header)
            if isinstance(verdict, SentBatch):
                return Appended(verdict.first_offset, log.log_start_offset, verdict.timestamp_ms)
            if verdict is not None:
                return Refusal(verdict.error_code, verdict.reason)
        try:
            base_offset = log.append(checked.batch, now.wall_ms)
            partition.appended(header.records_count, header.size, now.mono_ms)
            if producers is not None:
                producers.appended(header, base_offset, checked.max_timestamp)
            if partition.unflushed_records >= topic.effective.flush_messages:
                partition.flush()
            elif topic.effective.flush_ms is not None:
                self._upkeep.flush_by(partition, now.mono_ms + topic.effective.flush_ms)
        except (OSError, LogClosed) as fault:
            reason = f"{type(fault).__name__}: {fault}"
            self._observe(
                PartitionFailed(partition.topic_partition, reason, offline=partition.offline)
            )
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, reason, tells_log_start=False)
        self._observe(RecordsAppended(partition.topic_partition, header.records_count, header.size))
        append_time_ms = now.wall_ms if topic.effective.log_append_time else NO_TIMESTAMP
        return Appended(base_offset, log.log_start_offset, append_time_ms)

    def _refusal(
        self, topic_partition: TopicPartition, refusal: Refusal
    ) -> PartitionProduceResponse:
        self._observe(ProduceRefused(topic_partition, refusal.error_code, refusal.reason))
        log_start_offset = NO_OFFSET
        if refusal.tells_log_start:
            partition = self._registry.partition(*topic_partition)
            if partition is not None and partition.log is not None:
                log_start_offset = partition.log.log_start_offset
        return PartitionProduceResponse(
            index=topic_partition.partition,
            error_code=refusal.error_code,
            base_offset=NO_OFFSET,
            log_start_offset=log_start_offset,
            record_errors=refusal.record_errors,
            error_message=refusal.message,
        )
