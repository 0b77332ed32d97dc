"""The node of simulated transactions: the three cores over one disk that can fail.

The group coordinator, the transaction coordinator and the data plane are the real ones, over the
real journal and logs. What threads do in the daemon is done by executors that take their time: work
and its result are separate actions, and the process may end between any two. Requests are handed
in without sockets; a response is lost when the process ends before it is given.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from broker.partitions.coordinator_logs import CoordinatorLogs
from broker.partitions.loading import Tail
from broker.transactions.partitions import AllPartitions, GroupVerification
from config.dynamic_rules import DynamicRules
from config.keys import Config
from coordinator.coordinator import GroupCoordinator
from coordinator.settings import GroupSettings
from protocol.messages import Request, Response
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.names import (
    OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    MemberId,
    TopicId,
    TopicName,
)
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import LogSettings, Position, TopicLog, TopicPartition
from storage.boot_record import BootRecord
from storage.journal.journal_limits import JournalLimits
from storage.log.checkpoints import NO_TOPIC_ID
from storage.open import JournalCallbacks, StorageSettings, open_storage, topics_file
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.simulator.sim import Sim
from tests.simulator.transaction_clients import PARTITIONS, SOURCE, TARGET
from tests.topics.plane import Cluster, Loggers
from topics.broker_config_store import BrokerConfigStore
from topics.catalog import expected_partitions
from topics.client_quota_store import ClientQuotaStore
from topics.data_plane import DataPlane
from topics.events import TopicChange, TopicCreated
from topics.group_config_store import GroupConfigStore
from topics.scram_store import ScramStore
from topics.settings import TopicSettings
from transactions.coordinator import TransactionCoordinator
from transactions.settings import TransactionSettings

T = TypeVar("T")

FOLDER: Final = "/data"
WALL_START_MS: Final = 1_700_000_000_000
STATE_PARTITIONS: Final = 2
OFFSETS_PARTITIONS: Final = 2
SLICE_RECORDS: Final = 5
RESTORE_BUDGET: Final = 100
LIMITS: Final = JournalLimits(
    queue_bytes=256 << 10,
    queue_entries=64,
    batch_bytes=64 << 10,
    group_bytes=16 << 10,
    file_bytes=128 << 10,
    pass_bytes=16 << 10,  # so small that a run sees checkpoints
)
LOG_SETTINGS: Final = LogSettings(
    segment_bytes=4 << 10, cleanup_delete=False, cleanup_compact=True, delete_retention_ms=2_000
)


class LateIo:
    """An executor whose work takes time; one after the other, in the order of `submit`."""

    def __init__(self, node: "TransactionNode") -> None:
        self._node = node
        self._queue: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._is_busy = False

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        self._queue.append((work, done))
        if not self._is_busy:
            self._is_busy = True
            self._node.later(self._delay(), self._work)

    def pause(self) -> None:
        """Nobody else waits."""

    def _delay(self) -> int:
        sim = self._node.sim
        return 0 if sim.happens(0.6) else sim.around(2 * self._node.slowness)

    def _work(self) -> None:
        work, done = self._queue.popleft()
        result: object
        try:
            result = work()
        except Exception as error:
            result = error
        self._node.later(self._delay(), partial(self._finish, done, result))

    def _finish(self, done: Callable[[object], None], result: object) -> None:
        self._is_busy = bool(self._queue)
        if self._is_busy:
            self._node.later(self._delay(), self._work)
        done(result)


class Token(ReplyToken):
    """A request of a client, and where its response goes."""

    def __init__(self, version: int, answered: Callable[[Response | None], None]) -> None:
        super().__init__(version, "client", "/127.0.0.1")
        self.answered = answered


class TransactionNode:
    """One process. A dead one does nothing more; the next one is another object."""

    def __init__(
        self,
        sim: Sim,
        disk: SimulatedDisk,
        incarnation: int,
        *,
        boot: int,
        is_synced: bool,
        died: Callable[["TransactionNode"], None],
    ) -> None:
        self.sim = sim
        self.disk = disk
        self.incarnation = incarnation
        self.is_alive = True
        self.lost_power = False
        self.slowness = 1.0
        self._boot_id = f"boot-{boot}"
        self._is_synced = is_synced
        self._died = died
        self._mono_start_ms = sim.between(0, 1_000_000) - sim.now_ms
        self._is_flushing = False
        self._is_recorded = False
        self._tick_at_ms: int | None = None
        self._loading: set[TopicPartition] = set()
        self._ids = 0
        self._topic_ids = 0

    @property
    def now(self) -> Now:
        return Now(self._mono_start_ms + self.sim.now_ms, WALL_START_MS + self.sim.now_ms)

    # ------------------------------------------------------------ a start

    def start(self) -> None:
        """Recover, be elected everywhere, begin to load. Raises PowerCut."""
        if not self.disk.exists(FOLDER):
            self.disk.make_dir(FOLDER)
            self.disk.sync_dir("/")
        catalog = topics_file(self.disk, FOLDER)
        storage = open_storage(
            self.disk,
            FOLDER,
            StorageSettings(
                LIMITS,
                required=(OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC),
                is_synced=self._is_synced,
            ),
            lambda _: None,
            expects=expected_partitions(catalog, repair=False),
            callbacks=JournalCallbacks(stored=self._stored, failed=self._failed),
        )
        self.store, self.journal = storage.store, storage.journal
        was_clean = self.store.was_clean
        self.boot = BootRecord(self.disk, FOLDER, self._boot_id, was_clean=was_clean)
        self.verification = GroupVerification()
        settings = TopicSettings(
            offsets_topic_num_partitions=OFFSETS_PARTITIONS,
            transaction_state_log_num_partitions=STATE_PARTITIONS,
            flush="commit" if self._is_synced else "os",
            broker_properties={"log.retention.ms": "-1", "log.segment.bytes": "1048576"},
        )
        group_configs = GroupConfigStore(
            storage.group_configs_file, settings.broker_properties, lambda _: None
        )
        broker_configs = BrokerConfigStore(
            storage.broker_configs_file,
            DynamicRules(Config()),
            settings.broker_properties,
            lambda _: None,
        )
        self.data_plane = DataPlane(
            self.store,
            storage.topics_file,
            settings,
            cluster=Cluster(),
            group_configs=group_configs,
            broker_configs=broker_configs,
            scram=ScramStore(storage.scram_file, lambda _: None, lambda: b"a secret"),
            client_quotas=ClientQuotaStore(storage.client_quotas_file, 10, lambda _: None),
            loggers=Loggers(),
            reply=self._reply,
            observe=lambda _: None,
            hang_up=lambda token: self._reply(token, None),
            producer_snapshot=storage.producers_file,
            new_topic_id=self._new_topic_id,
            appender=LateIo(self),
            checker=LateIo(self),
            reader=LateIo(self),
            admin=LateIo(self),
        )
        self.data_plane.registry.subscribe(self._topic_changed)
        self._make_coordinators()
        offsets_id = self.data_plane.registry.topic_id(OFFSETS_TOPIC)
        assert offsets_id is not None
        for partition in range(OFFSETS_PARTITIONS):
            self._take_over(OFFSETS_TOPIC, partition, offsets_id)
        self._adopt_transaction_state()
        self.later(0, self._create_topics)

    def _make_coordinators(self) -> None:
        registry = self.data_plane.registry
        self.coordinator = GroupCoordinator(
            GroupSettings(offsets_topic_num_partitions=OFFSETS_PARTITIONS),
            new_member_id=self._new_member_id,
            topics=registry,
            endpoint=lambda _: (1, "localhost", 9092),
            reply=self._reply,
            observe=lambda _: None,
            verifier=self.verification,
            first_unstable_changed=self._first_unstable_changed,
        )
        self.transactions = TransactionCoordinator(
            TransactionSettings(
                offsets_topic_num_partitions=OFFSETS_PARTITIONS,
                transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000,
            ),
            partitions=AllPartitions(self.data_plane.markers, self.coordinator, lambda _: None),
            producer_ids=self.data_plane.producer_ids,
            topics=registry,
            reply=self._reply,
            observe=lambda _: None,
            wake=lambda: self.later(0, lambda: None),
            unsynced_data_lost=self.boot.lost and self._is_synced,
        )
        self.verification.coordinator = self.transactions
        self.verification.is_enabled = lambda: True
        self.data_plane.set_verifier(self.transactions)
        self.handlers: dict[int, Handler] = {
            **self.data_plane.handlers,
            **self.coordinator.handlers,
            **self.transactions.handlers,
        }

    def _first_unstable_changed(self, partition: int, offset: Position | None) -> None:
        self.data_plane.set_first_unstable(TopicPartition(OFFSETS_TOPIC, partition), offset)

    def _create_topics(self) -> None:
        """As an administrator who tries until it is done."""
        names = [
            (name, count)
            for name, count in ((SOURCE, 1), (TARGET, PARTITIONS))
            if self.data_plane.registry.by_name(name) is None
        ]
        if self.data_plane.registry.by_name(TRANSACTION_STATE_TOPIC) is None:
            self.data_plane.create_transaction_state_topic()
        if names:
            topics = [CreatableTopic(name, count, 1) for name, count in names]
            self.request(CreateTopicsRequest(topics, 30_000), 5, lambda _: None)
        if names or not self.transactions.partition_count:
            self.later(500, self._create_topics)

    def _topic_changed(self, change: TopicChange) -> None:
        if isinstance(change, TopicCreated) and change.name == TRANSACTION_STATE_TOPIC:
            self.later(0, self._adopt_transaction_state)

    def _adopt_transaction_state(self) -> None:
        topic = self.data_plane.registry.by_name(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return
        self.transactions.partition_count = len(topic.partitions)
        for partition in range(len(topic.partitions)):
            self._take_over(TRANSACTION_STATE_TOPIC, partition, topic.topic_id)

    # ------------------------------------------------------------ loading

    def _take_over(self, topic: TopicName, partition: int, topic_id: UUID) -> None:
        logs = CoordinatorLogs(
            self.disk, self.store, self.journal, topic_id or NO_TOPIC_ID, LOG_SETTINGS, topic
        )
        logs.elect(partition)
        log, view = logs.open(partition)
        core = self._core(topic)
        self._loading.add(TopicPartition(topic, partition))
        core.begin_load(partition, log)
        snapshot = logs.snapshot(partition)[0] if topic == OFFSETS_TOPIC else None
        tail = Tail(view, snapshot, core.records_of)
        core.load_from(partition, tail.load_start)
        slices: list[tuple[Sequence[Any], int]] = []
        while tail.read_on():
            slices += [
                (tail.records[i : i + SLICE_RECORDS], tail.next_offset)
                for i in range(0, len(tail.records), SLICE_RECORDS)
            ]
        self.later(self.sim.around(3), partial(self._load, topic, partition, iter(slices), view))

    def _core(self, topic: str) -> Any:
        return self.coordinator if topic == OFFSETS_TOPIC else self.transactions

    def _load(
        self,
        topic: TopicName,
        partition: int,
        slices: Iterator[tuple[Sequence[Any], int]],
        view: TopicLog,
    ) -> None:
        core, following = self._core(topic), next(slices, None)
        if following is None:
            core.finish_load(partition, self.now)
            self.data_plane.attach(view)
            self.later(self.sim.around(3), partial(self._restore, topic, partition))
            return
        core.load(partition, *following)
        self.later(self.sim.around(3), partial(self._load, topic, partition, slices, view))

    def _restore(self, topic: TopicName, partition: int) -> None:
        if self._core(topic).restore_slice(partition, self.now, RESTORE_BUDGET):
            self.later(self.sim.around(3), partial(self._restore, topic, partition))
            return
        self._loading.discard(TopicPartition(topic, partition))

    # ------------------------------------------------------------ requests

    def request(
        self, request: Request, version: int, answered: Callable[[Response | None], None]
    ) -> None:
        """Hand a request in; `answered` is called once, or never if the process ends."""
        token = Token(version, answered)
        self.later(0, partial(self.handlers[request.API_KEY], request, token, self.now))

    def _reply(self, token: ReplyToken, response: Response | None) -> None:
        assert isinstance(token, Token)
        token.answered(response)

    def _new_member_id(self, prefix: str = "member") -> MemberId:
        self._ids += 1
        return MemberId(f"{prefix}-{self.incarnation}.{self._ids}")

    def _new_topic_id(self) -> TopicId:
        self._topic_ids += 1
        return UUID(int=(self.incarnation << 32) + self._topic_ids)

    # ------------------------------------------------------------ the other work of the shell

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.sim.after(delay_ms, partial(self._act, action))

    def _act(self, action: Callable[[], None]) -> None:
        if not self.is_alive:
            return
        try:
            action()
            self._record_boot()
        except PowerCut:
            self.lose_power()
            return
        self._arrange()

    def _record_boot(self) -> None:
        """What a power failure took is settled: from now on, it is this boot that counts."""
        if not self._is_recorded and self.is_serving and not self.transactions.unsettled_partitions:
            self._is_recorded = True
            self.boot.save()

    def _arrange(self) -> None:
        """After each action: is there something to flush, and when is the next deadline?"""
        if not self._is_flushing and self.journal.queued_bytes > 0:
            self._is_flushing = True
            self.later(self.sim.around(2 * self.slowness), self._flush)
        parts = (self.coordinator, self.transactions, self.data_plane)
        deadlines = [part.next_deadline_ms for part in parts]
        deadline_ms = min((each for each in deadlines if each is not None), default=None)
        if deadline_ms is None:
            return
        at_ms = max(deadline_ms - self._mono_start_ms, self.sim.now_ms)
        if self._tick_at_ms is None or at_ms < self._tick_at_ms:
            self._tick_at_ms = at_ms
            self.later(at_ms - self.sim.now_ms, partial(self._tick, at_ms))

    def _tick(self, at_ms: int) -> None:
        if at_ms == self._tick_at_ms:
            self._tick_at_ms = None
            for part in (self.coordinator, self.transactions, self.data_plane):
                part.tick(self.now)

    def _flush(self) -> None:
        self._is_flushing = False
        before = self.journal.checkpointer.logs
        self.journal.pump()
        if self.journal.checkpointer.logs is not before:
            self.later(self.sim.around(20), self._checkpoint)

    def _checkpoint(self) -> None:
        self.journal.checkpointer.run()
        self.journal.pump()

    def _stored(self, stored: list[tuple[TopicPartition, Position]], _seconds: float) -> None:
        self.later(self.sim.between(0, 2), partial(self._heard_stored, stored))

    def _heard_stored(self, stored: list[tuple[TopicPartition, Position]]) -> None:
        for key, position in stored:
            if key.topic in (OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
                self._core(key.topic).on_stored(key.partition, position, self.now)
                self.data_plane.advanced(key, self.now)

    def _failed(self, failure: Exception) -> None:
        raise AssertionError(f"the journal has failed: {failure}")

    # ------------------------------------------------------------ ends

    def die(self) -> None:
        """kill -9: the page cache stays."""
        if self.is_alive:
            self.is_alive = False
            self._died(self)

    def lose_power(self) -> None:
        self.lost_power = True
        self.die()

    # ------------------------------------------------------------ what a checker asks

    @property
    def is_serving(self) -> bool:
        return not self._loading and self.transactions.partition_count > 0

    def has_open_transactions(self) -> bool:
        return any(True for _ in self.transactions.open_transactions())

    def target_ends(self) -> dict[int, int]:
        logs = self.store.partitions()
        return {n: logs[TopicPartition(TARGET, n)].high_watermark for n in range(PARTITIONS)}

    def logs_with_markers(self) -> list[TopicLog]:
        names = (TARGET, OFFSETS_TOPIC)
        return [log for key, log in self.store.partitions().items() if key.topic in names]
