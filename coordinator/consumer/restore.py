"""Consumer restore: records of types 3 to 8 and 16 back to consumer groups.

Called by coordinator/restore.py at a load: a record changes a group without a decision and without
an event, through the methods of `ConsumerGroup` that events use too. What Kafka takes for an
impossible order is unreadable here as well: the tombstone of a member or of a group before those of
its parts, and a partition that another member still owns. Kafka's counterpart: the `replay` methods
of `GroupMetadataManager` for these records.
"""

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Final, Protocol

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
    OwnedPartitions,
)
from coordinator.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    LEGACY_PARTITION_METADATA,
    MEMBER_METADATA,
    REGULAR_EXPRESSION,
    TARGET_MEMBER,
    TARGET_METADATA,
)
from coordinator.consumer.resolved import ResolvedRegularExpression
from coordinator.offsets.committed_offsets import OffsetsByTopic
from coordinator.record_schemas import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    GroupKey,
    GroupMemberKey,
    RegularExpressionKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitionsWithEpochs,
)
from coordinator.records import UnreadableRecord, read_key, read_value
from protocol.messages.consumer_group_heartbeat import LEAVE_EPOCH
from protocol.names import GroupId, GroupInstanceId, MemberId, TopicId, TopicName
from storage.api import StoredRecord

CONSUMER_RECORDS: Final = frozenset(
    {
        GROUP_EPOCH,
        LEGACY_PARTITION_METADATA,
        MEMBER_METADATA,
        TARGET_METADATA,
        TARGET_MEMBER,
        CURRENT_ASSIGNMENT,
        REGULAR_EXPRESSION,
    }
)

NO_ASSIGNMENT_EPOCH: Final = -1
"""Of a group whose target assignment was deleted: next is the tombstone of the group itself."""

_MEMBER_STATES: Final = {state.value: state for state in ConsumerMemberState}


class RestoredGroup(Protocol):
    """What is asked of a group of any type before records of this type are written into it."""

    offsets: OffsetsByTopic

    @property
    def protocol_type(self) -> str | None: ...
    @property
    def members(self) -> Mapping[MemberId, object]: ...


class ConsumerGroupTable(Protocol):
    """What a load writes into, as far as these records need it."""

    def get(self, group_id: GroupId, /) -> RestoredGroup | None: ...
    def __setitem__(self, group_id: GroupId, group: ConsumerGroup, /) -> None: ...
    def __delitem__(self, group_id: GroupId, /) -> None: ...


def apply_consumer_record(
    groups: ConsumerGroupTable, kind: int, key: bytes, record: StoredRecord
) -> ConsumerGroup | None:
    """Write one record of `CONSUMER_RECORDS` into `groups`.

    Returns the group if this record ended it: it is not in `groups` any more, but its offsets, of
    which there usually are none, have not ended. Raises UnreadableRecord.
    """
    value = record.value
    if kind in (MEMBER_METADATA, TARGET_MEMBER, CURRENT_ASSIGNMENT):
        named = read_key(GroupMemberKey, kind, key)
        group = _group_of(groups, kind, GroupId(named.group_id), record)
        if group is not None:
            _apply_member_record(group, kind, MemberId(named.member_id), value)
    elif kind == REGULAR_EXPRESSION:
        regex_key = read_key(RegularExpressionKey, kind, key)
        group = _group_of(groups, kind, GroupId(regex_key.group_id), record)
        if group is not None:
            _apply_regular_expression(group, regex_key.regular_expression, value)
    else:
        group = _group_of(groups, kind, GroupId(read_key(GroupKey, kind, key).group_id), record)
        if group is not None:
            return _apply_group_record(groups, group, kind, value)
    return None


def _group_of(
    groups: ConsumerGroupTable, kind: int, group_id: GroupId, record: StoredRecord
) -> ConsumerGroup | None:
    """The consumer group that the record is about; None if it is a tombstone of a group unknown.

    A group that only offsets made is replaced: it has no record of its own. Kafka does that for a
    tombstone too.
    """
    before = groups.get(group_id)
    if isinstance(before, ConsumerGroup):
        return before
    if before is None and record.value is None:
        return None
    if before is not None and (before.protocol_type or before.members):
        raise UnreadableRecord(kind, None, f"group {group_id} is not a consumer group")
    group = ConsumerGroup(group_id, record.timestamp_ms)
    if before is not None:
        group.offsets = before.offsets
    groups[group_id] = group
    return group


# ---------------------------------------------------------------- the group


def _apply_group_record(
    groups: ConsumerGroupTable, group: ConsumerGroup, kind: int, value: bytes | None
) -> ConsumerGroup | None:
    if kind == TARGET_METADATA:
        _apply_assignment_epoch(group, value)
    elif kind == LEGACY_PARTITION_METADATA:
        if value is not None:  # Kafka 4.1 and later know the topics by their hash
            read_value(ConsumerGroupPartitionMetadataValue, kind, value)
    elif value is not None:
        stored = read_value(ConsumerGroupMetadataValue, kind, value)
        group.put_epoch(stored.epoch, stored.metadata_hash)
    else:
        _check_ended(group)
        del groups[group.group_id]
        return group
    return None


def _check_ended(group: ConsumerGroup) -> None:
    _check_order(GROUP_EPOCH, not group.members, f"{len(group.members)} members are still there")
    _check_order(GROUP_EPOCH, not group.targets, "targets of members are still there")
    has_assignment = group.assignment_epoch != NO_ASSIGNMENT_EPOCH
    _check_order(GROUP_EPOCH, not has_assignment, "the assignment epoch is still there")


