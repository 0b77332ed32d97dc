"""A consumer of the classic protocol: the client's half, for tests in virtual time.

It does what the Java client does with the assignors `range` (eager: gives everything back before it
joins again) and `cooperative-sticky` (keeps what it owns, and joins once more after it gave
something back). If it leads, it assigns. A test says when it takes its next step.
"""

from collections.abc import Iterable, Mapping, Sequence

from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import NO_GENERATION, UNKNOWN_MEMBER_ID, ErrorCode, TopicName
from tests.world import SESSION_TIMEOUT_MS, Asked, World

Owned = dict[str, frozenset[int]]

_REJOIN_WITH_ID = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED)


class ClassicClient:
    """One member. `owned` are the partitions that it reads; `waiting` its request on the way."""

    def __init__(
        self,
        world: World,
        name: str,
        group_id: str = "g",
        *,
        topics: Sequence[str] = ("t",),
        instance_id: str | None = None,
        cooperative: bool = False,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        self.world = world
        self.name = name
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.cooperative = cooperative
        self.session_timeout_ms = session_timeout_ms
        self.member_id: str = UNKNOWN_MEMBER_ID
        self.generation_id: int = NO_GENERATION
        self.owned: Owned = {}
        self.waiting: Asked | None = None

    @property
    def protocol_name(self) -> str:
        return "cooperative-sticky" if self.cooperative else "range"

    # ------------------------------------------------------------ what a test asks for

    def step(self) -> None:
        """Read an answer that has come, or send a heartbeat, and do what follows from it."""
        if self.waiting is not None:
            self._read()
        elif self.generation_id == NO_GENERATION:
            self.join()
        else:
            self._beat()

    def join(self) -> Asked:
        if not self.cooperative:
            self.owned = {}
        return self._send(
            self.world.join(
                self.group_id,
                self.member_id,
                instance_id=self.instance_id,
                protocols=((self.protocol_name, self.subscription),),
                session_timeout_ms=self.session_timeout_ms,
                client_id=self.name,
            )
        )

    def reconnect(self) -> None:
        """The coordinator is another process: what was parked there is asked again."""
        if self.waiting is not None and self.waiting.waits:
            self.waiting = None
            self.join()

    def leave(self) -> None:
        if self.waiting is not None:
            self._read()
        self.world.leave(self.group_id, (self.member_id, self.instance_id))
        self._forget()

    def commit(self, offsets: Mapping[int, int], topic: str = "t") -> ErrorCode:
        return self.world.commit(
            self.group_id, self.member_id, self.generation_id, topic=topic, offsets=dict(offsets)
        )

    @property
    def subscription(self) -> bytes:
        return write_subscription(
            ConsumerProtocolSubscription(
                topics=[TopicName(topic) for topic in self.topics],
                owned_partitions=_listed(self.owned),
            ),
            version=1,
        )

    # ------------------------------------------------------------ steps

    def _send(self, asked: Asked) -> Asked:
        self.waiting = asked
        if not asked.waits:
            self._read()
        return asked

    def _read(self) -> None:
        asked = self.waiting
        assert asked is not None
        if asked.waits:
            return
        self.waiting = None
        response = asked.response
        if isinstance(response, JoinGroupResponse):
            self._joined(response)
        else:
            assert isinstance(response, SyncGroupResponse)
            self._synced(response)

    def _joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code in _REJOIN_WITH_ID:
            self.member_id = answer.member_id or self.member_id
            self.join()
            return
        if answer.error_code is not ErrorCode.NONE:
            assert answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
            self._forget()
            return
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        assignments: dict[str, bytes] = {}
        if answer.leader == answer.member_id and not answer.skip_assignment:
            assignments = assign(self.world, answer)
        self._send(
            self.world.sync(
                self.group_id,
                self.member_id,
                self.generation_id,
                instance_id=self.instance_id,
                assignments=assignments,
                protocol_name=self.protocol_name,
            )
        )

    def _synced(self, answer: SyncGroupResponse) -> None:
        if answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
            return
        if answer.error_code is not ErrorCode.NONE:
            self._forget()
            return
        assigned = owned_of(answer.assignment)
        revoked = numbers(self.owned) - numbers(assigned)
        self.owned = assigned
        if self.cooperative and revoked:
            self.join()

    def _beat(self) -> None:
        asked = self.world.beat(self.group_id, self.member_id, self.generation_id, self.instance_id)
        if asked.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif asked.error is ErrorCode.ILLEGAL_GENERATION:
            self.owned = {}  # lost
            self.generation_id = NO_GENERATION
        elif asked.error is not ErrorCode.NONE:
            self._forget()

    def _forget(self) -> None:
        self.member_id, self.generation_id = UNKNOWN_MEMBER_ID, NO_GENERATION
        self.owned = {}
        self.waiting = None


def numbers(owned: Mapping[str, Iterable[int]]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partitions in owned.items() for partition in partitions}


def owned_of(assignment: bytes) -> Owned:
    if not assignment:
        return {}
    listed = read_assignment(assignment).assigned_partitions
    return {part.topic: frozenset(part.partitions) for part in listed if part.partitions}


def assign(world: World, answer: JoinGroupResponse) -> dict[str, bytes]:
    """In turn, over the members in their order. What another one still owns waits for a round."""
    subscriptions = {
        member.member_id: read_subscription(bytes(member.metadata)) for member in answer.members
    }
    owners = {
        (part.topic, partition): member_id
        for member_id, subscription in subscriptions.items()
        for part in subscription.owned_partitions
        for partition in part.partitions
    }
    assigned: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in subscriptions}
    for topic in sorted({name for s in subscriptions.values() for name in s.topics}):
        readers = sorted(m for m, s in subscriptions.items() if topic in s.topics)
        for partition in range(world.topics.counts.get(TopicName(topic), 0)):
            reader = readers[partition % len(readers)]
            if owners.get((topic, partition), reader) == reader:
                assigned[reader].setdefault(topic, set()).add(partition)
    return {
        member_id: write_assignment(ConsumerProtocolAssignment(_listed(owned)), version=1)
        for member_id, owned in assigned.items()
    }


def _listed(owned: Mapping[str, Iterable[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(TopicName(topic), sorted(owned[topic])) for topic in sorted(owned)]
