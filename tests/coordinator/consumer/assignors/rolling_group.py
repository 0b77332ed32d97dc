"""A consumer group that changes at random: members and topics come, go and change.

Each input of an assignor follows from the seed and from the target assignments before it.
"""

from collections.abc import Iterable, Mapping
from random import Random
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from coordinator.consumer.assignors.assignor import (
    Assignment,
    AssignorInput,
    AssignorMember,
    AssignorTopic,
)
from protocol.names import MemberId, TopicId


class Limits(NamedTuple):
    members: int = 12
    topics: int = 8
    partitions: int = 40


SMALL = Limits()
LARGE = Limits(members=8, topics=50, partitions=40)
_RACKS = ("north", "south", "east")


class RollingGroup:
    def __init__(self, seed: str, limits: Limits = SMALL) -> None:
        self._limits = limits
        self._random = Random(seed)
        self._shares_subscription = self._random.random() < 0.5
        self._topics: dict[TopicId, AssignorTopic] = {}
        self._members: dict[MemberId, AssignorMember] = {}
        self._shared: frozenset[TopicId] = frozenset()
        for _ in range(self._random.randint(0, self._limits.topics)):
            self._create_topic()
        for _ in range(self._random.randint(1, self._limits.members)):
            self._join()

    def next(self) -> AssignorInput:
        """Before the first target assignment the new group; then one with a few changes."""
        members = dict(self._members)
        self._random.shuffle(order := sorted(members))
        subscriptions = {member.subscribed_topic_ids for member in members.values()}
        return AssignorInput(
            members={member_id: members[member_id] for member_id in order},
            topics=dict(self._topics),
            # Kafka compares names, of which some may not exist.
            is_homogeneous=len(subscriptions) <= 1 and self._random.random() < 0.9,
        )

    def assigned(self, target: Mapping[MemberId, Assignment]) -> None:
        """The target assignment that an assignor made of the last input; then things change."""
        self._members = {
            member_id: replace(member, assigned=target.get(member_id, {}))
            for member_id, member in self._members.items()
        }
        changes = (
            self._join,
            self._join,
            self._leave,
            self._leave,
            self._rejoin,
            self._subscribe,
            self._create_topic,
            self._delete_topic,
            self._grow_topic,
        )
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 5))):
            self._random.choice(changes)()

    def _join(self) -> None:
        if len(self._members) < self._limits.members:
            is_static = self._random.random() < 0.3
            self._members[self._member_id()] = AssignorMember(
                rack_id=self._random.choice((None, *_RACKS)),
                instance_id=f"instance-{self._random.getrandbits(16)}" if is_static else None,
                subscribed_topic_ids=self._subscription(),
                assigned={},
            )

    def _leave(self) -> None:
        if len(self._members) > 1:
            del self._members[self._random.choice(sorted(self._members))]

    def _rejoin(self) -> None:
        """A static member comes back with another member id; the target assignment is its own."""
        static = sorted(id_ for id_, member in self._members.items() if member.instance_id)
        if static:
            member = self._members.pop(self._random.choice(static))
            self._members[self._member_id()] = member

    def _subscribe(self) -> None:
        if self._shares_subscription:
            self._shared = self._some(self._topics)
            self._members = {
                member_id: replace(member, subscribed_topic_ids=self._shared)
                for member_id, member in self._members.items()
            }
        else:
            member_id = self._random.choice(sorted(self._members))
            self._members[member_id] = replace(
                self._members[member_id], subscribed_topic_ids=self._subscription()
            )

    def _create_topic(self) -> None:
        if len(self._topics) < self._limits.topics:
            topic_id = UUID(int=self._random.getrandbits(128))
            partitions = self._random.choice((1, 2, 3, 5, 8, 12, 16, 20, 40))
            self._topics[topic_id] = AssignorTopic(partitions, self._racks(partitions))
            if self._random.random() < 0.8:
                self._shared |= {topic_id}
                self._update(lambda subscribed: subscribed | {topic_id})

    def _delete_topic(self) -> None:
        """It stays in the target assignment, where the assignor has to drop it."""
        if self._topics:
            topic_id = self._random.choice(sorted(self._topics))
            del self._topics[topic_id]
            self._shared -= {topic_id}
            self._update(lambda subscribed: subscribed - {topic_id})

    def _grow_topic(self) -> None:
        if self._topics:
            topic_id = self._random.choice(sorted(self._topics))
            partitions = min(
                self._limits.partitions,
                self._topics[topic_id].partitions + self._random.randint(1, 9),
            )
            self._topics[topic_id] = AssignorTopic(partitions, self._racks(partitions))

    def _update(self, change) -> None:
        for member_id, member in self._members.items():
            if self._shares_subscription:
                subscribed = self._shared
            else:
                subscribed = change(member.subscribed_topic_ids)
            self._members[member_id] = replace(member, subscribed_topic_ids=subscribed)

    def _subscription(self) -> frozenset[TopicId]:
        if self._shares_subscription:
            return self._shared
        if self._random.random() < 0.1:
            return frozenset()
        subscriptions = sorted(
            {member.subscribed_topic_ids for member in self._members.values()}, key=sorted
        )
        if subscriptions and self._random.random() < 0.4:
            return self._random.choice(subscriptions)
        return self._some(self._topics)

    def _some(self, topic_ids: Iterable[TopicId]) -> frozenset[TopicId]:
        share = self._random.random()
        return frozenset(id_ for id_ in sorted(topic_ids) if self._random.random() < share)

    def _member_id(self) -> MemberId:
        kind = self._random.random()
        number = UUID(int=self._random.getrandbits(128))
        if kind < 0.1:
            return MemberId(f"größe-\U0001f600-{number.hex[:4]}-\uff5e")
        return MemberId(str(number) if kind < 0.5 else f"consumer-{number.hex[:2]}-{number}")

    def _racks(self, partitions: int) -> tuple[frozenset[str], ...] | None:
        if self._random.random() < 0.3:
            return None
        return tuple(frozenset(self._random.sample(_RACKS, 2)) for _ in range(partitions))
