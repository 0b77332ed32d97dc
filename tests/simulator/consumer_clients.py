"""Consumer client: a small model of a KIP-848 consumer in the simulated world.

A `Consumer` heartbeats, reconciles (it gives a partition back before it reports that), commits, and
does what each error asks for. It also does what real ones do at their worst: vanishes, stalls past
its session, leaves for a while or for good, changes its topics, sends a heartbeat twice, sends an
old one again, keeps a revoked partition for too long, and comes back with the same instance id.
"""

from collections.abc import Callable
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from protocol.messages import Response
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatTopicPartitions,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.names import ErrorCode, GroupId, GroupInstanceId, MemberId, TopicId, TopicName
from tests.simulator.clients import RETRIABLE, RETRY_MS, Client, Commits
from tests.simulator.network import Network
from tests.simulator.sim import Sim
from tests.world import Topics

HEARTBEAT_MS: Final = 400
SESSION_MS: Final = 3_000
REBALANCE_MS: Final = 4_000
ORDERS: Final = TopicName("orders")
CLICKS: Final = TopicName("clicks")
LATER: Final = TopicName("orders-2")
"""A topic that comes and goes while groups run."""

SUBSCRIPTIONS: Final = ((ORDERS,), (CLICKS,), (CLICKS, ORDERS), (ORDERS, LATER))
PATTERNS: Final = ("orders.*", "c[a-z]+s", ".*")

UNRELEASED_MAX: Final = 8
"""So many answers in a row last longer than the session of a process that is gone."""

Owned = frozenset[tuple[TopicId, int]]
NOTHING: Final[Owned] = frozenset()


def wire_partitions(owned: Owned) -> list[HeartbeatTopicPartitions]:
    topics: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(owned):
        topics.setdefault(topic_id, []).append(partition)
    return [HeartbeatTopicPartitions(topic_id, parts) for topic_id, parts in topics.items()]


def owned_of(assigned: list[HeartbeatTopicPartitions] | object) -> Owned:
    return frozenset(
        (topic.topic_id, partition)
        for topic in assigned  # type: ignore[attr-defined]
        for partition in topic.partitions
    )


