"""A world for one coordinator: virtual time, a log in memory, and the words Given, When and Then.

Drives the real GroupCoordinator, with one partition unless a test wants more. Nothing waits and
nothing sleeps: `advance` moves the clock and fires what is due, deadline by deadline. By default
all that is appended is stored at once; with `storing = False` the test says when, by `store`. After
each step the groups and the purgatories check themselves.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar
from uuid import NAMESPACE_OID, uuid5

from msgspec.structs import replace

from coordinator.classic.group import ClassicGroup
from coordinator.consumer.assignors.assignor import Assignor
from coordinator.consumer.assignors.registry import assignors_of
from coordinator.consumer.group import ConsumerGroup
from coordinator.coordinator import GroupCoordinator
from coordinator.events import AnyEvent
from coordinator.history_sink import HistorySink
from coordinator.records import GROUP_METADATA, record_type
from coordinator.settings import GroupSettings
from coordinator.shard import Shard
from protocol.messages import Request, Response
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatTopicPartitions,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from seams.assignment_runner import AssignmentRunner
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.group_configs import GroupConfigs
from seams.now import Now
from seams.principal import ANONYMOUS, Principal
from seams.reply_token import ReplyToken
from seams.transactions import TransactionVerifier
from tests.memory_log import MemoryLog

SESSION_TIMEOUT_MS: Final = 10_000
REBALANCE_TIMEOUT_MS: Final = 60_000
RESTORE_BUDGET: Final = 1_000
START: Final = Now(1_000_000, 1_700_000_000_000)
NEWEST: Final = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
}

E = TypeVar("E")

Protocols = Sequence[tuple[str, bytes]]
RANGE: Final[Protocols] = (("range", b"subscription"),)


def subscription(*topics: str) -> bytes:
    """A consumer's subscription of version 0."""
    names = b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


class Token(ReplyToken):
    """Remembers the answer, and that there was only one."""

    __slots__ = ("answers",)

    def __init__(self, api_version: int, client_id: str, principal: Principal = ANONYMOUS) -> None:
        super().__init__(api_version, client_id, "/127.0.0.1", principal)
        self.answers: list[Response] = []


class Asked:
    """A request on its way: waiting, or answered."""

    def __init__(self, request: Request, token: Token) -> None:
        self.request = request
        self.token = token

    @property
    def waits(self) -> bool:
        return not self.token.answers

    @property
    def response(self) -> Response:
        assert len(self.token.answers) == 1, f"answered {len(self.token.answers)} times"
        return self.token.answers[0]

    @property
    def joined(self) -> JoinGroupResponse:
        assert isinstance(self.response, JoinGroupResponse)
        return self.response

    @property
    def synced(self) -> SyncGroupResponse:
        assert isinstance(self.response, SyncGroupResponse)
        return self.response

    @property
    def left(self) -> LeaveGroupResponse:
        assert isinstance(self.response, LeaveGroupResponse)
        return self.response

    @property
    def beaten(self) -> ConsumerGroupHeartbeatResponse:
        assert isinstance(self.response, ConsumerGroupHeartbeatResponse)
        return self.response

    @property
    def error(self) -> ErrorCode:
        error_code = getattr(self.response, "error_code", None)
        assert isinstance(error_code, ErrorCode)
        return error_code


class Topics:
    """Topics of the data plane: name -> number of partitions. `racks` are those of each partition.

    Tests change `counts` as they like; the version rises when a change is first seen.
    """

    def __init__(self) -> None:
        self.counts: dict[TopicName, int] = {TopicName("t"): 100}
        self.racks: tuple[str, ...] = ()
        self.known: set[TopicName] = set(self.counts)  # also those that are gone
        self._seen: dict[TopicName, int] = {}
        self._version = 0

    @property
    def topics_version(self) -> int:
        if self._seen != self.counts:
            self._seen = dict(self.counts)
            self.known.update(self.counts)
            self._version += 1
        return self._version

    def topic_names(self) -> Collection[TopicName]:
        return tuple(self.counts)

    def partition_count(self, name: TopicName) -> int | None:
        return self.counts.get(name)

    def partition_racks(self, name: TopicName) -> Sequence[Sequence[str]]:
        return (self.racks,) * self.counts.get(name, 0)

    def topic_id(self, name: TopicName) -> TopicId | None:
        return self.id_of(name) if name in self.counts else None

    def id_of(self, name: str) -> TopicId:
        """The id that the topic has, had or would have."""
        return uuid5(NAMESPACE_OID, name)

    def topic_name(self, topic_id: TopicId) -> TopicName | None:
        return next((name for name in self.counts if self.topic_id(name) == topic_id), None)


