"""Data plane for tests: a disk in memory, a clock of the test, and short forms of requests.

`restart` makes a new data plane on the same disk: after `close` a clean stop, without it kill -9.
No event loop, no sockets, no sleeping.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from config.dynamic_rules import DynamicRules
from config.keys import Config
from protocol.codec import decode_response, encode_response
from protocol.config_def import ConfigType
from protocol.messages import Request, Response
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, ProducerId, TopicId, TopicName
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.client_throttle import UNLIMITED_BYTES, ClientThrottle
from seams.io_executor import IoExecutor
from seams.now import Now
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from storage.api import TopicPartition
from tests.topics.batches import batch
from tests.topics.memory_log import MemoryFile, MemoryLog, MemoryStore
from topics.acl_store import AclStore
from topics.admin_queue import Steps, run_now
from topics.broker_config_store import BrokerConfigStore
from topics.broker_properties import BrokerProperties
from topics.client_quota_store import ClientQuotaStore
from topics.cluster import BrokerConfig, LogDirSpace, Node
from topics.data_plane import DataPlane
from topics.events import TopicEvent
from topics.group_config_store import GroupConfigStore
from topics.scram_store import ScramStore
from topics.settings import TopicSettings

WALL_MS = 1_700_000_000_000
MEBIBYTE = 1 << 20

ResponseT = TypeVar("ResponseT")
EventT = TypeVar("EventT")
ValueT = TypeVar("ValueT")


class Cluster:
    """A node that is reached under another name through each of its listeners."""

    cluster_id = "a-cluster"
    node_id = 1
    rack: str | None = None
    transaction_version = 2

    def __init__(self) -> None:
        self.configs: list[BrokerConfig] = []
        self.log_dir_fault: OSError | None = None

    log_dir = "/data"

    def log_dir_space(self) -> LogDirSpace:
        if self.log_dir_fault is not None:
            raise self.log_dir_fault
        return LogDirSpace(1_000, 400)

    def endpoint(self, token: ReplyToken) -> Node:
        inside = token.client_host == "/10.0.0.1"
        return Node(1, "inside" if inside else "outside", 9093 if inside else 9092)

    def broker_configs(self, properties: BrokerProperties) -> Sequence[BrokerConfig]:
        return self.configs

    def cluster_configs(self, properties: BrokerProperties) -> Sequence[BrokerConfig]:
        return [
            BrokerConfig(name, text, ConfigType.STRING) for name, text in properties.cluster.items()
        ]


class Loggers:
    """Two loggers of a process."""

    def __init__(self) -> None:
        self._levels = {"root": "INFO", "a.part": "INFO"}

    def levels(self) -> Mapping[str, str]:
        return self._levels

    def set_level(self, logger: str, level: str | None) -> None:
        self._levels[logger] = level or self._levels["root"]


class Throttle(ClientThrottle):
    """Refuses what the test says, and records what it was asked."""

    is_active = True

    def __init__(self) -> None:
        self.fetch_max = UNLIMITED_BYTES
        self.fetched: list[int] = []
        self.is_over_fetch_quota = False
        self.mutations: list[tuple[int, bool]] = []  # (partitions, whether strict)
        self.mutations_left = 1 << 31

    def fetch_max_bytes(self, _token: ReplyToken, /) -> int:
        return self.fetch_max

    def must_fetch_nothing(self, _token: ReplyToken, size: Callable[[], int], /) -> bool:
        self.fetched.append(size())
        return self.is_over_fetch_quota

    def may_mutate(self, _token: ReplyToken, partitions: int, /, *, is_strict: bool) -> bool:
        self.mutations.append((partitions, is_strict))
        if is_strict and self.mutations_left <= 0:
            return False
        self.mutations_left -= partitions
        return True


class Waiting(Struct, eq=False):
    """A request that was handed in; `answer` once it was answered."""

    token: ReplyToken
    answer: object = None


class Plane:
    """The data plane and everything around it."""

    def __init__(
        self,
        settings: TopicSettings | None = None,
        authorizer: Authorizer = ALLOW_ALL,
        **executors: IoExecutor,
    ) -> None:
        """`executors` are the data plane's, by its names; inline where none is given."""
        self.config = Config()  # what the broker's dynamic configs stand above
        self.authorizer = authorizer
        self.executors = executors
        self.settings = settings or TopicSettings()
        self.store = MemoryStore()
        self.catalog = MemoryFile()
        self.producer_snapshot = MemoryFile()
        self.group_configs_file = MemoryFile()
        self.broker_configs_file = MemoryFile()
        self.scram_file = MemoryFile()
        self.acls_file = MemoryFile()
        self.acls_max = 100
        self.client_quotas_file = MemoryFile()
        self.quotas_max = 3
        self.throttle = Throttle()
        self.loggers = Loggers()
        self.cluster = Cluster()
        self.events: list[TopicEvent] = []
        self.answers: dict[ReplyToken, Response | None] = {}
        self.closed_connections: list[ReplyToken] = []
        self.now = Now(1_000_000, WALL_MS)
        self.fetch_answer_max_bytes = 1 << 31
        self.repair = False
        self._ids = 0
        self.data = self._start()

    def _start(self) -> DataPlane:
        self.group_configs = GroupConfigStore(
            self.group_configs_file,
            self.settings.broker_properties,
            self.events.append,
            repair=self.repair,
        )
        self.client_quotas = ClientQuotaStore(
            self.client_quotas_file, self.quotas_max, self.events.append, repair=self.repair
        )
        self.broker_configs = BrokerConfigStore(
            self.broker_configs_file,
            DynamicRules(self.config),
            self.settings.broker_properties,
            self.events.append,
            repair=self.repair,
        )
        self.scram = ScramStore(
            self.scram_file, self.events.append, lambda: b"a secret", repair=self.repair
        )
        self.acls = self._acl_store()
        return DataPlane(
            self.store,
            self.catalog,
            self.settings,
            cluster=self.cluster,
            group_configs=self.group_configs,
            broker_configs=self.broker_configs,
            scram=self.scram,
            client_quotas=self.client_quotas,
            throttle=self.throttle,
            loggers=self.loggers,
            reply=self._reply,
            observe=self.events.append,
            hang_up=self.closed_connections.append,
            fetch_answer_max_bytes=lambda: self.fetch_answer_max_bytes,
            producer_snapshot=self.producer_snapshot,
            new_topic_id=self._next_id,
            repair=self.repair,
            authorizer=self.authorizer,
            acls=self.acls,
            **self.executors,
        )

    def _acl_store(self) -> AclStore | None:
        """As the daemon: none without an authorizer that decides by ACLs."""
        if not isinstance(self.authorizer, AclAuthorizer):
            return None
        self.authorizer = AclAuthorizer(self.authorizer.super_users)
        return AclStore(
            self.acls_file,
            self.authorizer,
            self.events.append,
            acls_max=self.acls_max,
            repair=self.repair,
        )

    def stop(self) -> None:
        """As the daemon does at a clean stop."""
        self.data.answer_all()
        self.data.close()

    def restart(self, settings: TopicSettings | None = None) -> None:
        self.settings = settings or self.settings
        self.events.clear()
        if isinstance(self.store, MemoryStore):
            for log in self.store.logs.values():
                log.producer_files.drop_beyond(log.log_end_offset)
        self.data = self._start()

    def _next_id(self) -> TopicId:
        self._ids += 1
        return UUID(int=self._ids)

    def _reply(self, token: ReplyToken, response: Response | None) -> None:
        assert token not in self.answers, "a request was answered twice"
        if response is not None:
            # What is said must be sayable in the version that was asked.
            key = response.API_KEY
            frame = encode_response(key, token.api_version, 1, response)
            response = decode_response(key, token.api_version, frame, 4, len(frame))[1]
        self.answers[token] = response

    # Time

    def advance(self, ms: int) -> None:
        """Let time pass, ticking at every deadline on the way."""
        end_ms = self.now.mono_ms + ms
        while True:
            deadline_ms = self.data.next_deadline_ms
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self._set_time(max(deadline_ms, self.now.mono_ms))
            self.data.tick(self.now)
        self._set_time(end_ms)

    def _set_time(self, mono_ms: int) -> None:
        self.now = Now(mono_ms, self.now.wall_ms + mono_ms - self.now.mono_ms)

    # Requests

    def send(self, request: Request, version: int, client_host: str = "/127.0.0.1") -> ReplyToken:
        token = ReplyToken(version, "a-client", client_host)
        self.data.handlers[request.API_KEY](request, token, self.now)
        return token

    def take_producer_id(self) -> list[ProducerId | None]:
        """What an idempotent producer is answered; nothing yet if ids must be reserved first."""
        taken: list[ProducerId | None] = []
        self.data.producer_ids.take(taken.append)
        return taken

    def ask(
        self,
        request: Request,
        version: int,
        expected: type[ResponseT],
        client_host: str = "/127.0.0.1",
    ) -> ResponseT:
        response = self.answers[self.send(request, version, client_host)]
        assert isinstance(response, expected)
        return response

    def run(self, change: Steps[ValueT]) -> ValueT:
        """A change that no request asks for."""
        return run_now(change)

    def answered(self, token: ReplyToken) -> bool:
        return token in self.answers

    def events_of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.events if isinstance(event, kind)]

    # Topics

    def create(
        self, name: str, partitions: int = 1, version: int = 7, **configs: str
    ) -> CreatableTopicResult:
        """Config names have _ for dots."""
        topic = CreatableTopic(
            TopicName(name),
            partitions,
            1,
            (),
            [CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()],
        )
        request = CreateTopicsRequest((topic,))
        return self.ask(request, version, CreateTopicsResponse).topics[0]

    def given(self, name: str, partitions: int = 1, **configs: str) -> TopicName:
        """A topic that is there."""
        result = self.create(name, partitions, **configs)
        assert result.error_code is ErrorCode.NONE, result.error_message
        return TopicName(name)

    def log(self, name: str, partition: int = 0) -> MemoryLog:
        return self.store.logs[TopicPartition(name, partition)]

    def topic_id(self, name: str) -> TopicId:
        topic_id = self.data.registry.topic_id(TopicName(name))
        assert topic_id is not None
        return topic_id

    # Records

    def produce(
        self,
        name: str,
        records: bytes | None = None,
        *,
        partition: int = 0,
        acks: int = 1,
        version: int = 9,
        transactional_id: str | None = None,
        topic_id: TopicId = ZERO_TOPIC_ID,
    ) -> PartitionProduceResponse:
        token = self.send_records(
            name,
            self.batch() if records is None else records,
            partition=partition,
            acks=acks,
            version=version,
            transactional_id=transactional_id,
            topic_id=topic_id,
        )
        response = self.answers[token]
        assert isinstance(response, ProduceResponse)
        return response.responses[0].partition_responses[0]

    def send_records(
        self,
        name: str,
        records: bytes | None,
        *,
        partition: int = 0,
        acks: int = 1,
        version: int = 9,
        transactional_id: str | None = None,
        topic_id: TopicId = ZERO_TOPIC_ID,
    ) -> ReplyToken:
        data = TopicProduceData(
            TopicName(name), topic_id, (PartitionProduceData(partition, records),)
        )
        return self.send(ProduceRequest(transactional_id, acks, 1_000, (data,)), version)

    def given_records(self, name: str, count: int, partition: int = 0) -> None:
        """So many batches of one record each, with the values v0, v1, ..."""
        for index in range(count):
            result = self.produce(name, self.batch(b"v%d" % index), partition=partition)
            assert result.error_code is ErrorCode.NONE

    def batch(self, *values: bytes) -> bytes:
        """A batch of the present moment."""
        return batch(*values, timestamp=self.now.wall_ms)

    def fetch(
        self,
        name: str,
        offset: int = 0,
        *,
        partition: int = 0,
        version: int = 12,
        max_bytes: int = 50 * MEBIBYTE,
        partition_max_bytes: int = MEBIBYTE,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        isolation_level: int = 0,
    ) -> PartitionData:
        """Read now, without waiting."""
        asked = FetchPartition(
            partition,
            current_leader_epoch,
            offset,
            last_fetched_epoch,
            partition_max_bytes=partition_max_bytes,
        )
        request = FetchRequest(
            max_bytes=max_bytes,
            min_bytes=1,
            isolation_level=isolation_level,
            topics=(FetchTopic(TopicName(name), partitions=(asked,)),),
        )
        response = self.ask(request, version, FetchResponse)
        return response.responses[0].partitions[0]

    def park_fetch(
        self,
        name: str,
        offset: int = 0,
        *,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        isolation_level: int = 0,
    ) -> ReplyToken:
        """A fetch that is willing to wait."""
        asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=MEBIBYTE)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            isolation_level=isolation_level,
            topics=(FetchTopic(TopicName(name), partitions=(asked,)),),
        )
        return self.send(request, 12)

    def fetched(self, token: ReplyToken) -> PartitionData:
        """The one partition of an answered fetch."""
        response = self.answers[token]
        assert isinstance(response, FetchResponse)
        return response.responses[0].partitions[0]
