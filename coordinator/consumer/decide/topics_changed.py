"""Topics changed: which consumer groups have to look at their topics again?

Nothing is computed here: the next heartbeat of a group computes the metadata hash, and bumps the
group epoch if it is another one. Kafka's counterpart: `GroupMetadataManager.onMetadataUpdate`.
"""

from collections.abc import Set as AbstractSet

from coordinator.consumer import events
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.outcome import Outcome
from protocol.names import TopicName


def decide_topics_changed(group: ConsumerGroupView, topics: AbstractSet[TopicName]) -> Outcome:
    subscribed = frozenset(topic for topic in topics if group.is_subscribed_to(topic))
    if not subscribed:
        return Outcome()
    return Outcome(events=(events.MetadataRefreshRequested(group.group_id, subscribed),))