class Consumer(Client):
    """A member of a consumer group. `mischief` is how often it does something rare."""

    def __init__(
        self,
        sim: Sim,
        network: Network,
        name: str,
        group_id: GroupId,
        *,
        instance_id: GroupInstanceId | None,
        commits: Commits,
        topics: Topics,
        mischief: float,
    ) -> None:
        super().__init__(sim, network, name, group_id)
        self.instance_id = instance_id
        self.member_id = MemberId(str(uuid5(NAMESPACE_OID, f"{sim.seed} {name}")))
        self.epoch = JOIN_EPOCH
        self.owned: Owned = NOTHING  # what it consumes
        self.assigned: Owned | None = None  # what it was told to consume, as far as it knows
        self.fenced = False
        self.mischief = mischief
        self.keeps = 0.1 if mischief else 0.0  # how often it gives back late
        self._topics = topics
        self._commits = commits
        self._reported: Owned | None = None  # what the last heartbeat that was answered had
        self._is_full = True  # the next request has all fields
        self._names: tuple[TopicName, ...] = ()
        self._regex: str | None = None
        self._last: ConsumerGroupHeartbeatRequest | None = None
        self._keeps_until_ms = 0
        self._unreleased = 0  # answers in a row that say that another process has its instance id
        self._choose_subscription()

    def begin(self) -> None:
        self.heartbeat()

    @property
    def is_reconciled(self) -> bool:
        """It consumes exactly what it was told to, and has reported that."""
        return self.epoch > 0 and self.assigned == self.owned == self._reported

    @property
    def subscribes_to(self) -> set[TopicName]:
        """Of the topics that there are now."""
        names = set(self._names) & set(self._topics.counts)
        if self._regex is not None:
            names |= matching(self._regex, self._topics)
        return names

    def _choose_subscription(self) -> None:
        if self.sim.happens(0.3):
            self._names, self._regex = (), self.sim.dice.choice(PATTERNS)
        else:
            self._names, self._regex = self.sim.dice.choice(SUBSCRIPTIONS), None

    # ------------------------------------------------------------ heartbeats

    def heartbeat(self) -> None:
        is_full = self._is_full or self.epoch == JOIN_EPOCH
        request = ConsumerGroupHeartbeatRequest(
            self.group_id,
            self.member_id,
            self.epoch,
            self.instance_id,
            None,
            REBALANCE_MS if is_full else -1,
            self._names if is_full else None,
            (self._regex or "") if is_full else None,
            None,
            self._partitions_to_report(is_full=is_full),
        )
        reported = self.owned
        self._last = request

        def answered(answer: Response) -> None:
            self._answered(answer, reported)

        self.ask(request, 1, answered, again=self._lost)
        if self.mischief and self.sim.happens(0.05) and self._connection is not None:
            self._connection.ask(request, 1, _ignore)  # twice, as after a retry below the client

    def _partitions_to_report(self, *, is_full: bool) -> list[HeartbeatTopicPartitions] | None:
        if self.epoch == JOIN_EPOCH:
            return []
        if is_full or self._reported != self.owned:
            return wire_partitions(self.owned)
        return None

    def _lost(self) -> None:
        """No answer in time: as a real client, it says everything again."""
        self._is_full = True
        self.heartbeat()

    def _answered(self, answer: Response, reported: Owned) -> None:
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if self._refused(answer.error_code):
            return
        assert answer.error_code is ErrorCode.NONE, answer
        self._is_full = False
        self._unreleased = 0
        self._reported = reported
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = owned_of(answer.assignment.topic_partitions)
        if self._misbehaves():
            return
        self._go_on()

    def _go_on(self) -> None:
        if self.assigned is not None and self.assigned != self.owned:
            revoked = self.owned - self.assigned
            if revoked and self._keeps(revoked):
                self._rest()
            elif revoked:
                self._commit(revoked, self._reconcile)  # as autocommit does before it gives back
            else:
                self._reconcile()
        elif self.owned and self.sim.happens(0.3):
            self._commit(self.owned, self._rest)
        else:
            self._rest()

    def _keeps(self, revoked: Owned) -> bool:
        """Its callback takes long; it heartbeats meanwhile."""
        if self._keeps_until_ms == 0 and self.sim.happens(self.keeps):
            self._keeps_until_ms = self.sim.now_ms + self.sim.between(100, 2 * REBALANCE_MS)
            self.sim.log_event(f"{self.name} keeps {len(revoked)} partitions")
        return self.sim.now_ms < self._keeps_until_ms

    def _reconcile(self) -> None:
        if self.assigned is not None:  # unless it has lost all of them meanwhile
            self.owned = self.assigned
        self._keeps_until_ms = 0
        self.wake(self.sim.around(10), self.heartbeat)

    def _rest(self) -> None:
        self.wake(self.sim.between(HEARTBEAT_MS // 2, HEARTBEAT_MS), self.heartbeat)

    # ------------------------------------------------------------ commits

    def _commit(self, partitions: Owned, then: Callable[[], None]) -> None:
        topics: dict[TopicId, list[OffsetCommitRequestPartition]] = {}
        for topic_id, partition in sorted(partitions):
            topics.setdefault(topic_id, []).append(
                OffsetCommitRequestPartition(partition, self._commits.next(), -1, "")
            )
        request = OffsetCommitRequest(
            self.group_id,
            self.epoch,
            self.member_id,
            self.instance_id,
            -1,
            [
                OffsetCommitRequestTopic(TopicName(""), topic_id, parts)
                for topic_id, parts in topics.items()
            ],
        )

        def committed(answer: Response) -> None:
            assert isinstance(answer, OffsetCommitResponse)
            errors = {p.error_code for topic in answer.topics for p in topic.partitions}
            if ErrorCode.NONE in errors:
                self.committed_ms = self.sim.now_ms
            then()

        self.ask(request, 10, committed, again=then)

    # ------------------------------------------------------------ errors

    def _refused(self, error_code: ErrorCode) -> bool:
        """Do what the error asks for; False if it asks for nothing."""
        match error_code:
            case ErrorCode.NONE:
                return False
            case (
                ErrorCode.UNKNOWN_MEMBER_ID
                | ErrorCode.FENCED_MEMBER_EPOCH
                | ErrorCode.GROUP_ID_NOT_FOUND
            ):
                self._abandon()
                self.wake(self.sim.around(50), self.heartbeat)
            case ErrorCode.UNRELEASED_INSTANCE_ID:
                self._abandon()
                self._unreleased += 1
                if self._unreleased == UNRELEASED_MAX:
                    self.sim.log_event(f"{self.name} gives up: its instance id is in use")
                    self.vanish()
                self.wake(self.sim.between(RETRY_MS, SESSION_MS), self.heartbeat)
            case ErrorCode.FENCED_INSTANCE_ID:
                self.fenced = True  # another process has our place: a real client ends here
                self._abandon()
                self.vanish()
            case _ if error_code in RETRIABLE:
                self._is_full = True
                if self.sim.happens(0.3):
                    self.hang_up()
                self.wake(self.sim.between(RETRY_MS, 3 * RETRY_MS), self.heartbeat)
            case _:
                raise AssertionError(f"{self.name} is told {error_code!r}")
        return True

    def _abandon(self) -> None:
        """All partitions are lost: it joins again."""
        self.owned = NOTHING
        self.assigned = None
        self._reported = None
        self._is_full = True
        self.epoch = JOIN_EPOCH

    # ------------------------------------------------------------ rare things

    def _misbehaves(self) -> bool:
        """Something happens to the client itself; True if it does not go on by itself."""
        if not self.sim.happens(self.mischief):
            return False
        match self.sim.dice.randrange(7):
            case 0:
                self.sim.log_event(f"{self.name} vanishes")
                self.vanish()
            case 1:
                self.leave()
            case 2:
                self._choose_subscription()
                self._is_full = True
                self.sim.log_event(f"{self.name} subscribes to {self._names} {self._regex}")
                self.heartbeat()
            case 3:
                self._send_old_one()
            case 4:
                self.sim.log_event(f"{self.name} joins again")
                self._abandon()
                self.heartbeat()
            case _:
                stall_ms = self.sim.between(100, 2 * SESSION_MS)
                self.sim.log_event(f"{self.name} stalls for {stall_ms} ms")
                self.wake(stall_ms, self._wake_up)
        return True

    def _wake_up(self) -> None:
        """It goes on with what it did, and does not know what happened meanwhile."""
        if self.owned and self.sim.happens(0.5):
            self._commit(self.owned, self.heartbeat)
        else:
            self.heartbeat()

    def leave(self) -> None:
        is_for_a_while = self.instance_id is not None and self.sim.happens(0.7)
        epoch = LEAVE_STATIC_EPOCH if is_for_a_while else LEAVE_EPOCH
        self.sim.log_event(f"{self.name} leaves with {epoch}")
        request = ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, epoch, self.instance_id
        )
        self.owned = NOTHING  # it has closed before it says so
        self.ask(request, 1, lambda _: self.vanish(), again=self.vanish)

    def say_everything(self) -> None:
        """With the next heartbeat.

        An old full heartbeat that arrives late undoes a newer subscription, here as in Kafka.
        """
        self._is_full = True

    def _send_old_one(self) -> None:
        """A heartbeat that was on its way for long, with an epoch that may have passed."""
        old = self._last
        self.wake(0, self._go_on)
        is_full = old is not None and old.subscribed_topic_names is not None
        if (
            old is not None
            and old.member_epoch > 0
            and not is_full
            and self._connection is not None
        ):
            connection = self._connection

            def send() -> None:
                if connection.open and not self.gone:
                    connection.ask(old, 1, _ignore)

            self.sim.after(self.sim.between(0, 3 * HEARTBEAT_MS), send)


def matching(regex: str, topics: Topics) -> set[TopicName]:
    """What the three patterns match, without the engine under test."""
    match regex:
        case "orders.*":
            return {name for name in topics.counts if name.startswith("orders")}
        case "c[a-z]+s":
            return {name for name in topics.counts if name == CLICKS}
        case _:
            return set(topics.counts)


def _ignore(_answer: Response) -> None:
    """The client does not wait for this answer."""
