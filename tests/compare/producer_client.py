"""Producer client: the requests of an idempotent or transactional producer.

A mixin of `Client`. The transactional id is the scenario's name, producer id and epoch are those of
the last answer that gave any, and the sequence of a batch follows the last one that was taken from
this client, unless the scenario gives others. Versions are the last ones that name topics.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from protocol.messages import Request, Response
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ZERO_TOPIC_ID,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    ProducerId,
    TopicId,
    TopicName,
)
from tests.compare.batches import TRANSACTIONAL, Producer, a_batch

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

MINUTE_MS: Final = 60_000

BY_ID: Final = 13
"""From this version on, Produce and Fetch name topics by their ids."""

_OPENS_A_TRANSACTION: Final = 12
"""From this version on, Produce adds its partitions to the transaction (KIP-890)."""


class Transactions(Protocol):
    """What a producer's steps need of the script."""

    group: GroupId
    given_ms: int

    def topic_id(self, name: str) -> TopicId: ...

    def until_ended(self, transactional_id: str) -> None: ...

    def until_aborted(self, transactional_id: str) -> None: ...


class ProducerSteps:
    """The steps of a producer; `Client` has the rest."""

    script: Transactions
    name: str
    producer_id: ProducerId = ProducerId(-1)
    producer_epoch: int = -1

    def ask(self, request: Request, version: int) -> Response | None:
        raise NotImplementedError

    def learn_producer(self, answer: Response) -> None:
        if not isinstance(answer, InitProducerIdResponse | EndTxnResponse):
            return
        if answer.error_code is ErrorCode.NONE and answer.producer_id != -1:
            self.producer_id = answer.producer_id
            self.producer_epoch = answer.producer_epoch
            self.sequences.clear()

    @property
    def sequences(self) -> dict[tuple[str, int], int]:
        """(topic, partition) -> the sequence of the next record."""
        known: dict[tuple[str, int], int] = self.__dict__.setdefault("_sequences", {})
        return known

    def init(
        self,
        *,
        txn: str | None = None,
        timeout_ms: int = MINUTE_MS,
        pid: int = -1,
        epoch: int = -1,
        version: int = 5,
    ) -> Response | None:
        """InitProducerId as a producer that starts; an open transaction is aborted first."""
        request = InitProducerIdRequest(self._txn(txn), timeout_ms)
        if version >= 3:
            request.producer_id, request.producer_epoch = ProducerId(pid), epoch
        answer = self.ask(request, version)
        if getattr(answer, "error_code", None) is ErrorCode.CONCURRENT_TRANSACTIONS:
            self.script.until_aborted(self._txn(txn))
        return answer

    def init_again(self, **options: object) -> Response | None:
        """InitProducerId as a producer that has an id already (KIP-360)."""
        present = {"pid": self.producer_id, "epoch": self.producer_epoch}
        return self.init(**{**present, **options})  # type: ignore[arg-type]

    def init_idempotent(self) -> Response | None:
        return self.ask(InitProducerIdRequest(None, MINUTE_MS), 5)

    def add(
        self,
        topics: Mapping[str, Sequence[int]],
        *,
        txn: str | None = None,
        pid: int | None = None,
        epoch: int | None = None,
        version: int = 3,
    ) -> Response | None:
        """AddPartitionsToTxn as a client sends it, up to v3."""
        named = [AddPartitionsToTxnTopic(TopicName(n), p) for n, p in topics.items()]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._txn(txn),
            v3_and_below_producer_id=self._pid(pid),
            v3_and_below_producer_epoch=self._epoch(epoch),
            v3_and_below_topics=named,
        )
        return self.ask(request, version)

    def add_offsets(
        self,
        *,
        group_id: str | None = None,
        txn: str | None = None,
        pid: int | None = None,
        epoch: int | None = None,
        version: int = 4,
    ) -> Response | None:
        request = AddOffsetsToTxnRequest(
            self._txn(txn), self._pid(pid), self._epoch(epoch), self._group_of(group_id)
        )
        return self.ask(request, version)

    def end(
        self,
        commit: bool,
        *,
        txn: str | None = None,
        pid: int | None = None,
        epoch: int | None = None,
        version: int = 5,
    ) -> Response | None:
        """EndTxn; after a success, wait until every marker is written."""
        request = EndTxnRequest(self._txn(txn), self._pid(pid), self._epoch(epoch), commit)
        answer = self.ask(request, version)
        if isinstance(answer, EndTxnResponse) and answer.error_code is ErrorCode.NONE:
            self.script.until_ended(self._txn(txn))
        return answer

    def commit_txn(self, **options: object) -> Response | None:
        return self.end(True, **options)  # type: ignore[arg-type]

    def abort_txn(self, **options: object) -> Response | None:
        return self.end(False, **options)  # type: ignore[arg-type]

    def send_records(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        is_transactional: bool = True,
        txn: str | None = "same as the scenario",
        pid: int | None = None,
        epoch: int | None = None,
        sequence: int | None = None,
        key: bytes | None = None,
        at_ms: int | None = None,
        version: int = 12,
    ) -> Response | None:
        """Produce one batch, in the transaction or as an idempotent producer."""
        values = values or (b"value",)
        place = (topic, partition)
        first = self.sequences.get(place, 0) if sequence is None else sequence
        producer = Producer(
            self._pid(pid), self._epoch(epoch), first, TRANSACTIONAL if is_transactional else 0
        )
        if txn == "same as the scenario":
            txn = self._txn(None) if is_transactional else None
        given = self.script.given_ms if at_ms is None else at_ms
        batch = a_batch(*values, key=key, at_ms=given, producer=producer)
        answer = self.ask_produce({topic: {partition: batch}}, txn=txn, version=version)
        if isinstance(answer, ProduceResponse):
            result = answer.responses[0].partition_responses[0]
            if result.error_code is ErrorCode.NONE:
                self.sequences[place] = first + len(values)
        return answer

    def ask_produce(
        self,
        batches: Mapping[str, Mapping[int, bytes]],
        *,
        txn: str | None = None,
        acks: int = -1,
        version: int = 12,
    ) -> Response | None:
        """Produce these bytes."""
        return self.ask(self.produce_request(batches, txn=txn, acks=acks, version=version), version)

    def produce_request(
        self,
        batches: Mapping[str, Mapping[int, bytes]],
        *,
        txn: str | None = None,
        acks: int = -1,
        version: int = 12,
    ) -> ProduceRequest:
        topics = [
            TopicProduceData(
                TopicName(name),
                self.script.topic_id(name) if version >= BY_ID else ZERO_TOPIC_ID,
                [PartitionProduceData(index, batch) for index, batch in of_topic.items()],
            )
            for name, of_topic in batches.items()
        ]
        return ProduceRequest(txn, acks, 10_000, topics)

    def commit_in_txn(
        self,
        topics: Mapping[str, Mapping[int, int | TxnOffsetCommitRequestPartition]],
        *,
        group_id: str | None = None,
        txn: str | None = None,
        pid: int | None = None,
        epoch: int | None = None,
        generation_id: int = NO_GENERATION,
        member_id: str = UNKNOWN_MEMBER_ID,
        instance_id: str | None = None,
        version: int = 5,
    ) -> Response | None:
        """TxnOffsetCommit."""
        named = [
            TxnOffsetCommitRequestTopic(
                TopicName(name),
                [
                    TxnOffsetCommitRequestPartition(index, offset)
                    if isinstance(offset, int)
                    else offset
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self._txn(txn),
            group_id=self._group_of(group_id),
            producer_id=self._pid(pid),
            producer_epoch=self._epoch(epoch),
            generation_id=GenerationId(generation_id),
            member_id=MemberId(member_id),
            group_instance_id=None if instance_id is None else GroupInstanceId(instance_id),
            topics=named,
        )
        return self.ask(request, version)

    # Readers of what producers wrote

    def read(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        isolation: int = READ_COMMITTED,
        max_bytes: int = 1_000_000,
        version: int = 12,
    ) -> Response | None:
        """Fetch without waiting."""
        request = self.fetch_request({topic: {partition: offset}}, version=version)
        request.isolation_level = isolation
        request.topics[0].partitions[0].partition_max_bytes = max_bytes
        return self.ask(request, version)

    def fetch_request(
        self, offsets: Mapping[str, Mapping[int, int]], *, version: int = 12
    ) -> FetchRequest:
        topics = [
            FetchTopic(
                TopicName(name),
                self.script.topic_id(name) if version >= BY_ID else ZERO_TOPIC_ID,
                [
                    FetchPartition(index, -1, offset, partition_max_bytes=1_000_000)
                    for index, offset in of_topic.items()
                ],
            )
            for name, of_topic in offsets.items()
        ]
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1_000_000, topics=topics)

    def list_offset(
        self,
        topic: str,
        timestamp: int = -1,
        *,
        partition: int = 0,
        isolation: int = READ_COMMITTED,
        version: int = 11,
    ) -> Response | None:
        named = ListOffsetsTopic(TopicName(topic), [ListOffsetsPartition(partition, -1, timestamp)])
        return self.ask(ListOffsetsRequest(-1, isolation, [named], 10_000), version)

    def describe_txn(self, *ids: str) -> Response | None:
        return self.ask(DescribeTransactionsRequest(ids or (self._txn(None),)), 0)

    def describe_producers(self, topics: Mapping[str, Sequence[int]]) -> Response | None:
        named = [DescribeProducersTopic(TopicName(name), p) for name, p in topics.items()]
        return self.ask(DescribeProducersRequest(named), 0)

    def _txn(self, txn: str | None) -> str:
        return self.script.group if txn is None else txn

    def _pid(self, pid: int | None) -> ProducerId:
        return self.producer_id if pid is None else ProducerId(pid)

    def _epoch(self, epoch: int | None) -> int:
        return self.producer_epoch if epoch is None else epoch

    def _group_of(self, group_id: str | None) -> GroupId:
        return self.script.group if group_id is None else GroupId(group_id)
