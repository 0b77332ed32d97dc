"""Transactional clients of a simulated world: copiers, their doubles, and readers.

A copier moves numbered records of its own to the target topic: each transaction has some records
and the position up to which they go, committed for a group of its own. It behaves as the clients
of Kafka do: what may be retried is repeated until it is answered, with the same contents. A client
is a generator that yields a request, and is sent the response; None if it got none.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final, NamedTuple

from protocol.messages import Request, Response
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
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
from protocol.names import ErrorCode, GroupId, ProducerId, TopicName
from storage.batch.record_batch import (
    TRANSACTIONAL_FLAG,
    encode_batch,
    iter_batches,
    stored_records,
)
from tests.simulator.sim import Broken, Sim

SOURCE: Final = TopicName("source")
TARGET: Final = TopicName("target")
PARTITIONS: Final = 2
RECORDS_MAX: Final = 5
BATCH_BYTES_MAX: Final = 1 << 20

RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # of a topic that is not loaded
    }
)
BACKOFF_MS: Final = 100


class Ask(NamedTuple):
    """One request. A request that may arrive late is one that a newer connection overtakes."""

    request: Request
    version: int
    may_arrive_late: bool = False


Script = Generator[Ask | int, Response | None, None]
"""An int is a time to wait, in milliseconds."""


class Fatal(Exception):
    """The producer's process ends: another one begins in its place."""


class Progress:
    """What the copiers of one transactional id may count on."""

    def __init__(self) -> None:
        self.committed = 0  # the position of the last commit that was acknowledged
        self.fenced = 0
        self.aborted = 0
        self.commits = 0
        self.shared_epochs: set[int] = set()  # producers whose transactions have one epoch


