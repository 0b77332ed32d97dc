"""Subscriptions: what the members of a group subscribe to once a heartbeat has taken effect.

Counts as those of `ConsumerGroup`, with one member changed. Kafka's counterpart:
`ConsumerGroup.computeSubscribedTopicNames`, `computeSubscribedRegularExpressions`,
`subscriptionType`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import ConsumerMemberMetadata
from coordinator.consumer.resolved import ResolvedRegularExpression
from protocol.names import TopicName


class Subscriptions(NamedTuple):
    """How many members subscribe to each name and each expression."""

    names: Mapping[TopicName, int]
    regexes: Mapping[str, int]
    members: int


def subscriptions_of(group: ConsumerGroupView) -> Subscriptions:
    return Subscriptions(group.subscribed_names, group.subscribed_regexes, len(group.members))


def subscriptions_after(
    group: ConsumerGroupView,
    before: Iterable[ConsumerMemberMetadata],
    after: Iterable[ConsumerMemberMetadata],
) -> Subscriptions:
    """With the members `after` in the place of `before`."""
    names, regexes = dict(group.subscribed_names), dict(group.subscribed_regexes)
    members = len(group.members)
    for change, changed in ((-1, before), (1, after)):
        for member in changed:
            members += change
            for name in member.subscribed_topic_names:
                names[name] = names.get(name, 0) + change
            regex = member.subscribed_topic_regex
            if regex:
                regexes[regex] = regexes.get(regex, 0) + change
    return Subscriptions(
        {name: count for name, count in names.items() if count},
        {regex: count for regex, count in regexes.items() if count},
        members,
    )


def topics_subscribed_to(
    subscriptions: Subscriptions, resolved: Mapping[str, ResolvedRegularExpression]
) -> set[TopicName]:
    """All names, and the topics of all expressions that are resolved."""
    names = set(subscriptions.names)
    for regex in subscriptions.regexes:
        if regex in resolved:
            names |= resolved[regex].topics
    return names


def is_homogeneous(subscriptions: Subscriptions) -> bool:
    """Whether all members subscribe to the same topics: as Kafka tells it from the counts."""
    names, regexes, members = subscriptions
    if not regexes:
        return all(count == members for count in names.values())
    return not names and len(regexes) == 1 and members in regexes.values()


def topics_of_member(
    metadata: ConsumerMemberMetadata, resolved: Mapping[str, ResolvedRegularExpression]
) -> Collection[TopicName]:
    """Its names, and the topics of its expression if that is resolved."""
    regex = metadata.subscribed_topic_regex
    found = resolved.get(regex) if regex else None
    if found is None or not found.topics:
        return metadata.subscribed_topic_names
    return found.topics.union(metadata.subscribed_topic_names)
