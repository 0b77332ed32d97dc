"""Consumer group records: events of consumer groups as the records of `__consumer_offsets`.

Record types 3 and 5 to 8 and 16, in the versions that Kafka 4.3.1 writes. `event_records` gives the
records of one event; the records of a turn are those of its events, in their order. restore.py is
the inverse. Kafka's counterpart: `GroupCoordinatorRecordHelpers`.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.member import (
    NEVER_ASSIGNED_MS,
    ClassicMetadata,
    ConsumerMemberMetadata,
    CurrentAssignment,
    OwnedPartitions,
)
from coordinator.record_schemas import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    GroupKey,
    GroupMemberKey,
    RegularExpressionKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
    TopicPartitionsWithEpochs,
)
from protocol.compiler import writer
from protocol.names import GroupId, MemberId, TopicId, TopicName
from protocol.schema import Message
from storage.api import RecordPair

GROUP_EPOCH: Final = 3
LEGACY_PARTITION_METADATA: Final = 4  # written by Kafka up to 4.0; only read
MEMBER_METADATA: Final = 5
TARGET_METADATA: Final = 6
TARGET_MEMBER: Final = 7
CURRENT_ASSIGNMENT: Final = 8
REGULAR_EXPRESSION: Final = 16

V = TypeVar("V")

_INT16: Final = struct.Struct(">h")
_VALUE_VERSION: Final = 0


def event_records(event: events.ConsumerEvent) -> Sequence[RecordPair]:
    """What the log keeps of an event; nothing for most."""
    match event:
        case events.CurrentAssignmentUpdated():
            return (current_assignment_record(event.group_id, event.member_id, event.current),)
        case events.ConsumerMemberUpdated():
            return (member_metadata_record(event.group_id, event.member),)
        case events.GroupEpochBumped():
            return (group_epoch_record(event.group_id, event.epoch, event.metadata_hash),)
        case events.TargetAssignmentUpdated():
            return target_records(event, {})
        case events.ConsumerMemberRemoved():
            return member_tombstones(event.group_id, event.member.member_id)
        case events.ConsumerStaticMemberReplaced():
            return (
                *member_tombstones(event.group_id, event.old_member_id),
                member_metadata_record(event.group_id, event.member),
                target_member_record(event.group_id, event.member.member_id, event.target),
                current_assignment_record(event.group_id, event.member.member_id, event.current),
            )
        case events.ClassicGroupUpgraded():
            return _upgrade_records(event)
        case events.RegularExpressionResolved():
            topics, at_ms = sorted(event.topics), event.at_ms
            return (
                regular_expression_record(
                    event.group_id, event.pattern, topics, event.version, at_ms
                ),
            )
        case events.RegularExpressionRemoved():
            return (regular_expression_tombstone(event.group_id, event.pattern),)
        case _:
            return ()


def turn_records(happened: Iterable[events.ConsumerEvent]) -> list[RecordPair]:
    """The records of a turn."""
    return [record for event in happened for record in event_records(event)]


def target_records(
    event: events.TargetAssignmentUpdated, encoded: Mapping[MemberId, RecordPair]
) -> list[RecordPair]:
    """Those of a new target assignment; of some members they are made already."""
    group_id = event.group_id
    records: list[RecordPair] = [
        encoded.get(member_id) or target_member_record(group_id, member_id, target)
        for member_id, target in event.changed.items()
    ]
    records.append(target_metadata_record(group_id, event.assignment_epoch, event.at_ms))
    return records


# ---------------------------------------------------------------- one record each


def group_epoch_record(group_id: GroupId, epoch: int, metadata_hash: int) -> RecordPair:
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    return _group_key(GROUP_EPOCH, group_id), _value(value)


def member_metadata_record(group_id: GroupId, member: ConsumerMemberMetadata) -> RecordPair:
    value = ConsumerGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.subscribed_topic_names,
        member.subscribed_topic_regex,
        member.rebalance_timeout_ms,
        member.server_assignor,
        _classic_metadata(member.classic),
    )
    return _member_key(MEMBER_METADATA, group_id, member.member_id), _value(value)


def target_member_record(group_id: GroupId, member_id: MemberId, target: Assignment) -> RecordPair:
    value = TargetAssignmentMemberValue(
        [TopicPartitions(topic_id, sorted(those)) for topic_id, those in by_topic_id(target)]
    )
    return _member_key(TARGET_MEMBER, group_id, member_id), _value(value)


def target_metadata_record(
    group_id: GroupId, assignment_epoch: int, assigned_at_ms: int
) -> RecordPair:
    value = TargetAssignmentMetadataValue(assignment_epoch, assigned_at_ms)
    return _group_key(TARGET_METADATA, group_id), _value(value)


def current_assignment_record(
    group_id: GroupId, member_id: MemberId, current: CurrentAssignment
) -> RecordPair:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        current.member_epoch,
        current.previous_member_epoch,
        current.state,
        _with_epochs(current.assigned),
        _with_epochs(current.pending_revocation),
    )
    return _member_key(CURRENT_ASSIGNMENT, group_id, member_id), _value(value)


def regular_expression_record(
    group_id: GroupId, pattern: str, topics: Sequence[TopicName], version: int, at_ms: int
) -> RecordPair:
    value = ConsumerGroupRegularExpressionValue(topics, version, at_ms)
    return _regular_expression_key(group_id, pattern), _value(value)


# ---------------------------------------------------------------- tombstones


def member_tombstones(group_id: GroupId, member_id: MemberId) -> tuple[RecordPair, ...]:
    """In Kafka's order: a load drops the member only when its other records are gone."""
    return tuple(
        (_member_key(kind, group_id, member_id), None)
        for kind in (CURRENT_ASSIGNMENT, TARGET_MEMBER, MEMBER_METADATA)
    )


