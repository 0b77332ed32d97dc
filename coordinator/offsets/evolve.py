"""Apply offset events: the one writer of `Group.offsets` outside a load.

The group store calls `evolve_offsets` at the end of the turn that decided the event.
Kafka's counterpart: `OffsetMetadataManager.replay`, which works from the records.
"""

from sys import intern
from typing import assert_never

from coordinator.group import Group
from coordinator.offsets.events import (
    OffsetEvent,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsOfTopics,
)
from protocol.names import TopicName


def evolve_offsets(group: Group, event: OffsetEvent) -> None:
    if isinstance(event, OffsetsCommitted):
        offsets = group.offsets
        for topic, commits in event.offsets:
            partitions = offsets.get(topic)
            if partitions is None:
                # Interned: thousands of groups that read one topic share its name.
                offsets[TopicName(intern(topic))] = dict(commits)
            else:
                partitions.update(commits)
    elif isinstance(event, OffsetsDeleted):
        _delete(group, event.offsets)
    else:
        assert_never(event)


def _delete(group: Group, deleted: OffsetsOfTopics) -> None:
    for topic, gone in deleted:
        partitions = group.offsets.get(topic)
        if partitions is None:
            continue
        for partition in gone:
            partitions.pop(partition, None)
        if not partitions:
            del group.offsets[topic]