class Copier:
    """A process that copies, until it is fenced or the run ends."""

    def __init__(self, sim: Sim, name: str, progress: Progress, *, version: int) -> None:
        """`version` is the transaction version: 1, or 2 (KIP-890)."""
        self.name = name
        self.group_id = GroupId(f"group-of-{name}")
        self.version = version
        self.progress = progress
        self.position = -1
        self._sim = sim
        self._producer_id = ProducerId(-1)
        self._epoch = -1
        self._sequences: dict[int, int] = {}
        self._timeout_ms = sim.dice.choice((3_000, 60_000))

    def script(self, ends_at: Callable[[], int | None]) -> Script:
        """Copy; to this position and no further, once there is one."""
        yield from self._begin_session()
        while True:
            end = ends_at()
            if end is not None and self.position >= end:
                yield 1_000
                continue
            count = self._sim.between(1, RECORDS_MAX)
            if end is not None:
                count = min(count, end - self.position)
            numbers = range(self.position, self.position + count)
            if (yield from self._transaction(numbers)):
                self.position += count
                self.progress.commits += 1
            else:
                self.progress.aborted += 1
            if self._sim.happens(0.1):
                yield from self._read_position()
            yield self._sim.around(150)

    # ------------------------------------------------------------ a session

    def _begin_session(self) -> Script:
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=self._timeout_ms
        )
        response = yield from self._retried(Ask(request, 4), _top_level)
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code is not ErrorCode.NONE:
            raise Fatal(response.error_code.name)
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch
        self._sequences = {}
        if self.version == 1:
            self.progress.shared_epochs.add(self._producer_id)
        yield from self._read_position()

    def _read_position(self) -> Script:
        """Waits for the transaction before it: what is pending is not stable."""
        at_least = self.progress.committed
        wanted = OffsetFetchRequestGroup(
            self.group_id, topics=[OffsetFetchRequestTopics(name=SOURCE, partition_indexes=[0])]
        )
        request = OffsetFetchRequest(groups=[wanted], require_stable=True)
        response = yield from self._retried(Ask(request, 9), _of_offset_fetch)
        assert isinstance(response, OffsetFetchResponse)
        error_code = _of_offset_fetch(response)
        if error_code is not ErrorCode.NONE:
            raise Fatal(error_code.name)
        found = response.groups[0].topics[0].partitions[0].committed_offset
        position = max(found, 0)
        if position < at_least:
            raise Broken(f"{self.name}: commit {at_least} was acknowledged, {position} is there")
        self.position = position

    # ------------------------------------------------------------ a transaction

    def _transaction(self, numbers: range) -> Generator[Ask | int, Response | None, bool]:
        """Whether it was committed. Raises Fatal if only a new session helps."""
        try:
            yield from self._write(numbers)
            if self._sim.happens(0.9):
                yield from self._commit_position(numbers.stop)
                commits = self._sim.happens(0.9)
            else:
                commits = False  # records without their position must not become visible
        except _Abort:
            commits = False
        yield self._sim.around(30)
        yield from self._end(commits=commits)
        if commits:
            self.progress.committed = max(self.progress.committed, numbers.stop)
        else:
            yield from self._read_position()
        return commits

    def _write(self, numbers: range) -> Script:
        by_partition: dict[int, list[int]] = {}
        for number in numbers:
            by_partition.setdefault(number % PARTITIONS, []).append(number)
        if self.version == 1:
            yield from self._add_partitions(sorted(by_partition))
        batches = []
        for partition, part in sorted(by_partition.items()):
            records = [(self.name.encode(), str(number).encode()) for number in part]
            sequence = self._sequences.get(partition, 0)
            encoded = encode_batch(
                records,
                0,
                self._sim.now_ms,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=sequence,
                attributes=TRANSACTIONAL_FLAG,
            )
            self._sequences[partition] = sequence + len(records)
            batches.append(PartitionProduceData(partition, encoded))
        for data in (batches,) if self._sim.happens(0.5) else [[batch] for batch in batches]:
            request = ProduceRequest(
                self.name, -1, 30_000, [TopicProduceData(name=TARGET, partition_data=data)]
            )
            late = self.version > 1
            ask = Ask(request, 12 if self.version > 1 else 11, may_arrive_late=late)
            response = yield from self._retried(ask, _of_produce)
            assert isinstance(response, ProduceResponse)
            self._check(_of_produce(response))

    def _add_partitions(self, partitions: Sequence[int]) -> Script:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(TARGET, partitions)],
        )
        response = yield from self._retried(Ask(request, 3), _of_add_partitions)
        assert isinstance(response, AddPartitionsToTxnResponse)
        self._check(_of_add_partitions(response))

    def _commit_position(self, position: int) -> Script:
        if self.version == 1:
            adding = AddOffsetsToTxnRequest(
                self.name, self._producer_id, self._epoch, self.group_id
            )
            added = yield from self._retried(Ask(adding, 3), _top_level)
            assert isinstance(added, AddOffsetsToTxnResponse)
            self._check(added.error_code)
        topic = TxnOffsetCommitRequestTopic(SOURCE, [TxnOffsetCommitRequestPartition(0, position)])
        request = TxnOffsetCommitRequest(
            self.name, self.group_id, self._producer_id, self._epoch, topics=[topic]
        )
        late = self.version > 1
        ask = Ask(request, 5 if self.version > 1 else 4, may_arrive_late=late)
        response = yield from self._retried(ask, _of_txn_offset_commit)
        assert isinstance(response, TxnOffsetCommitResponse)
        self._check(_of_txn_offset_commit(response))

    def _end(self, *, commits: bool) -> Script:
        request = EndTxnRequest(self.name, self._producer_id, self._epoch, commits)
        late = self.version > 1
        ask = Ask(request, 5 if self.version > 1 else 4, may_arrive_late=late)
        response = yield from self._retried(ask, _top_level)
        assert isinstance(response, EndTxnResponse)
        if response.error_code is not ErrorCode.NONE:
            raise Fatal(response.error_code.name)
        if self.version > 1:
            if (response.producer_id, response.producer_epoch) == (self._producer_id, self._epoch):
                raise Broken(f"{self.name}: the epoch of the next transaction is not a new one")
            self._producer_id = response.producer_id
            self._epoch = response.producer_epoch
            self._sequences = {}

    def _check(self, error_code: ErrorCode) -> None:
        if error_code is ErrorCode.NONE:
            return
        if self.version == 1:
            raise Fatal(error_code.name)  # its sequence numbers are in doubt
        if error_code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            raise Fatal(error_code.name)
        raise _Abort

    def _retried(
        self, ask: Ask, error_of: Callable[[Response], ErrorCode]
    ) -> Generator[Ask | int, Response | None, Response]:
        while True:
            response = yield ask
            if response is not None and error_of(response) not in RETRIABLE:
                return response
            yield BACKOFF_MS + self._sim.around(BACKOFF_MS)


