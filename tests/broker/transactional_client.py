"""Transactional client: a producer with a transactional id, in raw requests on a real socket.

By transaction version 2 (Produce v12, EndTxn v5) or, with `is_old`, by 1 (AddPartitionsToTxn,
Produce v9, EndTxn v3). A consumer of both isolation levels is here too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import time
from typing import Final, TypeVar

from protocol.messages import Request, Response
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
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
    TxnOffsetCommitResponse,
)
from protocol.names import CoordinatorType, ErrorCode, GroupId, ProducerId, TopicName
from storage.batch.record_batch import TRANSACTIONAL_FLAG, iter_batches, read_header, read_records
from tests.broker.shell import WAIT_S, Client
from tests.topics.batches import batch, damaged

TOPIC: Final = TopicName("orders")
GROUP: Final = GroupId("billing")
TIMEOUT_MS: Final = 60_000

_AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_PAUSE_S: Final = 0.01

R = TypeVar("R", bound=Response)


async def asked(client: Client, request: Request, version: int, expected: type[R]) -> R:
    response = await client.call(request, version)
    assert isinstance(response, expected)
    return response


async def _retried(attempt: Callable[[], Awaitable[ErrorCode]]) -> ErrorCode:
    """Until the transaction before is completed, as clients do."""
    async with asyncio.timeout(WAIT_S):
        while (error_code := await attempt()) in _AGAIN:  # noqa: ASYNC110 - a broker tells nobody
            await asyncio.sleep(_PAUSE_S)
    return error_code


class TransactionalProducer:
    def __init__(self, client: Client, name: str = "payments-1", *, is_old: bool = False) -> None:
        self.client = client
        self.name = name
        self.is_old = is_old
        self.producer_id = ProducerId(-1)
        self.epoch = -1
        self.timeout_ms = TIMEOUT_MS
        self._sequences: dict[int, int] = {}

    async def init(self) -> None:
        """As a client does: find the coordinator, then ask until the transaction before is over."""
        await self.find()
        request = InitProducerIdRequest(self.name, self.timeout_ms)
        async with asyncio.timeout(WAIT_S):
            answer = await asked(self.client, request, 5, InitProducerIdResponse)
            while answer.error_code in _AGAIN:
                await asyncio.sleep(_PAUSE_S)
                answer = await asked(self.client, request, 5, InitProducerIdResponse)
        assert answer.error_code is ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def find(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while await self.found() is not ErrorCode.NONE:  # noqa: ASYNC110 - a broker tells nobody
                await asyncio.sleep(_PAUSE_S)

    async def found(self) -> ErrorCode:
        request = FindCoordinatorRequest(
            key_type=CoordinatorType.TRANSACTION, coordinator_keys=[self.name]
        )
        answer = await asked(self.client, request, 5, FindCoordinatorResponse)
        return answer.coordinators[0].error_code

    async def send(self, *values: bytes, partition: int = 0) -> ErrorCode:
        return await _retried(lambda: self._send(*values, partition=partition))

    async def _send(self, *values: bytes, partition: int) -> ErrorCode:
        if self.is_old:
            topics = [AddPartitionsToTxnTopic(TOPIC, [partition])]
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=topics,
            )
            added = await asked(self.client, request, 3, AddPartitionsToTxnResponse)
            results = added.results_by_topic_v3_and_below[0].results_by_partition
            if results[0].partition_error_code is not ErrorCode.NONE:
                return results[0].partition_error_code
        return await self.produce(*values, partition=partition)

    async def produce(self, *values: bytes, partition: int = 0) -> ErrorCode:
        """Without AddPartitionsToTxn."""
        sequence = self._sequences.get(partition, 0)
        records = damaged(
            batch(*values, timestamp=int(time() * 1_000)),
            attributes=TRANSACTIONAL_FLAG,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
        )
        data = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(partition, records)])]
        request = ProduceRequest(self.name, -1, 30_000, data)
        version = 9 if self.is_old else 12
        answer = await asked(self.client, request, version, ProduceResponse)
        error_code = answer.responses[0].partition_responses[0].error_code
        if error_code is ErrorCode.NONE:
            self._sequences[partition] = sequence + len(values)
        return error_code

    async def commit_offset(self, offset: int, partition: int = 0) -> ErrorCode:
        return await _retried(lambda: self._commit_offset(offset, partition))

    async def _commit_offset(self, offset: int, partition: int) -> ErrorCode:
        if self.is_old:
            request = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, GROUP)
            added = await asked(self.client, request, 3, AddOffsetsToTxnResponse)
            if added.error_code is not ErrorCode.NONE:
                return added.error_code
        partitions = [TxnOffsetCommitRequestPartition(partition, offset)]
        commit = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=GROUP,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(TOPIC, partitions)],
        )
        version = 3 if self.is_old else 5
        answer = await asked(self.client, commit, version, TxnOffsetCommitResponse)
        return answer.topics[0].partitions[0].error_code

    async def end(self, *, commit: bool) -> ErrorCode:
        """Ask until the transaction before is over."""
        request = EndTxnRequest(self.name, self.producer_id, self.epoch, commit)
        version = 3 if self.is_old else 5
        async with asyncio.timeout(WAIT_S):
            answer = await asked(self.client, request, version, EndTxnResponse)
            while answer.error_code in _AGAIN:
                await asyncio.sleep(_PAUSE_S)
                answer = await asked(self.client, request, version, EndTxnResponse)
        if answer.error_code is ErrorCode.NONE and not self.is_old:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return answer.error_code


class Read:
    """What one Fetch from the beginning of a partition brought."""

    def __init__(self, response: FetchResponse) -> None:
        self.partition = response.responses[0].partitions[0]
        assert self.partition.error_code is ErrorCode.NONE
        self.lso = self.partition.last_stable_offset
        records = bytes(self.partition.records or b"")
        self._batches = [records[at : at + header.size] for at, header in iter_batches(records)]

    @property
    def is_stable(self) -> bool:
        return self.lso == self.partition.high_watermark

    def values(self, *, committed: bool) -> list[bytes]:
        """Of all records, or as a consumer with read_committed filters them."""
        aborted: dict[int, list[int]] = {}
        for found in self.partition.aborted_transactions or ():
            aborted.setdefault(found.producer_id, []).append(found.first_offset)
        ended: set[int] = set()
        values: list[bytes] = []
        for content in self._batches:
            header = read_header(content)
            if header.is_control:
                ended.discard(header.producer_id)
                continue
            starts = aborted.get(header.producer_id, [])
            if header.is_transactional and any(at <= header.base_offset for at in starts):
                ended.add(header.producer_id)
                starts[:] = [at for at in starts if at > header.base_offset]
            if committed and header.is_transactional and header.producer_id in ended:
                continue
            values += [value for _, _, _, value, _ in read_records(content) if value is not None]
        return values


async def fetched(client: Client, partition: int = 0, *, committed: bool = True) -> Read:
    wanted = FetchPartition(partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=[FetchTopic(TOPIC, partitions=[wanted])],
    )
    return Read(await asked(client, request, 12, FetchResponse))


async def committed_values(client: Client, partition: int = 0) -> list[bytes]:
    return (await fetched(client, partition)).values(committed=True)


async def stable(client: Client, partitions: Sequence[int] = (0,)) -> None:
    """Wait until no transaction is open in them."""
    async with asyncio.timeout(WAIT_S):
        for partition in partitions:
            while not (await fetched(client, partition)).is_stable:  # noqa: ASYNC110 - a broker tells nobody
                await asyncio.sleep(_PAUSE_S)


async def committed_offset(client: Client, partition: int = 0) -> int | ErrorCode:
    """As a consumer that waits for stable offsets asks; the error if it is not stable."""
    topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=[partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=topics)])
    request.require_stable = True
    answer = await asked(client, request, 9, OffsetFetchResponse)
    found = answer.groups[0].topics[0].partitions[0]
    return found.committed_offset if found.error_code is ErrorCode.NONE else found.error_code


async def stable_offset(client: Client, partition: int = 0) -> int:
    async with asyncio.timeout(WAIT_S):
        while isinstance(found := await committed_offset(client, partition), ErrorCode):  # noqa: ASYNC110 - a broker tells nobody
            await asyncio.sleep(_PAUSE_S)
    return found