class World:
    history_sink: HistorySink | None = None
    group_configs: GroupConfigs | None = None  # None: the broker's for all groups
    assignment_runner: AssignmentRunner | None = None
    deleted_topics: Sequence[tuple[TopicName, TopicId]] = ()  # as the catalog remembers them
    verifier: TransactionVerifier | None = None  # None: a broker without transactions
    authorizer: Authorizer = ALLOW_ALL
    principal: Principal = ANONYMOUS  # of the clients from now on

    def __init__(self, settings: GroupSettings | None = None) -> None:
        kafka = GroupSettings(offsets_topic_num_partitions=1, forgive_slow_member=False)
        self.settings = kafka if settings is None else settings
        self.now = START
        self.topics = Topics()
        self.events: list[AnyEvent] = []
        self.storing = True
        self.assignors: dict[str, Assignor] = assignors_of(self.settings.group_consumer_assignors)
        self.ids = 0
        self.logs: dict[int, MemoryLog] = {}
        self.tokens: list[Token] = []
        self.first_unstable: list[tuple[int, int | None]] = []  # as it was reported
        self.forgotten: list[TopicId] = []  # deleted topics of which no offsets are left
        self.start({n: MemoryLog() for n in range(self.settings.offsets_topic_num_partitions)})

    # ------------------------------------------------------------ the coordinator and its log

    def start(self, logs: dict[int, MemoryLog]) -> None:
        """A new process over these logs, all partitions loaded."""
        self.logs = logs
        self.coordinator = GroupCoordinator(
            self.settings,
            new_member_id=self._new_member_id,
            new_consumer_member_id=lambda: self._new_member_id("consumer"),
            assignors=self.assignors,
            assignment_runner=self.assignment_runner,
            topics=self.topics,
            endpoint=lambda _: (1, "localhost", 9092),
            reply=self._reply,
            observe=self.events.append,
            history_sink=self.history_sink,
            deleted_topics=self.deleted_topics,
            offsets_forgotten=self.forgotten.append,
            group_configs=self.group_configs,
            verifier=self.verifier,
            authorizer=self.authorizer,
            first_unstable_changed=lambda *reported: self.first_unstable.append(reported),
        )
        for partition, log in logs.items():
            self.coordinator.begin_load(partition, log)
            self.coordinator.load(partition, log.records, log.end_position)
            self.coordinator.finish_load(partition, self.now)
            while self.coordinator.restore_slice(partition, self.now, RESTORE_BUDGET):
                pass
        self.step()

    def crash(self) -> None:
        """kill -9 and back: what was not stored is gone, and so is everything in memory."""
        self.start({n: MemoryLog(log.survivors()) for n, log in self.logs.items()})

    @property
    def log(self) -> MemoryLog:
        return self.logs[0]

    @property
    def shard(self) -> Shard:
        shard = self.coordinator._active[0]
        assert shard is not None
        return shard

    def store(self) -> None:
        """What was appended is on the disk now."""
        for partition, log in self.logs.items():
            if log.stored_position < log.end_position:
                self.coordinator.on_stored(partition, log.store(), self.now)
        self.check()

    def step(self) -> None:
        while self.storing and any(
            log.stored_position < log.end_position for log in self.logs.values()
        ):
            self.store()
        self.check()

    def check(self) -> None:
        for shard in self.coordinator._active:
            if shard is not None:
                shard.check()
        states = dict.fromkeys(GroupState, 0)
        for view in self.coordinator.groups():
            states[view.state] += 1
        assert self.coordinator.group_counts.states == states, "the group counts are off"
        for token in self.tokens:
            assert len(token.answers) <= 1, "a request was answered twice"

    def advance(self, ms: int) -> None:
        """Let time pass; everything that falls due on the way happens when it is due."""
        end_ms = self.now.mono_ms + ms
        while True:
            due_ms = self.coordinator.next_deadline_ms
            if due_ms is None or due_ms > end_ms:
                break
            self._move_to(max(due_ms, self.now.mono_ms))
            self.coordinator.tick(self.now)
            self.step()
        self._move_to(end_ms)

    def _move_to(self, mono_ms: int) -> None:
        passed = mono_ms - self.now.mono_ms
        self.now = Now(mono_ms, self.now.wall_ms + passed)

    def _new_member_id(self, prefix: str) -> MemberId:
        self.ids += 1
        return MemberId(f"{prefix}-{self.ids}")

    def _reply(self, token: ReplyToken, response: Response) -> None:
        assert isinstance(token, Token)
        token.answers.append(response)

    # ------------------------------------------------------------ requests

    def ask(self, request: Request, *, version: int, client_id: str = "client") -> Asked:
        token = Token(version, client_id, self.principal)
        self.tokens.append(token)
        self.coordinator.handlers[request.API_KEY](request, token, self.now)
        self.step()
        return Asked(request, token)

    def join(
        self,
        group_id: str = "g",
        member_id: str = UNKNOWN_MEMBER_ID,
        *,
        instance_id: str | None = None,
        version: int = 9,
        protocol_type: str = "consumer",
        protocols: Protocols = RANGE,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        reason: str | None = None,
        client_id: str = "client",
    ) -> Asked:
        request = JoinGroupRequest(
            group_id=GroupId(group_id),
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=MemberId(member_id),
            group_instance_id=None if instance_id is None else GroupInstanceId(instance_id),
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name, data) for name, data in protocols],
            reason=reason,
        )
        return self.ask(request, version=version, client_id=client_id)

    def sync(
        self,
        group_id: str,
        member_id: str,
        generation_id: int,
        *,
        assignments: dict[str, bytes] | None = None,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        version: int = 5,
    ) -> Asked:
        request = SyncGroupRequest(
            group_id=GroupId(group_id),
            generation_id=GenerationId(generation_id),
            member_id=MemberId(member_id),
            group_instance_id=None if instance_id is None else GroupInstanceId(instance_id),
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(MemberId(member), data)
                for member, data in (assignments or {}).items()
            ],
        )
        return self.ask(request, version=version)

    def beat(
        self,
        group_id: str,
        member_id: str,
        generation_id: int,
        instance_id: str | None = None,
    ) -> Asked:
        request = HeartbeatRequest(
            GroupId(group_id),
            GenerationId(generation_id),
            MemberId(member_id),
            None if instance_id is None else GroupInstanceId(instance_id),
        )
        return self.ask(request, version=4)

    def heartbeat(self, group: ClassicGroup, member_id: str) -> ErrorCode:
        """Of a member, in the group's generation."""
        asked = self.beat(group.group_id, member_id, group.generation_id)
        assert isinstance(asked.response, HeartbeatResponse)
        return asked.error

    def leave(
        self,
        group_id: str,
        *members: str | tuple[str, str | None],
        reason: str | None = None,
        version: int = 5,
    ) -> Asked:
        """Members by id, or by (id, instance id)."""
        named = [(m, None) if isinstance(m, str) else m for m in members]
        identities = [
            MemberIdentity(
                MemberId(member_id),
                None if instance_id is None else GroupInstanceId(instance_id),
                reason,
            )
            for member_id, instance_id in named
        ]
        request = LeaveGroupRequest(
            GroupId(group_id), identities[0].member_id if identities else MemberId(""), identities
        )
        return self.ask(request, version=version)

    def commit(
        self,
        group_id: str,
        member_id: str = "",
        generation_id: int = -1,
        *,
        topic: str = "t",
        offsets: dict[int, int] | None = None,
        version: int = 9,
    ) -> ErrorCode:
        """The error on the first partition."""
        asked = self.committing(
            group_id, member_id, generation_id, topic=topic, offsets=offsets, version=version
        )
        assert isinstance(asked.response, OffsetCommitResponse)
        return asked.response.topics[0].partitions[0].error_code

    def committing(
        self,
        group_id: str,
        member_id: str = "",
        generation_id: int = -1,
        *,
        topic: str = "t",
        offsets: dict[int, int] | None = None,
        version: int = 9,
    ) -> Asked:
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in (offsets or {0: 1}).items()
        ]
        request = OffsetCommitRequest(
            group_id=GroupId(group_id),
            generation_id_or_member_epoch=GenerationId(generation_id),
            member_id=MemberId(member_id),
            topics=[OffsetCommitRequestTopic(name=TopicName(topic), partitions=partitions)],
        )
        return self.ask(request, version=version)

    def heartbeat_consumer(
        self,
        group_id: str = "g",
        member_id: str = "m1",
        epoch: int = 0,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        owned: Mapping[str, Iterable[int]] | None = None,
        rebalance_timeout_ms: int | None = None,
        version: int = 1,
        client_id: str | None = None,
    ) -> Asked:
        """ConsumerGroupHeartbeat; with epoch 0 what is not given is as a member of "t" says it.

        `owned` are partitions by topic name. The client id is the member's id unless given.
        """
        if epoch == JOIN_EPOCH:
            owned = {} if owned is None else owned
            topics = ("t",) if topics is None and regex is None else topics
            if rebalance_timeout_ms is None:
                rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
        request = ConsumerGroupHeartbeatRequest(
            GroupId(group_id),
            MemberId(member_id),
            epoch,
            None if instance_id is None else GroupInstanceId(instance_id),
            rack_id,
            -1 if rebalance_timeout_ms is None else rebalance_timeout_ms,
            None if topics is None else [TopicName(topic) for topic in topics],
            regex,
            assignor,
            None if owned is None else self._topic_partitions(owned),
        )
        return self.ask(
            request, version=version, client_id=member_id if client_id is None else client_id
        )

    def _topic_partitions(
        self, owned: Mapping[str, Iterable[int]]
    ) -> list[HeartbeatTopicPartitions]:
        return [
            HeartbeatTopicPartitions(self.topics.id_of(name), sorted(partitions))
            for name, partitions in owned.items()
        ]

    # ------------------------------------------------------------ given

    def given_topics(self, **partitions: int) -> None:
        """These topics, and no others; nobody is told."""
        self.topics.counts = {TopicName(name): count for name, count in partitions.items()}

    def consumer_group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.coordinator.group(GroupId(group_id))
        assert isinstance(group, ConsumerGroup), f"there is no consumer group {group_id!r}"
        return group

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.coordinator.group(GroupId(group_id))
        assert isinstance(group, ClassicGroup), f"there is no group {group_id!r}"
        return group

    def has_group(self, group_id: str = "g") -> bool:
        return self.coordinator.group(GroupId(group_id)) is not None

    def given_joined(
        self,
        group_id: str = "g",
        *,
        members: int = 2,
        instances: Sequence[str | None] | None = None,
        **offer: object,
    ) -> list[JoinGroupResponse]:
        """A group in CompletingRebalance: all have joined, none has synced. Leader first."""
        named = [None] * members if instances is None else list(instances)
        asked = []
        for instance in named:
            version = 9 if instance else 3  # 3: a dynamic member joins in one step
            asked.append(self.join(group_id, instance_id=instance, version=version, **offer))  # type: ignore[arg-type]
        while asked[0].waits:
            self.advance(self.settings.group_initial_rebalance_delay_ms)
        answers = [answer.joined for answer in asked]
        assert self.group(group_id).state is GroupState.COMPLETING_REBALANCE
        return sorted(answers, key=lambda answer: answer.leader != answer.member_id)

    def given_stable_group(
        self,
        group_id: str = "g",
        *,
        members: int = 2,
        instances: Sequence[str | None] | None = None,
        **offer: object,
    ) -> ClassicGroup:
        """A Stable group; the leader's id comes first, and member n is assigned b"n"."""
        answers = self.given_joined(group_id, members=members, instances=instances, **offer)
        self.sync_all(group_id, answers)
        group = self.group(group_id)
        assert group.state is GroupState.STABLE
        return group

    def sync_all(self, group_id: str, answers: Iterable[JoinGroupResponse]) -> list[Asked]:
        """All members sync, the leader last; member n is assigned b"n"."""
        answers = list(answers)
        assignments: dict[str, bytes] = {a.member_id: b"%d" % n for n, a in enumerate(answers)}
        asked = []
        for answer in sorted(answers, key=lambda a: a.member_id == a.leader):
            is_leader = answer.member_id == answer.leader
            asked.append(
                self.sync(
                    group_id,
                    answer.member_id,
                    answer.generation_id,
                    assignments=assignments if is_leader else None,
                    protocol_type=answer.protocol_type,
                    protocol_name=answer.protocol_name,
                )
            )
        return asked

    def events_of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def group_records(self) -> list[bytes | None]:
        """The values of the group records appended since the start of this process."""
        return [
            record.value
            for batch in self.log.batches
            for record in batch
            if record_type(record.key) == GROUP_METADATA
        ]


def kafka_settings(**changes: object) -> GroupSettings:
    """As Kafka behaves, in one partition."""
    exact = GroupSettings(offsets_topic_num_partitions=1, forgive_slow_member=False)
    return replace(exact, **changes)  # type: ignore[arg-type]
