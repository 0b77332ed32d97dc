"""A world for the transaction coordinator: virtual time, logs in memory, and partitions that obey.

Drives the real TransactionCoordinator without sockets or a loop. By default all that is appended is
stored at once, all data is synced and all markers are taken at once; a test turns that off. A crash
drops what was not stored and loads the rest into another coordinator.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from protocol.messages import Request, Response
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.names import (
    OFFSETS_TOPIC,
    ApiKey,
    ErrorCode,
    GroupId,
    ProducerId,
    TopicId,
    TopicName,
    TransactionalId,
)
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.transactions import Done, PartitionErrors, TransactionMarker
from storage.api import TopicPartition
from tests.memory_log import MemoryLog
from transactions.coordinator import TransactionCoordinator
from transactions.events import TransactionEvent
from transactions.metadata import TransactionMetadata
from transactions.settings import TransactionSettings
from transactions.transaction import Transaction

START: Final = Now(1_000_000, 1_700_000_000_000)
TOPICS: Final = {"orders": 4, "payments": 2, OFFSETS_TOPIC: 50}
TIMEOUT_MS: Final = 60_000
TX: Final = TransactionalId("tx")
NEWEST: Final = {
    InitProducerIdRequest: 5,
    AddPartitionsToTxnRequest: 3,
    AddOffsetsToTxnRequest: 4,
    EndTxnRequest: 5,
    DescribeTransactionsRequest: 0,
    ListTransactionsRequest: 2,
}


def at(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


class Token(ReplyToken):
    """Remembers the answers."""

    __slots__ = ("answers",)

    def __init__(self, api_version: int, client_id: str = "client") -> None:
        super().__init__(api_version, client_id, "/127.0.0.1")
        self.answers: list[Response] = []


class Topics:
    """Satisfies TopicsView for what the coordinator asks."""

    def __init__(self) -> None:
        self.counts = dict(TOPICS)

    @property
    def topics_version(self) -> int:
        return 0

    def topic_names(self) -> Collection[TopicName]:
        return [TopicName(name) for name in self.counts]

    def partition_count(self, name: TopicName) -> int | None:
        return self.counts.get(name)

    def partition_racks(self, _name: TopicName) -> Sequence[Sequence[str]]:
        return ()

    def topic_id(self, _name: TopicName) -> TopicId | None:
        return None

    def topic_name(self, _topic_id: TopicId) -> TopicName | None:
        return None


class Ids:
    """A source of producer ids: 1000, 1001, ... over every restart."""

    def __init__(self) -> None:
        self.next = 1_000
        self.is_empty = False
        self.waiting: list[Callable[[ProducerId | None], None]] | None = None

    def take(self, done: Callable[[ProducerId | None], None], /) -> None:
        if self.waiting is not None:
            self.waiting.append(done)
        elif self.is_empty:
            done(None)
        else:
            self.next += 1
            done(ProducerId(self.next - 1))

    def hold(self) -> None:
        self.waiting = []

    def give(self) -> None:
        waiting, self.waiting = self.waiting or [], None
        for done in waiting:
            self.take(done)


def _nothing(_partition: TopicPartition, _marker: TransactionMarker) -> None:
    pass


class Partitions:
    """The data plane: remembers the markers that were taken, and the order of what was asked."""

    def __init__(self) -> None:
        self.markers: list[tuple[TopicPartition, TransactionMarker]] = []
        self.synced: list[tuple[TopicPartition, ...]] = []
        self.tried = 0
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.sync_errors: dict[TopicPartition, ErrorCode] = {}
        self.held: list[Callable[[], None]] | None = None
        self._holds_syncs = False
        self.on_marker: Callable[[TopicPartition, TransactionMarker], None] = _nothing

    def sync(self, partitions: Sequence[TopicPartition], done: Done, /) -> None:
        self.synced.append(tuple(partitions))

        def answer() -> None:
            done({p: self.sync_errors.get(p, ErrorCode.NONE) for p in partitions})

        if self._holds_syncs:
            self._finish(answer)
        else:
            answer()

    def write_markers(
        self,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        _now: Now,
        done: Done,
        /,
    ) -> None:
        self.tried += 1

        def write() -> None:
            results = {p: self.errors.get(p, ErrorCode.NONE) for p in partitions}
            for partition, error_code in results.items():
                if error_code is ErrorCode.NONE:
                    self.markers.append((partition, marker))
                    self.on_marker(partition, marker)
            done(results)

        self._finish(write)

    def _finish(self, work: Callable[[], None]) -> None:
        if self.held is None:
            work()
        else:
            self.held.append(work)

    def hold(self, *, syncs: bool = False) -> None:
        """Write no marker until `release`, and sync nothing either."""
        self.held = self.held or []
        self._holds_syncs = syncs

    def release(self) -> None:
        held, self.held = self.held or [], None
        self._holds_syncs = False
        for work in held:
            work()

    def of(self, *names: TopicPartition) -> list[tuple[bool, int, int]]:
        """(commit, producer id, epoch) of the markers that these partitions took."""
        return [
            (marker.is_commit, marker.producer_id, marker.producer_epoch)
            for partition, marker in self.markers
            if partition in names
        ]


class World:
    def __init__(
        self,
        settings: TransactionSettings | None = None,
        *,
        version: int = 2,
        authorizer: Authorizer = ALLOW_ALL,
        partition_count: int = 1,
    ) -> None:
        self.settings = settings or TransactionSettings()
        self.version = version
        self.authorizer = authorizer
        self.now = START
        self.topics = Topics()
        self.ids = Ids()
        self.partitions = Partitions()
        self.events: list[TransactionEvent] = []
        self.replies: list[Response] = []
        self.wakes = 0
        self.failures: list[tuple[int, Exception]] = []
        self.storing = True
        self.logs: dict[int, MemoryLog] = {}
        self.coordinator = self.new_coordinator()
        if partition_count:
            self.coordinator.partition_count = partition_count
            for partition in range(partition_count):
                self.logs[partition] = MemoryLog()
                self.load(partition)

    def new_coordinator(self, *, unsynced_data_lost: bool = False) -> TransactionCoordinator:
        return TransactionCoordinator(
            self.settings,
            partitions=self.partitions,
            producer_ids=self.ids,
            topics=self.topics,
            reply=self._reply,
            observe=self.events.append,
            shard_failed=lambda partition, failure: self.failures.append((partition, failure)),
            wake=self._wake,
            transaction_version=lambda: self.version,
            authorizer=self.authorizer,
            unsynced_data_lost=unsynced_data_lost,
        )

    def _reply(self, token: ReplyToken, response: Response) -> None:
        assert isinstance(token, Token)
        token.answers.append(response)
        self.replies.append(response)

    def _wake(self) -> None:
        self.wakes += 1

    # ------------------------------------------------------------ the log

    @property
    def log(self) -> MemoryLog:
        return self.logs[0]

    def load(self, partition: int) -> None:
        """Load what the log has."""
        log = self.logs[partition]
        self.coordinator.begin_load(partition, log)
        self.coordinator.load_from(partition, None)
        self.coordinator.load(partition, log.records, log.end_position)
        self.coordinator.finish_load(partition, self.now)
        self.run()

    def crash(self, *, unsynced_data_lost: bool = False) -> None:
        """Kill the process: what was not stored is gone, and so is everything in memory."""
        self.partitions.held = None
        self.crash_holding(unsynced_data_lost=unsynced_data_lost)

    def crash_holding(self, *, unsynced_data_lost: bool = False, is_full: bool = False) -> None:
        """The same; the markers of the next process may be held, and its log may be full."""
        if self.partitions.held is not None:
            self.partitions.held.clear()
        self.ids.waiting = None
        self.coordinator = self.new_coordinator(unsynced_data_lost=unsynced_data_lost)
        self.coordinator.partition_count = len(self.logs)
        for partition, log in self.logs.items():
            self.logs[partition] = MemoryLog(log.survivors())
            self.logs[partition].leader_epoch = log.leader_epoch + 1
            self.logs[partition].full = is_full
            self.load(partition)

    def store(self) -> None:
        """Everything that was appended is durable."""
        for partition, log in self.logs.items():
            if log.stored_position != log.end_position:
                self.coordinator.on_stored(partition, log.store(), self.now)

    def run(self) -> None:
        """Let everything happen that needs no time to pass."""
        while True:
            if self.storing and any(
                log.stored_position != log.end_position for log in self.logs.values()
            ):
                self.store()
            elif self.coordinator.next_deadline_ms is not None and (
                self.coordinator.next_deadline_ms <= self.now.mono_ms
            ):
                self.coordinator.tick(self.now)
            else:
                return

    def advance(self, ms: int) -> None:
        """Let time pass, from deadline to deadline."""
        end_ms = self.now.mono_ms + ms
        while True:
            self.run()
            due_ms = self.coordinator.next_deadline_ms
            if due_ms is None or due_ms > end_ms:
                break
            self._move_to(due_ms)
        self._move_to(end_ms)
        self.run()

    def _move_to(self, mono_ms: int) -> None:
        passed_ms = mono_ms - self.now.mono_ms
        self.now = Now(mono_ms, self.now.wall_ms + passed_ms)

    # ------------------------------------------------------------ requests

    def send(self, request: Request, api_version: int | None = None) -> Token:
        version = NEWEST[type(request)] if api_version is None else api_version
        token = Token(version)
        key: ApiKey = type(request).API_KEY
        self.coordinator.handlers[key](request, token, self.now)
        self.run()
        return token

    def ask(self, request: Request, api_version: int | None = None) -> Response:
        token = self.send(request, api_version)
        assert len(token.answers) == 1, f"answered {len(token.answers)} times"
        return token.answers[0]

    def init(
        self,
        transactional_id: str | None = TX,
        producer_id: int = -1,
        epoch: int = -1,
        *,
        timeout_ms: int = TIMEOUT_MS,
        v: int = 5,
    ) -> tuple[ErrorCode, int, int]:
        request = InitProducerIdRequest(
            transactional_id, timeout_ms, ProducerId(producer_id), epoch
        )
        response = self.ask(request, v)
        assert isinstance(response, InitProducerIdResponse)
        return response.error_code, response.producer_id, response.producer_epoch

    def init_lost(self) -> Token:
        """An InitProducerId without an identity, whose answer nobody waits for."""
        return self.send(InitProducerIdRequest(TX, TIMEOUT_MS, ProducerId(-1), -1))

    def add(
        self,
        producer_id: int,
        epoch: int,
        *partitions: TopicPartition,
        transactional_id: str = TX,
        v: int = 3,
    ) -> ErrorCode:
        """The code of all partitions; they must be alike."""
        found = self.add_each(
            producer_id,
            epoch,
            *(partitions or (at("orders"),)),
            transactional_id=transactional_id,
            v=v,
        )
        assert len(set(found.values())) == 1, found
        return next(iter(found.values()))

    def add_each(
        self,
        producer_id: int,
        epoch: int,
        *partitions: TopicPartition,
        transactional_id: str = TX,
        v: int = 3,
    ) -> dict[TopicPartition, ErrorCode]:
        request = self.add_request(producer_id, epoch, *partitions, name=transactional_id)
        response = self.ask(request, v)
        assert isinstance(response, AddPartitionsToTxnResponse)
        return {
            TopicPartition(topic.name, result.partition_index): result.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }

    def add_request(
        self, producer_id: int, epoch: int, *partitions: TopicPartition, name: str = TX
    ) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=ProducerId(producer_id),
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(TopicName(p.topic), [p.partition]) for p in partitions
            ],
        )

    def add_offsets(
        self,
        producer_id: int,
        epoch: int,
        group_id: str = "group",
        *,
        transactional_id: str = TX,
        v: int = 4,
    ) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id, ProducerId(producer_id), epoch, GroupId(group_id)
        )
        response = self.ask(request, v)
        assert isinstance(response, AddOffsetsToTxnResponse)
        return response.error_code

    def produce(
        self,
        producer_id: int,
        epoch: int,
        *partitions: TopicPartition,
        transactional_id: str = TX,
        add: bool = True,
        wait: bool = False,
        done: Done | None = None,
    ) -> list[PartitionErrors]:
        """What Produce and TxnOffsetCommit ask; the list gets one entry, now or later."""
        answers: list[PartitionErrors] = []
        self.coordinator.add_or_verify(
            TransactionalId(transactional_id),
            ProducerId(producer_id),
            epoch,
            partitions or (at("orders"),),
            self.now,
            done or answers.append,
            add=add,
            wait=wait,
        )
        self.run()
        return answers

    def produced(
        self, producer_id: int, epoch: int, *partitions: TopicPartition, add: bool = True
    ) -> ErrorCode:
        (errors,) = self.produce(producer_id, epoch, *partitions, add=add)
        assert len(set(errors.values())) == 1, errors
        return next(iter(errors.values()))

    def end(
        self,
        producer_id: int,
        epoch: int,
        *,
        commit: bool = True,
        transactional_id: str = TX,
        v: int = 5,
    ) -> tuple[ErrorCode, int, int]:
        response = self.ask(self.end_request(producer_id, epoch, commit, transactional_id), v)
        assert isinstance(response, EndTxnResponse)
        return response.error_code, response.producer_id, response.producer_epoch

    def end_request(
        self, producer_id: int, epoch: int, commit: bool = True, transactional_id: str = TX
    ) -> EndTxnRequest:
        return EndTxnRequest(transactional_id, ProducerId(producer_id), epoch, commit)

    def describe(self, *transactional_ids: str) -> list[DescribedTransaction]:
        response = self.ask(DescribeTransactionsRequest(transactional_ids or (TX,)))
        assert isinstance(response, DescribeTransactionsResponse)
        return list(response.transaction_states)

    def list(self, *, v: int = 2, **filters: object) -> ListTransactionsResponse:
        response = self.ask(ListTransactionsRequest(**filters), v)  # type: ignore[arg-type]  # a test's
        assert isinstance(response, ListTransactionsResponse)
        return response

    # ------------------------------------------------------------ what is there

    @property
    def transaction(self) -> Transaction:
        found = self.coordinator.transaction(TX)
        assert found is not None
        return found

    @property
    def metadata(self) -> TransactionMetadata:
        return self.transaction.metadata

    @property
    def state(self) -> str:
        return self.metadata.state.wire_name

    def happened(self, kind: type[TransactionEvent]) -> Sequence[TransactionEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    def codes(self, errors: Mapping[TopicPartition, ErrorCode]) -> set[ErrorCode]:
        return set(errors.values())