def regular_expression_tombstone(group_id: GroupId, pattern: str) -> RecordPair:
    return _regular_expression_key(group_id, pattern), None


class EndedGroup(Protocol):
    """What names the records of a group."""

    @property
    def group_id(self) -> GroupId: ...
    @property
    def members(self) -> Mapping[MemberId, object]: ...
    @property
    def regexes(self) -> Mapping[str, object]: ...


def group_tombstones(group: EndedGroup) -> Sequence[RecordPair]:
    """The records that end a group in the log, in Kafka's order."""
    return list(_group_tombstones(group))


def _group_tombstones(group: EndedGroup) -> Iterator[RecordPair]:
    group_id = group.group_id
    for kind in (CURRENT_ASSIGNMENT, TARGET_MEMBER):
        for member_id in group.members:
            yield _member_key(kind, group_id, member_id), None
    yield _group_key(TARGET_METADATA, group_id), None
    for member_id in group.members:
        yield _member_key(MEMBER_METADATA, group_id, member_id), None
    for pattern in group.regexes:
        yield regular_expression_tombstone(group_id, pattern)
    yield _group_key(LEGACY_PARTITION_METADATA, group_id), None
    yield _group_key(GROUP_EPOCH, group_id), None


# ---------------------------------------------------------------- pieces


def _upgrade_records(event: events.ClassicGroupUpgraded) -> list[RecordPair]:
    """In Kafka's order. Assigned at 0: the interval between assignments does not count yet."""
    group_id, members = event.group_id, event.members
    return [
        *(member_metadata_record(group_id, member) for member, _, _ in members),
        group_epoch_record(group_id, event.epoch, event.metadata_hash),
        *(
            target_member_record(group_id, member.member_id, target)
            for member, target, _ in members
        ),
        target_metadata_record(group_id, event.epoch, NEVER_ASSIGNED_MS),
        *(
            current_assignment_record(group_id, member.member_id, current)
            for member, _, current in members
        ),
    ]


def _group_key(kind: int, group_id: GroupId) -> bytes:
    return writer(GroupKey, 0, prefix=_INT16.pack(kind))(GroupKey(group_id))


def _member_key(kind: int, group_id: GroupId, member_id: MemberId) -> bytes:
    return writer(GroupMemberKey, 0, prefix=_INT16.pack(kind))(GroupMemberKey(group_id, member_id))


def _regular_expression_key(group_id: GroupId, pattern: str) -> bytes:
    write = writer(RegularExpressionKey, 0, prefix=_INT16.pack(REGULAR_EXPRESSION))
    return write(RegularExpressionKey(group_id, pattern))


def _value(value: Message) -> bytes:
    return writer(type(value), _VALUE_VERSION, prefix=_INT16.pack(_VALUE_VERSION))(value)


def _classic_metadata(classic: ClassicMetadata | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    protocols = [ClassicProtocol(name, metadata) for name, metadata in classic.protocols]
    return ClassicMemberMetadata(classic.session_timeout_ms, protocols)


def _with_epochs(owned: OwnedPartitions) -> list[TopicPartitionsWithEpochs]:
    listed = []
    for topic_id, epochs in by_topic_id(owned):
        partitions = sorted(epochs)
        of_partitions = [epochs[partition] for partition in partitions]
        listed.append(TopicPartitionsWithEpochs(topic_id, partitions, of_partitions))
    return listed


def by_topic_id(of_topics: Mapping[TopicId, V]) -> list[tuple[TopicId, V]]:
    """In the order of the ids. As numbers: to compare two `UUID` takes ten times as long."""
    return sorted(of_topics.items(), key=_id_number)


def _id_number(of_topic: tuple[TopicId, object]) -> int:
    return of_topic[0].int
