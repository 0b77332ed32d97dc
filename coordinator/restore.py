"""Which groups does this log tell of? Records, in their order, back to groups.

The inverse of records.py, used when a shard loads its partition and nowhere else: here a record
changes a group without a decision and without an event. The shard then arms the timers, and checks
the groups against its limits. Reads every version that a Kafka ever wrote.

What was not written down is not there after a load: a rebalance in progress (the group is Stable in
the generation before it), ids that were handed out, and what a member offers besides the protocol
that was selected. Kafka's counterpart: the `replay` methods of `GroupMetadataManager` and
`OffsetMetadataManager`, and what `CoordinatorLoaderImpl` skips.
"""

from typing import Final

from msgspec import Struct

from coordinator.classic.generation_record import GENERATION_BEGUN, apply_generation_record
from coordinator.classic.generations import is_later
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.group import Group, GroupTable, Member
from coordinator.record_schemas import RECORD_SCHEMAS
from coordinator.records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    StoredGroup,
    UnreadableRecord,
    read_group_key,
    read_group_metadata_value,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from protocol.names import UNKNOWN_MEMBER_ID, GroupId, GroupState
from protocol.primitives import Malformed
from storage.api import StoredRecord

REBALANCE_TIMEOUT_UNKNOWN: Final = -1


class RecordSkipped(Struct, frozen=True):
    """A record that stays in the log and says nothing to us; `name` is None if to nobody."""

    offset: int
    record_type: int
    name: str | None


def apply_record(groups: GroupTable, record: StoredRecord) -> RecordSkipped | None:
    """Write one record of the log into `groups`.

    Raises UnreadableRecord for what should have been understood; the partition must not be served
    then, for it would answer with offsets that have long been replaced.
    """
    kind = record_type(record.key)
    assert record.key is not None
    if kind in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        _apply_offset(groups, kind, record.key, record)
        return None
    if kind == GROUP_METADATA:
        _apply_group(groups, record.key, record)
        return None
    if kind == GENERATION_BEGUN:
        try:
            apply_generation_record(groups, record.key, record.value)
        except Malformed as error:
            raise UnreadableRecord(kind, None, str(error)) from error
        return None
    schema = RECORD_SCHEMAS.get(kind)
    return RecordSkipped(record.offset, kind, None if schema is None else schema.name)


def _apply_offset(groups: GroupTable, kind: int, key: bytes, record: StoredRecord) -> None:
    group_id, topic, partition = read_offset_key(key)
    group = groups.get(group_id)
    if record.value is None:
        if group is not None and topic in group.offsets:
            group.offsets[topic].pop(partition, None)
            if not group.offsets[topic]:
                del group.offsets[topic]
        return
    commit = read_offset_commit_value(record.value, kind)
    if group is None:
        # A simple group, until a record of its own says more.
        group = groups[group_id] = Group(group_id, record.timestamp_ms)
    partitions = group.offsets.get(topic)
    if partitions is None:
        partitions = group.offsets[topic] = {}
    partitions[partition] = commit


def _apply_group(groups: GroupTable, key: bytes, record: StoredRecord) -> None:
    group_id = read_group_key(key)
    before = groups.get(group_id)
    if record.value is None:
        if before is None:
            return
        if before.offsets:
            # Kafka keeps offsets apart from groups, and does so here. It writes this when a group
            # changes over to the newer protocol: to us it is a simple group from now on.
            after = Group(group_id, record.timestamp_ms)
            after.offsets = before.offsets
            groups[group_id] = after
        else:
            del groups[group_id]
        return
    group = _restored(group_id, read_group_metadata_value(record.value))
    if before is not None:
        group.offsets = before.offsets
        group.generation_recorded = before.generation_recorded
        if is_later(before.newest_generation_id, than=group.generation_id):
            group.newest_generation_id = before.newest_generation_id
    groups[group_id] = group


def _restored(group_id: GroupId, stored: StoredGroup) -> Group:
    group = Group(group_id, stored.state_since_ms)
    group.generation_id = group.newest_generation_id = stored.generation_id
    group.protocol_name = stored.protocol_name
    group.leader_id = stored.leader_id or UNKNOWN_MEMBER_ID
    for member in stored.members:
        if member.member_id in group.members or member.group_instance_id in group.static_members:
            raise UnreadableRecord(GROUP_METADATA, None, f"{member.member_id} is there twice")
        timeout_ms = member.rebalance_timeout_ms
        if timeout_ms == REBALANCE_TIMEOUT_UNKNOWN:
            timeout_ms = member.session_timeout_ms
        group.admit(
            Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=timeout_ms,
                protocol_type=stored.protocol_type or "",
                protocols=((stored.protocol_name or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    group.protocol_type = stored.protocol_type
    group.state = GroupState.STABLE if stored.members else GroupState.EMPTY
    group.subscribed_topics = subscribed_topics(
        stored.protocol_type,
        stored.protocol_name,
        (member.subscription for member in stored.members),
    )
    return group