def _apply_assignment_epoch(group: ConsumerGroup, value: bytes | None) -> None:
    if value is None:
        _check_order(TARGET_METADATA, not group.targets, "targets of members are still there")
        group.put_assignment_epoch(NO_ASSIGNMENT_EPOCH, 0)
        return
    stored = read_value(TargetAssignmentMetadataValue, TARGET_METADATA, value)
    epoch, at_ms = stored.assignment_epoch, stored.assignment_timestamp
    if epoch < NO_ASSIGNMENT_EPOCH or at_ms < 0:
        raise UnreadableRecord(TARGET_METADATA, None, f"assignment epoch {epoch} at {at_ms}")
    group.put_assignment_epoch(epoch, at_ms)


def _apply_regular_expression(group: ConsumerGroup, pattern: str, value: bytes | None) -> None:
    if value is None:
        group.remove_regex(pattern)
        return
    stored = read_value(ConsumerGroupRegularExpressionValue, REGULAR_EXPRESSION, value)
    topics = frozenset(TopicName(intern(topic)) for topic in stored.topics)
    group.put_regex(pattern, ResolvedRegularExpression(topics, stored.version, stored.timestamp))


# ---------------------------------------------------------------- its members


def _apply_member_record(
    group: ConsumerGroup, kind: int, member_id: MemberId, value: bytes | None
) -> None:
    if kind == CURRENT_ASSIGNMENT:
        if value is None:
            group.remove_current(member_id)
        else:
            _put_current(group, member_id, value)
    elif kind == TARGET_MEMBER:
        if value is None:
            group.remove_target(member_id)
        else:
            stored = read_value(TargetAssignmentMemberValue, kind, value)
            group.put_target(member_id, _target_of(stored))
    elif value is not None:
        metadata = _metadata_of(
            member_id, read_value(ConsumerGroupMemberMetadataValue, kind, value)
        )
        member = group.members.get(member_id)
        if member is not None:
            _check_unowned(group, kind, member_id, member.current)
        group.put_member(metadata)
    elif member_id in group.members:
        epoch = group.members[member_id].current.member_epoch
        _check_order(kind, epoch == LEAVE_EPOCH, f"the assignment of {member_id} is still there")
        has_target = member_id in group.targets
        _check_order(kind, not has_target, f"the target of {member_id} is still there")
        group.remove_member(member_id)


def _put_current(group: ConsumerGroup, member_id: MemberId, value: bytes) -> None:
    stored = read_value(ConsumerGroupCurrentMemberAssignmentValue, CURRENT_ASSIGNMENT, value)
    current = CurrentAssignment(
        stored.member_epoch,
        stored.previous_member_epoch,
        _MEMBER_STATES.get(stored.state, ConsumerMemberState.UNKNOWN),
        _owned_of(stored.assigned_partitions, stored.member_epoch),
        _owned_of(stored.partitions_pending_revocation, stored.member_epoch),
    )
    _check_unowned(group, CURRENT_ASSIGNMENT, member_id, current)
    if member_id not in group.members:
        # The cleaner removed an older record of its metadata; a newer one follows.
        group.put_member(ConsumerMemberMetadata(member_id))
    group.put_current(member_id, current)


def _check_unowned(
    group: ConsumerGroup, kind: int, member_id: MemberId, current: CurrentAssignment
) -> None:
    """A partition passes to a member in a later epoch, or after its owner has given it back."""
    for topic_id, partitions in current.pending_revocation.items():
        is_twice = not partitions.keys().isdisjoint(current.assigned.get(topic_id, ()))
        _check_order(kind, not is_twice, f"{member_id} owns and gives back the same of {topic_id}")
    for owned in (current.assigned, current.pending_revocation):
        for topic_id, partitions in owned.items():
            owners = group.owners.get(topic_id)
            if owners is None:
                continue
            for partition in partitions:
                owner = owners.get(partition, member_id)
                if owner != member_id:
                    epoch = group.members[owner].current.member_epoch
                    place = f"partition {partition} of {topic_id}"
                    is_later = current.member_epoch > epoch
                    _check_order(kind, is_later, f"{owner} still owns {place} in epoch {epoch}")


def _check_order(kind: int, is_in_order: bool, otherwise: str) -> None:  # noqa: FBT001
    if not is_in_order:
        raise UnreadableRecord(kind, None, otherwise)


# ---------------------------------------------------------------- values


def _metadata_of(
    member_id: MemberId, stored: ConsumerGroupMemberMetadataValue
) -> ConsumerMemberMetadata:
    instance_id, classic = stored.instance_id, stored.classic_member_metadata
    return ConsumerMemberMetadata(
        member_id,
        None if instance_id is None else GroupInstanceId(instance_id),
        stored.rack_id,
        stored.client_id,
        stored.client_host,
        tuple(TopicName(intern(name)) for name in sorted({*stored.subscribed_topic_names})),
        stored.subscribed_topic_regex or "",
        stored.rebalance_timeout_ms,
        stored.server_assignor,
        None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols),
        ),
    )


def _target_of(stored: TargetAssignmentMemberValue) -> Assignment:
    return {
        topic.topic_id: frozenset(topic.partitions)
        for topic in stored.topic_partitions
        if topic.partitions
    }


def _owned_of(stored: Sequence[TopicPartitionsWithEpochs], member_epoch: int) -> OwnedPartitions:
    """Kafka 4.0 to 4.2 wrote no assignment epochs: then it is the member's for all partitions."""
    owned: dict[TopicId, Mapping[int, int]] = {}
    for topic in stored:
        partitions, epochs = topic.partitions, topic.assignment_epochs
        if epochs is None or len(epochs) != len(partitions):
            epochs = [max(member_epoch, 0)] * len(partitions)
        if partitions:
            owned[topic.topic_id] = dict(zip(partitions, epochs, strict=True))
    return owned