class _Abort(Exception):
    """The transaction can only be aborted."""


def _top_level(response: Response) -> ErrorCode:
    error_code = getattr(response, "error_code", ErrorCode.NONE)
    assert isinstance(error_code, ErrorCode)
    return error_code


def _first(errors: Sequence[ErrorCode]) -> ErrorCode:
    """One that cannot be retried, before one that can."""
    wrong = [error for error in errors if error is not ErrorCode.NONE]
    final = [error for error in wrong if error not in RETRIABLE]
    return (final or wrong or [ErrorCode.NONE])[0]


def _of_produce(response: Response) -> ErrorCode:
    assert isinstance(response, ProduceResponse)
    return _first([p.error_code for t in response.responses for p in t.partition_responses])


def _of_add_partitions(response: Response) -> ErrorCode:
    assert isinstance(response, AddPartitionsToTxnResponse)
    return _first(
        [
            partition.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
        ]
    )


def _of_txn_offset_commit(response: Response) -> ErrorCode:
    assert isinstance(response, TxnOffsetCommitResponse)
    return _first([p.error_code for t in response.topics for p in t.partitions])


def _of_offset_fetch(response: Response) -> ErrorCode:
    assert isinstance(response, OffsetFetchResponse)
    group = response.groups[0]
    return _first([group.error_code, *(p.error_code for t in group.topics for p in t.partitions)])


class Visible(NamedTuple):
    """What a read_committed consumer sees of a partition, below `end`."""

    end: int
    records: tuple[tuple[int, str, int], ...]
    """(offset, name of the copier, number)"""


def read_committed(partition: int) -> Generator[Ask | int, Response | None, Visible]:
    """The whole partition, read and filtered as a consumer does it."""
    records: list[tuple[int, str, int]] = []
    offset = 0
    while True:
        topic = FetchTopic(
            topic=TARGET,
            partitions=[
                FetchPartition(
                    partition=partition, fetch_offset=offset, partition_max_bytes=BATCH_BYTES_MAX
                )
            ],
        )
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, isolation_level=1, topics=[topic], max_bytes=BATCH_BYTES_MAX
        )
        response = yield Ask(request, 12)
        if response is None:
            yield BACKOFF_MS
            continue
        assert isinstance(response, FetchResponse)
        data = response.responses[0].partitions[0]
        if data.error_code is not ErrorCode.NONE:
            if data.error_code not in RETRIABLE:
                raise Broken(f"Fetch of partition {partition} at {offset}: {data.error_code.name}")
            yield BACKOFF_MS
            continue
        if not data.records:
            if offset < data.last_stable_offset:
                raise Broken(f"nothing at {offset}, below {data.last_stable_offset}")
            return Visible(data.last_stable_offset, tuple(records))
        offset = _take(data, offset, records)


def _take(data: PartitionData, offset: int, records: list[tuple[int, str, int]]) -> int:
    """Add what is not aborted to the records; the next offset."""
    assert data.records is not None
    starts = sorted(data.aborted_transactions or (), key=lambda each: each.first_offset)
    aborted: set[int] = set()
    for position, header in iter_batches(data.records):
        while starts and starts[0].first_offset <= header.last_offset:
            aborted.add(starts.pop(0).producer_id)
        if header.last_offset >= data.last_stable_offset:
            raise Broken(f"offset {header.last_offset} is beyond {data.last_stable_offset}")
        batch = data.records[position : position + header.size]
        if header.is_control:
            aborted.discard(header.producer_id)  # its transaction has ended
        for record in stored_records(batch):  # a control batch has none
            if record.offset >= offset and header.producer_id not in aborted:
                assert record.key is not None
                assert record.value is not None
                records.append((record.offset, record.key.decode(), int(record.value)))
        offset_after = header.last_offset + 1
    return max(offset, offset_after)
