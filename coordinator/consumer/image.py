"""Consumer image: a consumer group in plain values, as a snapshot keeps it, and back.

A snapshot keeps of a group what its records say of it, no more and no less: the two functions are
inverse to each other for every group that a load makes. A plain consumer group opens with its type,
a plain classic group with a number.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.group import ConsumerGroup, ConsumerMember
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
    OwnedPartitions,
)
from coordinator.consumer.resolved import ResolvedRegularExpression
from coordinator.group import GroupType
from coordinator.offsets.committed_offsets import OffsetsByTopic
from coordinator.offsets.plain_offsets import OffsetColumns, offsets_of_plain, plain_offsets
from protocol.names import GroupId, GroupInstanceId, MemberId, TopicId, TopicName
from protocol.primitives import read_uuid

_TYPE: Final = GroupType.CONSUMER.value

_PlainTarget = Sequence[tuple[bytes, Sequence[int]]]
"""Topic id and partitions, of each topic."""

_PlainOwned = Sequence[tuple[bytes, Sequence[int], Sequence[int]]]
"""Topic id, partitions and their assignment epochs, of each topic."""

_PlainClassic = tuple[int, Sequence[tuple[str, bytes]]]  # session timeout, protocols


class _Plain(NamedTuple):
    """The fields of a group, in the order of a blob."""

    group_type: str
    state_since_ms: int
    epoch: int
    metadata_hash: int
    assignment_epoch: int
    assigned_at_ms: int
    members: "Sequence[Sequence[object]]"
    targets: Sequence[tuple[str, _PlainTarget]]
    regexes: Sequence[tuple[str, Sequence[str], int, int]]  # topics, version, time
    offsets: Sequence[OffsetColumns] | OffsetsByTopic


class _PlainMember(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: Sequence[str]
    topic_regex: str
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: _PlainClassic | None
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: _PlainOwned
    pending_revocation: _PlainOwned


def plain_consumer_group(group: ConsumerGroup) -> object:
    """What msgpack takes: a list of plain values and lists of these."""
    return _Plain(
        _TYPE,
        group.state_since_ms,
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assigned_at_ms,
        [_plain_member(member) for member in group.members.values()],
        [(member_id, _plain_target(target)) for member_id, target in group.targets.items()],
        [
            (pattern, sorted(regex.topics), regex.version, regex.resolved_at_ms)
            for pattern, regex in group.regexes.items()
        ],
        plain_offsets(group.offsets),
    )


def is_plain_consumer_group(plain: object) -> bool:
    """Whether these values were made by `plain_consumer_group`."""
    return cast("Sequence[object]", plain)[0] == _TYPE


def consumer_group_of(group_id: GroupId, plain: object) -> ConsumerGroup:
    """The group that `plain_consumer_group` was asked about."""
    stored = _Plain._make(cast("Iterable[object]", plain))
    group = ConsumerGroup(group_id, stored.state_since_ms)
    for values in stored.members:
        member = _PlainMember._make(values)
        group.put_member(_metadata_of(member))
        group.put_current(MemberId(member.member_id), _current_of(member))
    for member_id, target in stored.targets:
        group.put_target(MemberId(member_id), _target_of(target))
    for pattern, topics, version, at_ms in stored.regexes:
        names = frozenset(map(TopicName, topics))
        group.put_regex(pattern, ResolvedRegularExpression(names, version, at_ms))
    group.put_epoch(stored.epoch, stored.metadata_hash)
    group.put_assignment_epoch(stored.assignment_epoch, stored.assigned_at_ms)
    group.offsets = offsets_of_plain(stored.offsets)
    return group


# ---------------------------------------------------------------- members


def _plain_member(member: ConsumerMember) -> _PlainMember:
    metadata, current = member.metadata, member.current
    classic = metadata.classic
    return _PlainMember(
        metadata.member_id,
        metadata.instance_id,
        metadata.rack_id,
        metadata.client_id,
        metadata.client_host,
        metadata.subscribed_topic_names,
        metadata.subscribed_topic_regex,
        metadata.rebalance_timeout_ms,
        metadata.server_assignor,
        None if classic is None else (classic.session_timeout_ms, classic.protocols),
        current.member_epoch,
        current.previous_member_epoch,
        int(current.state),
        _plain_owned(current.assigned),
        _plain_owned(current.pending_revocation),
    )


def _metadata_of(member: _PlainMember) -> ConsumerMemberMetadata:
    instance_id, classic = member.instance_id, member.classic
    return ConsumerMemberMetadata(
        MemberId(member.member_id),
        None if instance_id is None else GroupInstanceId(instance_id),
        member.rack_id,
        member.client_id,
        member.client_host,
        tuple(map(TopicName, member.topic_names)),
        member.topic_regex,
        member.rebalance_timeout_ms,
        member.server_assignor,
        None if classic is None else _classic_of(classic),
    )


def _classic_of(plain: _PlainClassic) -> ClassicMetadata:
    session_timeout_ms, protocols = plain
    offered = tuple((name, metadata) for name, metadata in protocols)
    return ClassicMetadata(session_timeout_ms, offered)


def _current_of(member: _PlainMember) -> CurrentAssignment:
    return CurrentAssignment(
        member.member_epoch,
        member.previous_member_epoch,
        ConsumerMemberState(member.state),
        _owned_of(member.assigned),
        _owned_of(member.pending_revocation),
    )


# ---------------------------------------------------------------- partitions


def _plain_target(target: Assignment) -> _PlainTarget:
    return [(topic_id.bytes, sorted(target[topic_id])) for topic_id in sorted(target)]


def _target_of(plain: _PlainTarget) -> Assignment:
    return {read_uuid(raw): frozenset(partitions) for raw, partitions in plain}


def _plain_owned(owned: OwnedPartitions) -> _PlainOwned:
    return [
        (topic_id.bytes, list(owned[topic_id]), list(owned[topic_id].values()))
        for topic_id in sorted(owned)
    ]


def _owned_of(plain: _PlainOwned) -> OwnedPartitions:
    owned: dict[TopicId, Mapping[int, int]] = {}
    for raw, partitions, epochs in plain:
        owned[read_uuid(raw)] = dict(zip(partitions, epochs, strict=True))
    return owned
