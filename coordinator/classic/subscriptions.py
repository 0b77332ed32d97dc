"""Subscriptions: the topics that the members of a classic group subscribe to.

Only members of protocol type "consumer" say so in a form that we may read: the subscription that
each offers with its protocol. Of every version of it we read the first one's fields, which all
versions begin with. The metadata of other protocol types is opaque. Asked when a generation begins
and when a group is loaded; the answer is kept in `Group.subscribed_topics`.
Kafka's counterpart: `ClassicGroup.computeSubscribedTopics`, `ConsumerProtocolSubscription.json`.
"""

from collections.abc import Iterable
from typing import Final

from protocol.consumer_protocol import PROTOCOL_TYPE, read_subscription_topics
from protocol.names import TopicName

CONSUMER: Final = PROTOCOL_TYPE
"""The protocol type of Kafka's consumers."""


def topics_of_subscription(subscription: bytes) -> tuple[TopicName, ...] | None:
    """The topics that one consumer asks for; None when these bytes are no subscription."""
    if subscription[:1] >= b"\x80":
        return None  # A negative version: Kafka refuses it, and reads any other.
    return read_subscription_topics(subscription)


def subscribed_topics(
    protocol_type: str | None, protocol_name: str | None, subscriptions: Iterable[bytes]
) -> frozenset[TopicName] | None:
    """All topics of these members together; None when nobody can say.

    `subscriptions` is what the members offer for the selected protocol. A consumer group without
    members subscribes to nothing, which is known.
    """
    if protocol_type != CONSUMER:
        return None
    topics: set[TopicName] = set()
    for subscription in set(subscriptions):  # most members of a group send the same bytes
        wanted = None if protocol_name is None else topics_of_subscription(subscription)
        if wanted is None:
            return None
        topics.update(wanted)
    return frozenset(topics)
