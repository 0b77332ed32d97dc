"""Uniform assignment, heterogeneous: members subscribe to different topics.

Members keep what they are assigned, as far as they still subscribe to it. What nobody has goes to
the subscribers with the fewest partitions, topic by topic. Then partitions move from subscribers
with many to such with few, topic by topic, until no move brings them closer.

Kafka sorts the subscribers of each topic, and looks at each partition. Here topics with the same
subscribers share one sorted list, which stays sorted while their partitions are handed out
(`_Subscribers`); and the balancing looks only at topics, members and partitions that can move.
Kafka's counterpart: `UniformHeterogeneousAssignmentBuilder` of 4.3.1, with the same result.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from coordinator.consumer.assignors.assignor import (
    Assignment,
    AssignorInput,
    Partitions,
)
from coordinator.consumer.assignors.balancer import Balancer
from coordinator.consumer.assignors.java_order import member_order
from coordinator.consumer.assignors.subscriptions import Component, TopicClass, topic_classes
from coordinator.consumer.assignors.target import (
    assignment_size,
    partition_count,
    subscribed_part,
    unassigned_partitions,
)
from protocol.names import MemberId, TopicId

_PASSES_MAX: Final = 16
"""Of the balancing over all topics, as in Kafka. Few subscriptions overlap so that two are not
enough; the balance is then nearly even after these."""

_SIGNS: Final = 1 << 127 | 1 << 63
"""Kafka compares the halves of a topic id as signed numbers."""

_NOTHING: Final[Partitions] = frozenset()


def assign_heterogeneous(given: AssignorInput) -> dict[MemberId, Assignment]:
    order = member_order(given.members)
    members = [given.members[member_id] for member_id in order]
    classes = topic_classes([member.subscribed_topic_ids for member in members])
    if not classes:
        return {}
    counts = {
        topic_id: partition_count(given, topic_id)
        for of_class in classes
        for topic_id in of_class.topics
    }
    target = _Target(
        [subscribed_part(member.assigned, member.subscribed_topic_ids) for member in members]
    )
    topics = _Topics(classes, counts, target.sizes)
    if sum(target.sizes) != sum(counts.values()):
        unassigned = unassigned_partitions(counts, target.assignments)
        for topic in topics.ranked(unassigned):
            _hand_out(topic, unassigned[topic.topic_id], target)
    _balance(topics, target)
    return dict(zip(order, target.assignments, strict=True))


class _Target:
    """The assignment in the making. A member is its place in the order of the members."""

    def __init__(self, assignments: list[Assignment]) -> None:
        self.assignments = assignments
        self.sizes = [*map(assignment_size, assignments)]
        self._own: dict[int, dict[TopicId, Partitions]] = {}
        self._singles: list[Partitions] = []

    def own(self, member: int) -> dict[TopicId, Partitions]:
        """The assignment of a member, for a change: a copy of what was given, made once."""
        own = self._own.get(member)
        if own is None:
            own = self._own[member] = dict(self.assignments[member])
            self.assignments[member] = own
        return own

    def singles(self, partitions: int) -> Sequence[Partitions]:
        """For each of so many partitions, it alone: members of several topics share them."""
        known = len(self._singles)
        self._singles += [frozenset((partition,)) for partition in range(known, partitions)]
        return self._singles[:partitions]


class _Version(Struct):
    """How often sizes have changed among members that share topics."""

    number: int


class _Subscribers:
    """The subscribers of all topics of a class, in the order of their sizes."""

    def __init__(self, members: list[int], sizes: list[int], version: _Version) -> None:
        self.members = members
        self._sizes = sizes
        self._by_size: list[int] = []
        self._version = version
        self._sorted_at = -1

    def by_size(self) -> Sequence[int]:
        """The smallest first, then as the members are ordered."""
        if self._sorted_at != self._version.number:
            self._by_size = sorted(self.members, key=self._sizes.__getitem__)
            self._sorted_at = self._version.number
        return self._by_size

    @property
    def imbalance(self) -> int:
        by_size = self.by_size()
        return self._sizes[by_size[-1]] - self._sizes[by_size[0]]

    def changed(self) -> None:
        """Sizes have changed."""
        self._version.number += 1

    def next_takers(self, count: int) -> list[int]:
        """The members that take the next partitions, in order; with `count` ones more, each.

        The smallest take one each until they are as large as the next larger, who then join in.
        """
        by_size, sizes = [*self.by_size()], self._sizes
        takers: list[int] = []
        level, end, taking = sizes[by_size[0]] - 1, 0, 0
        while len(takers) < count:
            level += 1
            end = bisect_right(by_size, level, end, key=sizes.__getitem__)
            taking = min(end, count - len(takers))
            takers += by_size[:taking]

        for member in by_size[:taking]:
            sizes[member] = level + 1
        for member in by_size[taking:end]:
            sizes[member] = level
        above = bisect_right(by_size, level + 1, end, key=sizes.__getitem__)
        self.changed()
        self._sorted_at = self._version.number
        self._by_size = [
            *sorted(by_size[taking:end]),
            *sorted(by_size[:taking] + by_size[end:above]),
            *by_size[above:],
        ]
        return takers


class _Topic(Struct):
    topic_id: TopicId
    partitions: int
    subscribers: _Subscribers


class _Topics:
    def __init__(
        self, classes: Iterable[TopicClass], counts: Mapping[TopicId, int], sizes: list[int]
    ) -> None:
        self._topics: dict[TopicId, _Topic] = {}
        self._components: dict[int, tuple[Component, _Version, list[_Topic]]] = {}
        self._sizes = sizes
        for of_class in classes:
            component = of_class.component
            _, version, in_component = self._components.setdefault(
                id(component), (component, _Version(0), [])
            )
            subscribers = _Subscribers(of_class.subscribers, sizes, version)
            topics = [
                _Topic(topic_id, counts[topic_id], subscribers) for topic_id in of_class.topics
            ]
            in_component += topics
            self._topics.update(zip(of_class.topics, topics, strict=True))

    def ranked(self, topic_ids: Iterable[TopicId]) -> list[_Topic]:
        return sorted((self._topics[topic_id] for topic_id in topic_ids), key=_rank)

    def unbalanced(self) -> list[_Topic]:
        """The topics among which partitions may have to move, ranked."""
        movable = []
        for component, _, topics in self._components.values():
            sizes = {self._sizes[member] for member in component.members}
            if max(sizes) - min(sizes) <= 1:
                continue
            shared = [topic for topic in topics if len(topic.subscribers.members) > 1]
            if any(topic.subscribers.imbalance > 1 for topic in shared):
                movable += shared
        return sorted(movable, key=_rank)


def _rank(topic: _Topic) -> tuple[float, int, int]:
    """Most partitions per subscriber first, then fewest subscribers."""
    subscribers = len(topic.subscribers.members)
    return -topic.partitions / subscribers, subscribers, topic.topic_id.int ^ _SIGNS


def _hand_out(topic: _Topic, partitions: list[int], target: _Target) -> None:
    """Partitions that nobody has."""
    topic_id = topic.topic_id
    takers = topic.subscribers.next_takers(len(partitions))
    is_new = len(partitions) == topic.partitions
    if is_new and len({*takers}) == len(takers):
        # The most frequent case by far of a new group.
        for taker, single in zip(takers, target.singles(topic.partitions), strict=True):
            target.own(taker)[topic_id] = single
        return
    gained: dict[int, list[int]] = {}
    for taker, partition in zip(takers, partitions, strict=True):
        gained.setdefault(taker, []).append(partition)
    for taker, added in gained.items():
        own = target.own(taker)
        own[topic_id] = frozenset(added) if is_new else own.get(topic_id, _NOTHING).union(added)


def _balance(topics: _Topics, target: _Target) -> None:
    """Until each topic has been looked at since the last move, or `_PASSES_MAX` times."""
    movable = topics.unbalanced()
    last_moved = -1
    for _ in range(_PASSES_MAX):
        for place, topic in enumerate(movable):
            if place == last_moved:
                return
            if _balance_topic(topic, target) or last_moved < 0:
                last_moved = place


def _balance_topic(topic: _Topic, target: _Target) -> bool:
    """Whether partitions of the topic have moved."""
    if topic.subscribers.imbalance <= 1:
        return False
    balancer = Balancer(topic.subscribers.by_size(), target.sizes)
    lost: dict[int, list[int]] = {}
    gained: dict[int, list[int]] = {}
    stacks: dict[int, list[int]] = {}
    while (giver := _giver(topic, balancer, stacks, target)) is not None:
        taker = balancer.taker()
        if balancer.is_balanced:
            break
        partition = stacks[giver].pop()
        lost.setdefault(giver, []).append(partition)
        gained.setdefault(taker, []).append(partition)
        target.sizes[giver] -= 1
        target.sizes[taker] += 1
    if not gained:
        return False
    topic.subscribers.changed()
    _move(topic.topic_id, lost, gained, target)
    return True


def _giver(
    topic: _Topic, balancer: Balancer, stacks: dict[int, list[int]], target: _Target
) -> int | None:
    while (giver := balancer.giver()) is not None:
        if giver not in stacks:
            stacks[giver] = sorted(target.assignments[giver].get(topic.topic_id, ()))
        if stacks[giver]:
            return giver
        balancer.exclude_giver()
    return None


def _move(
    topic_id: TopicId,
    lost: dict[int, list[int]],
    gained: dict[int, list[int]],
    target: _Target,
) -> None:
    for member in lost.keys() | gained.keys():
        own = target.own(member)
        held = own.get(topic_id, _NOTHING).difference(lost.get(member, ()))
        held |= frozenset(gained.get(member, ()))
        if held:
            own[topic_id] = held
        else:
            del own[topic_id]
