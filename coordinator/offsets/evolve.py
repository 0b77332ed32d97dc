"""Apply offset events: the one writer of `Group.offsets` and pending offsets outside a load.

The group store calls `evolve_offsets` at the end of the turn that decided the event, and, while
there are transactions with offsets, `evolve_pending`.
Kafka's counterpart: `OffsetMetadataManager.replay`, which works from the records.
"""

from sys import intern
from typing import assert_never

from coordinator.group_base import Group
from coordinator.offsets.committed_offsets import offsets_by_partition
from coordinator.offsets.events import (
    NO_PRODUCER,
    OffsetEvent,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsOfTopics,
    OffsetsPending,
    PendingOffsetEvent,
    PendingOffsetsDeleted,
    PendingOffsetsEnded,
)
from coordinator.offsets.pending_offsets import (
    OffsetCommitter,
    PendingOffset,
    PendingOffsets,
    PendingRow,
)
from protocol.names import TopicName


def evolve_offsets(group: Group, event: OffsetEvent) -> None:
    if isinstance(event, OffsetsCommitted):
        offsets = group.offsets
        for topic, commits in event.offsets:
            partitions = offsets.get(topic)
            if partitions is None:
                # Interned: thousands of groups that read one topic share its name.
                offsets[TopicName(intern(topic))] = offsets_by_partition(commits)
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


def evolve_pending(pending: PendingOffsets, event: OffsetEvent | PendingOffsetEvent) -> None:
    match event:
        case OffsetsPending():
            _add(pending, event)
        case OffsetsCommitted():
            _supersede(pending, event)
        case PendingOffsetsEnded():
            pending.end(event.producer_id, event.group_id)
        case OffsetsDeleted():
            for topic, gone in event.offsets:
                pending.remove(event.group_id, topic, gone)
        case PendingOffsetsDeleted():
            for topic, partitions in event.partitions:
                pending.remove(event.group_id, topic, partitions)
        case _:
            assert_never(event)


def _add(pending: PendingOffsets, event: OffsetsPending) -> None:
    committer = OffsetCommitter(
        event.generation_id,
        event.member_id,
        event.client_id,
        event.client_host,
        event.principal,
    )
    record_offset = event.first_offset
    for topic, commits in event.offsets:
        for partition, commit in commits.items():
            offset = PendingOffset(commit, record_offset)
            row = PendingRow(event.producer_id, event.group_id, topic, partition, offset)
            pending.add(row, committer)
            record_offset += 1


def _supersede(pending: PendingOffsets, event: OffsetsCommitted) -> None:
    group_id = event.group_id
    if event.producer_id == NO_PRODUCER:
        for topic, commits in event.offsets:
            for partition in commits:
                pending.supersede(group_id, topic, partition)
        return
    visible = {(topic, partition) for topic, commits in event.offsets for partition in commits}
    for topic, partition, offset in tuple(pending.of_producer(event.producer_id, group_id)):
        if (topic, partition) in visible:
            pending.supersede(group_id, topic, partition, before=offset.record_offset)
