"""Classic consumer: a small model of a consumer of the classic protocol that may be migrated.

Its subscriptions and assignments are those of ConsumerProtocol. An eager one gives all partitions
back before it joins again; a cooperative one keeps them, gives back what its next assignment lacks,
and then joins once more. If it leads, it assigns by ranges. It does not know which type its group
has. It also vanishes, stalls, leaves, changes its topics and gives back late.
"""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from protocol.messages import Response
from protocol.messages.consumer_group_heartbeat import JOIN_EPOCH
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicName,
)
from tests.simulator.clients import RETRIABLE, RETRY_MS, Client, Commits
from tests.simulator.consumer_clients import (
    HEARTBEAT_MS,
    NOTHING,
    REBALANCE_MS,
    SESSION_MS,
    SUBSCRIPTIONS,
    Consumer,
    Owned,
)
from tests.simulator.network import Network
from tests.simulator.sim import Sim
from tests.world import Topics

PARKED_MS: Final = REBALANCE_MS + 3_000
"""How long a client waits for an answer that waits for others."""


def by_name(owned: Owned, topics: Topics) -> list[TopicPartitions]:
    """As a member says what it owns. A topic that is gone keeps its name in the client."""
    found: dict[TopicName, list[int]] = {}
    names = {topics.id_of(name): name for name in topics.known | set(topics.counts)}
    for topic_id, partition in sorted(owned):
        found.setdefault(names[topic_id], []).append(partition)
    return [TopicPartitions(name, partitions) for name, partitions in sorted(found.items())]


def by_id(named: Sequence[TopicPartitions], topics: Topics) -> Owned:
    return frozenset(
        (topics.id_of(topic.topic), partition) for topic in named for partition in topic.partitions
    )


