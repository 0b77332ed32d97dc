"""Embedded consumer protocol: subscriptions and assignments of classic members as topic ids.

A classic member says what it subscribes to and owns in its JoinGroup metadata, and gets its
assignment in SyncGroup, both in the bytes of `ConsumerProtocol` with topic names. A consumer group
keeps topic ids. Topics that do not exist are left out in both directions.
Kafka's counterpart: `Utils.toTopicPartitionMap`, `Utils.toConsumerProtocolAssignment`.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from coordinator.consumer.assignors.assignor import Assignment
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    read_assignment,
    write_assignment,
)
from protocol.names import TopicId
from seams.topics_view import TopicsView

_VERSION: Final = struct.Struct(">h")
_NEWEST_VERSION: Final = ConsumerProtocolAssignment.VERSIONS.stop - 1


class CustomAssignor(Exception):
    """An assignment carries data of a client-side assignor, which a consumer group cannot keep."""


_STICKY_PROTOCOLS: Final = frozenset({"sticky", "cooperative-sticky"})
"""Assignors of the clients themselves, which keep their state in subscriptions.

librdkafka copies it into the assignments, where nobody reads it. Kafka differs: it takes it for
data of a custom assignor, and does not upgrade groups of librdkafka's `cooperative-sticky`.
"""


def assigned_topic_ids(
    assignment: bytes, protocol_name: str | None, topics: TopicsView
) -> Assignment:
    """What a member was assigned, as far as it exists. Raises Malformed, CustomAssignor."""
    if not assignment:
        return {}  # a member that has not synced yet
    read = read_assignment(assignment)
    if read.user_data and protocol_name not in _STICKY_PROTOCOLS:
        raise CustomAssignor
    return _by_topic_id(read.assigned_partitions, topics)


def owned_topic_ids(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> Assignment:
    """What a member says that it owns when it joins, as far as it exists."""
    return _by_topic_id(subscription.owned_partitions, topics)


def assignment_bytes(
    assigned: Mapping[TopicId, Iterable[int]], metadata: bytes, topics: TopicsView
) -> bytes:
    """The assignment in the version of the member's own `metadata`."""
    by_name = []
    for topic_id, partitions in assigned.items():
        name = topics.topic_name(topic_id)
        if name is not None:
            by_name.append(TopicPartitions(name, sorted(partitions)))
    by_name.sort(key=lambda topic: topic.topic)
    return write_assignment(ConsumerProtocolAssignment(by_name), _version_of(metadata))


def _by_topic_id(by_name: Iterable[TopicPartitions], topics: TopicsView) -> Assignment:
    """As far as these partitions exist: the topic may have been created again, with fewer."""
    found = {}
    for topic in by_name:
        topic_id = topics.topic_id(topic.topic)
        count = topics.partition_count(topic.topic) or 0
        existing = frozenset(p for p in topic.partitions if 0 <= p < count)
        if topic_id is not None and existing:
            found[topic_id] = existing
    return found


def _version_of(metadata: bytes) -> int:
    """A later version than ours is answered in our newest, no version in the first."""
    if len(metadata) < _VERSION.size:
        return 0
    version: int = _VERSION.unpack_from(metadata)[0]
    return min(max(version, 0), _NEWEST_VERSION)
