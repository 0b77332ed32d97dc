"""Subscriptions: which topics have the same subscribers, when members subscribe to different ones.

Members mostly share a few subscriptions, and so do topics their subscribers. What is found out once
for all topics with the same subscribers need not be found out for each.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from coordinator.consumer.assignors.by_object import by_object
from protocol.names import TopicId


class Component(Struct):
    """The members that share topics, directly or through others."""

    members: list[int]


class TopicClass(Struct):
    """The topics that have exactly the same subscribers."""

    topics: list[TopicId]
    subscribers: list[int]
    """Places in the sequence of subscriptions, ascending."""
    component: Component


def topic_classes(subscriptions: Sequence[frozenset[TopicId]]) -> list[TopicClass]:
    groups = _equal_subscriptions(subscriptions)
    by_groups: dict[tuple[int, ...], list[TopicId]] = {}
    for topic_id, of_topic in _groups_by_topic([*groups]).items():
        by_groups.setdefault(tuple(of_topic), []).append(topic_id)

    members = [*groups.values()]
    components: dict[int, Component] = {}
    of_group = [
        components.setdefault(number, Component([]))
        for number in _components(len(members), by_groups)
    ]
    for component, of_members in zip(of_group, members, strict=True):
        component.members += of_members
    return [
        TopicClass(
            topics=topics,
            subscribers=sorted(chain.from_iterable(map(members.__getitem__, of_class))),
            component=of_group[of_class[0]],
        )
        for of_class, topics in by_groups.items()
    ]


def _equal_subscriptions(
    subscriptions: Sequence[frozenset[TopicId]],
) -> dict[frozenset[TopicId], list[int]]:
    groups: dict[frozenset[TopicId], list[int]] = {}
    for place, subscription in enumerate(subscriptions):
        groups.setdefault(subscription, []).append(place)
    return groups


def _groups_by_topic(subscriptions: Sequence[frozenset[TopicId]]) -> dict[TopicId, list[int]]:
    by_topic: dict[TopicId, list[int]] = {
        topic_id: [] for topic_id in frozenset().union(*subscriptions)
    }
    adders = by_object((topic_id, groups.append) for topic_id, groups in by_topic.items())
    for group, subscription in enumerate(subscriptions):
        for add in adders(subscription):
            add(group)
    return by_topic


def _components(groups: int, classes: Iterable[tuple[int, ...]]) -> list[int]:
    """A number for each group: the same for groups that a chain of classes joins (union-find)."""
    parents = [*range(groups)]

    def root(group: int) -> int:
        while parents[group] != group:
            parents[group] = group = parents[parents[group]]
        return group

    apart = groups - 1
    for of_class in classes:
        if not apart:
            break
        first = root(of_class[0])
        for group in of_class[1:]:
            if parents[group] != first and (other := root(group)) != first:
                parents[other] = first
                apart -= 1
    return [root(group) for group in range(groups)]
