"""A consumer of the consumer group protocol: the client's half, for tests in virtual time.

It does what the Java client does: joins with epoch 0, sends what changed, gives partitions back
before it takes new ones, and says in its next heartbeat what it owns then. A test says when.
"""

from collections.abc import Iterable, Mapping, Sequence

from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeatResponse,
)
from protocol.names import ErrorCode, TopicName
from tests.world import World

MUST_JOIN_AGAIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
ROUNDS_MAX = 20
"""Of heartbeats of all members until a group is settled; more would be a rebalance without end."""
QUIET_ROUNDS = 2
"""What a heartbeat finds out may take effect with the next one only."""


class ConsumerClient:
    """One member; `owned` are the partitions that it reads, by topic name."""

    def __init__(
        self,
        world: World,
        member_id: str,
        group_id: str = "g",
        *,
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.world = world
        self.member_id = member_id
        self.group_id = group_id
        self.topics = ("t",) if topics is None and regex is None else topics
        self.regex = regex
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.assignor = assignor
        self.epoch = JOIN_EPOCH
        self.owned: dict[str, frozenset[int]] = {}
        self._owns_differently = False

    def join(self) -> ConsumerGroupHeartbeatResponse:
        """With nothing in its hands."""
        self.epoch = JOIN_EPOCH
        self.owned = {}
        return self._sent(
            self.world.heartbeat_consumer(
                self.group_id,
                self.member_id,
                JOIN_EPOCH,
                instance_id=self.instance_id,
                rack_id=self.rack_id,
                topics=self.topics,
                regex=self.regex,
                assignor=self.assignor,
            ).beaten
        )

    def beat(self, *, reports: bool = True) -> ConsumerGroupHeartbeatResponse:
        """The next heartbeat; with `reports` it says what it owns, if that has changed."""
        if self.epoch == JOIN_EPOCH:
            return self.join()
        owned: Mapping[str, Iterable[int]] | None = None
        if reports and self._owns_differently:
            owned = self.owned
            self._owns_differently = False
        return self._sent(
            self.world.heartbeat_consumer(
                self.group_id,
                self.member_id,
                self.epoch,
                instance_id=self.instance_id,
                owned=owned,
            ).beaten
        )

    def change(
        self, *, topics: Sequence[str] | None = None, regex: str | None = None
    ) -> ConsumerGroupHeartbeatResponse:
        """Subscribe to something else; None leaves that part as it is."""
        self.topics = self.topics if topics is None else topics
        self.regex = self.regex if regex is None else regex
        return self._sent(
            self.world.heartbeat_consumer(
                self.group_id,
                self.member_id,
                self.epoch,
                instance_id=self.instance_id,
                topics=topics,
                regex=regex,
            ).beaten
        )

    def leave(self, *, for_a_while: bool = False) -> ConsumerGroupHeartbeatResponse:
        epoch = LEAVE_STATIC_EPOCH if for_a_while else LEAVE_EPOCH
        asked = self.world.heartbeat_consumer(
            self.group_id, self.member_id, epoch, instance_id=self.instance_id
        )
        self.epoch = JOIN_EPOCH
        self.owned = {}
        return asked.beaten

    def _sent(self, answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        if answer.error_code in MUST_JOIN_AGAIN:
            self.epoch = JOIN_EPOCH
            self.owned = {}
        elif answer.error_code is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {
                    self._name_of(part.topic_id): frozenset(part.partitions)
                    for part in answer.assignment.topic_partitions
                }
                self._owns_differently = True
        return answer

    def _name_of(self, topic_id: object) -> str:
        topics = self.world.topics
        return next(name for name in topics.known if topics.id_of(name) == topic_id)


def until_stable(*clients: ConsumerClient) -> None:
    """All send heartbeats, a heartbeat interval apart, until nothing changes any more."""
    world = clients[0].world
    quiet = 0
    for _ in range(ROUNDS_MAX):
        before = [(client.epoch, client.owned) for client in clients]
        world.advance(world.settings.group_consumer_heartbeat_interval_ms)
        for client in clients:
            client.beat()
        changed = before != [(client.epoch, client.owned) for client in clients]
        quiet = 0 if changed else quiet + 1
        if quiet == QUIET_ROUNDS:
            return
    raise AssertionError("the group does not until_stable")


def partitions_of(*clients: ConsumerClient, topic: str = "t") -> list[int]:
    """All that these own of a topic: sorted, one that two own twice."""
    return sorted(number for client in clients for number in client.owned.get(TopicName(topic), ()))