class ClassicConsumer(Client):
    """`mischief` is how often it does something rare, `keeps` how often it gives back late."""

    def __init__(
        self,
        sim: Sim,
        network: Network,
        name: str,
        group_id: GroupId,
        *,
        instance_id: GroupInstanceId | None,
        is_cooperative: bool,
        commits: Commits,
        topics: Topics,
        mischief: float,
    ) -> None:
        super().__init__(sim, network, name, group_id)
        self.instance_id = instance_id
        self.is_cooperative = is_cooperative
        self.member_id = UNKNOWN_MEMBER_ID
        self.epoch = NO_GENERATION  # its generation
        self.owned: Owned = NOTHING  # what it consumes
        self.assigned: Owned | None = None  # what its last SyncGroup answer said
        self.mischief = mischief
        self.keeps = 0.1 if mischief else 0.0
        self._topics = topics
        self._commits = commits
        self._names: tuple[TopicName, ...] = sim.dice.choice(SUBSCRIPTIONS)
        self._rejoins = 0  # what makes its subscription another one
        self._is_stale = False  # it has to join again
        self._assignments: list[SyncGroupRequestAssignment] = []
        self._version = 3 if is_cooperative else sim.dice.choice((0, 1, 3))

    def begin(self) -> None:
        self.join()

    @property
    def is_reconciled(self) -> bool:
        return self.assigned is not None and self.assigned == self.owned and not self._is_stale

    @property
    def subscribes_to(self) -> set[TopicName]:
        return set(self._names) & set(self._topics.counts)

    @property
    def _protocol_name(self) -> str:
        return "cooperative-sticky" if self.is_cooperative else "range"

    def say_everything(self) -> None:
        """It joins again soon, with another subscription: a leader that nobody asked assigns."""
        self._rejoins += 1
        self._is_stale = True

    # ------------------------------------------------------------ join and sync

    def join(self) -> None:
        if not self.is_cooperative:
            self.owned = NOTHING
        self.assigned = None
        self._is_stale = False
        subscription = ConsumerProtocolSubscription(
            self._names, b"%d" % self._rejoins, by_name(self.owned, self._topics), self.epoch
        )
        request = JoinGroupRequest(
            self.group_id,
            SESSION_MS,
            REBALANCE_MS,
            self.member_id,
            self.instance_id,
            PROTOCOL_TYPE,
            [
                JoinGroupRequestProtocol(
                    self._protocol_name, write_subscription(subscription, self._version)
                )
            ],
        )
        within_ms = PARKED_MS if self.sim.happens(0.9) else self.sim.between(50, 2_000)
        self.ask(request, 9, self._joined, again=self.join, within_ms=within_ms)

    def _joined(self, answer: Response) -> None:
        assert isinstance(answer, JoinGroupResponse)
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.wake(self.sim.around(5), self.join)
            return
        if self._refused(answer.error_code, self.join):
            return
        assert answer.error_code is ErrorCode.NONE, answer
        self.member_id = answer.member_id
        self.epoch = answer.generation_id
        leads = answer.leader == answer.member_id and not answer.skip_assignment
        self._assignments = assign_ranges(answer.members, self._topics) if leads else []
        if not self._misbehaves():
            self.wake(self.sim.around(10), self.sync)

    def sync(self) -> None:
        request = SyncGroupRequest(
            self.group_id,
            self.epoch,
            self.member_id,
            self.instance_id,
            PROTOCOL_TYPE,
            self._protocol_name,
            self._assignments,
        )
        self.ask(request, 5, self._synced, again=self.sync, within_ms=PARKED_MS)

    def _synced(self, answer: Response) -> None:
        assert isinstance(answer, SyncGroupResponse)
        if self._refused(answer.error_code, self.sync if self.sim.happens(0.5) else self.join):
            return
        assert answer.error_code is ErrorCode.NONE, answer
        self.assigned = NOTHING
        if answer.assignment:
            named = read_assignment(bytes(answer.assignment)).assigned_partitions
            self.assigned = by_id(named, self._topics)
        revoked = self.owned - self.assigned
        if not revoked:
            self.owned = self.assigned
            self._rest()
        elif self.sim.happens(self.keeps):
            self.sim.log_event(f"{self.name} keeps {len(revoked)} partitions")
            self.wake(self.sim.between(100, REBALANCE_MS), self._give_back)
        else:
            self._commit(revoked, self._give_back)

    def _give_back(self) -> None:
        """A cooperative member says with a join what it has given back."""
        if self.assigned is not None:
            self.owned = self.assigned
        self.join()

    # ------------------------------------------------------------ the life of a member

    def live(self) -> None:
        if self._misbehaves():
            return
        if self._is_stale:
            self._rejoin()
        elif self.owned and self.sim.happens(0.3):
            self._commit(self.owned, self.beat)
        else:
            self.beat()

    def beat(self) -> None:
        request = HeartbeatRequest(self.group_id, self.epoch, self.member_id, self.instance_id)
        self.ask(request, 4, self._beaten, again=self.beat)

    def _beaten(self, answer: Response) -> None:
        assert isinstance(answer, HeartbeatResponse)
        if not self._refused(answer.error_code, self.beat):
            assert answer.error_code is ErrorCode.NONE, answer
            self._rest()

    def _rest(self) -> None:
        self.wake(self.sim.between(HEARTBEAT_MS // 2, HEARTBEAT_MS), self.live)

    def _rejoin(self) -> None:
        """It commits before it gives back, as autocommit does."""
        if self.owned and self.sim.happens(0.5):
            self._commit(self.owned, self.join)
        else:
            self.join()

    def _commit(self, partitions: Owned, then: Callable[[], None]) -> None:
        topics = [
            OffsetCommitRequestTopic(
                topic.topic,
                partitions=[
                    OffsetCommitRequestPartition(partition, self._commits.next(), -1, "")
                    for partition in topic.partitions
                ],
            )
            for topic in by_name(partitions, self._topics)
        ]
        request = OffsetCommitRequest(
            self.group_id, self.epoch, self.member_id, self.instance_id, -1, topics
        )

        def committed(answer: Response) -> None:
            assert isinstance(answer, OffsetCommitResponse)
            then()

        self.ask(request, 9, committed, again=then)

    def leave(self) -> None:
        """A static one does not say so; then an operator may."""
        self.owned = NOTHING
        if self.instance_id is not None and self.sim.happens(0.5):
            self.vanish()
            return
        identity = MemberIdentity(self.member_id, self.instance_id, "enough")
        request = LeaveGroupRequest(self.group_id, members=[identity])
        self.ask(request, 5, lambda _: self.vanish(), again=self.vanish)

    def _refused(self, error_code: ErrorCode, again: Callable[[], None]) -> bool:
        """Do what the error asks for; False if it asks for nothing."""
        match error_code:
            case ErrorCode.NONE:
                return False
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                self.owned = NOTHING  # they are lost
                self.epoch = NO_GENERATION
                if error_code is ErrorCode.UNKNOWN_MEMBER_ID:
                    self.member_id = UNKNOWN_MEMBER_ID
                self.assigned = None
                self.wake(self.sim.around(50), self.join)
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.wake(self.sim.around(100), self._rejoin)
            case ErrorCode.FENCED_INSTANCE_ID | ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                # Another process has its place, or the group does not take its protocol.
                self.sim.log_event(f"{self.name} ends: {error_code.name}")
                self.vanish()
            case _ if error_code in RETRIABLE:
                if self.sim.happens(0.3):
                    self.hang_up()
                self.wake(self.sim.between(RETRY_MS, 3 * RETRY_MS), again)
            case _:
                raise AssertionError(f"{self.name} is told {error_code!r}")
        return True

    def _misbehaves(self) -> bool:
        """Something happens to the client itself; True if it does not go on by itself."""
        if not self.sim.happens(self.mischief):
            return False
        match self.sim.dice.randrange(5):
            case 0:
                self.sim.log_event(f"{self.name} vanishes")
                self.vanish()
            case 1:
                self.sim.log_event(f"{self.name} leaves")
                self.leave()
            case 2:
                self._names = self.sim.dice.choice(SUBSCRIPTIONS)
                self.sim.log_event(f"{self.name} subscribes to {self._names}")
                self._rejoin()
            case _:
                stall_ms = self.sim.between(100, 2 * SESSION_MS)
                self.sim.log_event(f"{self.name} stalls for {stall_ms} ms")
                again = self.sync if self.assigned is None else self.beat
                self.wake(stall_ms, again)
        return True


class MigratingConsumer(Consumer):
    """A consumer of the new protocol that ends when its group may not be converted."""

    def _refused(self, error_code: ErrorCode) -> bool:
        if error_code is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch == JOIN_EPOCH:
            self.sim.log_event(f"{self.name} ends: the group is not converted")
            self.vanish()
            return True
        return super()._refused(error_code)


def assign_ranges(
    members: Sequence[JoinGroupResponseMember], topics: Topics
) -> list[SyncGroupRequestAssignment]:
    """Each topic in ranges. What another member still claims is not given to a cooperative one."""
    read = {member.member_id: read_subscription(bytes(member.metadata)) for member in members}
    places = {member.member_id: member.group_instance_id or member.member_id for member in members}
    claims: dict[tuple[TopicName, int], set[MemberId]] = {}
    for member_id, subscription in read.items():
        for topic in subscription.owned_partitions:
            for partition in topic.partitions:
                claims.setdefault((topic.topic, partition), set()).add(member_id)
    given: dict[MemberId, list[TopicPartitions]] = {member_id: [] for member_id in read}
    for name, count in sorted(topics.counts.items()):
        subscribers = sorted((m for m in read if name in read[m].topics), key=lambda m: places[m])
        for n, member_id in enumerate(subscribers):
            first, last = (count * k // len(subscribers) for k in (n, n + 1))
            share = [p for p in range(first, last) if claims.get((name, p), set()) <= {member_id}]
            if share:
                given[member_id].append(TopicPartitions(name, share))
    return [
        SyncGroupRequestAssignment(member_id, write_assignment(ConsumerProtocolAssignment(parts)))
        for member_id, parts in given.items()
    ]
