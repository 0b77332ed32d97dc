"""How does an event change a group's committed offsets? The only writer of `Group.offsets`.

Called by `evolve` for the events of `events.py`, when the turn that decided them ends.
Kafka's counterpart: `OffsetMetadataManager.replay`, which works from the records.
"""

from sys import intern

from coordinator.classic.transitions import check_move
from coordinator.group import Group
from coordinator.offsets.events import GroupDeleted, OffsetEvent, OffsetsCommitted, OffsetsOfTopics
from protocol.names import GroupState, TopicName


def evolve_offsets(group: Group, event: OffsetEvent) -> None:
    if isinstance(event, OffsetsCommitted):
        kept = group.offsets
        for topic, commits in event.offsets:
            partitions = kept.get(topic)
            if partitions is None:
                # Interned: thousands of groups that read one topic share its name.
                kept[TopicName(intern(topic))] = dict(commits)
            else:
                partitions.update(commits)
    elif isinstance(event, GroupDeleted):
        check_move(group.state, GroupState.DEAD)
        group.previous_state = group.state
        group.state = GroupState.DEAD
        group.state_since_ms = event.at_ms
        group.offsets = {}
    else:
        _forget(group, event.offsets)


def _forget(group: Group, offsets: OffsetsOfTopics) -> None:
    for topic, gone in offsets:
        partitions = group.offsets.get(topic)
        if partitions is None:
            continue
        for partition in gone:
            partitions.pop(partition, None)
        if not partitions:
            del group.offsets[topic]
