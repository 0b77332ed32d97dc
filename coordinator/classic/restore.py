"""Classic restore: GroupMetadata records and generation records back to classic groups.

Called by coordinator/restore.py at a load: a record changes a group without a decision and without
an event. Kafka's counterpart: `GroupMetadataManager.replay` of GroupMetadataKey.
"""

import struct
from typing import Final, Protocol

from coordinator.classic.generation_messages import GenerationBegunKey, GenerationBegunValue
from coordinator.classic.generation_record import GENERATION_BEGUN_VERSION
from coordinator.classic.generations import is_later
from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.group_base import Group
from coordinator.records import (
    GROUP_METADATA,
    UnreadableRecord,
    read_group_key,
    read_group_metadata_value,
)
from coordinator.stored_records import StoredGroup
from protocol.compiler import reader
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
)
from protocol.primitives import Malformed
from storage.api import StoredRecord

REBALANCE_TIMEOUT_UNKNOWN: Final = -1

_INT16: Final = struct.Struct(">h")


class ClassicGroupTable(Protocol):
    """What a load writes into, as far as classic records need it."""

    def get(self, group_id: GroupId, /) -> Group | None: ...
    def __setitem__(self, group_id: GroupId, group: ClassicGroup, /) -> None: ...
    def __delitem__(self, group_id: GroupId, /) -> None: ...


def apply_group_record(groups: ClassicGroupTable, key: bytes, record: StoredRecord) -> None:
    group_id = read_group_key(key)
    before = groups.get(group_id)
    if record.value is None:
        if before is None:
            return
        if before.offsets:
            # Kafka keeps offsets apart from groups, and does so here. It writes this when a group
            # changes over to the newer protocol: to us it is a simple group from now on.
            after = ClassicGroup(group_id, record.timestamp_ms)
            after.offsets = before.offsets
            groups[group_id] = after
        else:
            del groups[group_id]
        return
    group = _group_of_record(group_id, read_group_metadata_value(record.value))
    if before is not None:
        group.offsets = before.offsets
    if isinstance(before, ClassicGroup):
        group.generation_recorded = before.generation_recorded
        if is_later(before.newest_generation_id, than=group.generation_id):
            group.newest_generation_id = before.newest_generation_id
    groups[group_id] = group


def _group_of_record(group_id: GroupId, stored: StoredGroup) -> ClassicGroup:
    group = ClassicGroup(group_id, stored.state_since_ms)
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
            ClassicMember(
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


def apply_generation_record(groups: ClassicGroupTable, key: bytes, value: bytes | None) -> None:
    """Write the record into `groups`, at load. Raises Malformed for what cannot be read."""
    group_id = GroupId(reader(GenerationBegunKey, 0)(key, _INT16.size, len(key)).group)
    before = groups.get(group_id)
    if before is not None and not isinstance(before, ClassicGroup):
        return  # an older record than those of its present type
    if value is None:
        if before is not None:
            before.generation_recorded = False
        return
    if value[: _INT16.size] != _INT16.pack(GENERATION_BEGUN_VERSION):
        raise Malformed(f"version {value[: _INT16.size].hex()} of a generation is not known")
    begun = reader(GenerationBegunValue, GENERATION_BEGUN_VERSION)(value, _INT16.size, len(value))
    generation_id = GenerationId(begun.generation)
    if before is None:
        before = groups[group_id] = ClassicGroup(group_id, begun.begun_at)
    before.generation_recorded = True
    if not is_later(generation_id, than=before.newest_generation_id):
        return
    if begun.members:
        before = groups[group_id] = _group_of_generation(group_id, begun, before)
    before.newest_generation_id = generation_id


def _group_of_generation(
    group_id: GroupId, begun: GenerationBegunValue, before: ClassicGroup
) -> ClassicGroup:
    """The generation as it was when its joins were answered: no member has synced yet."""
    group = ClassicGroup(group_id, begun.begun_at)
    group.offsets = before.offsets
    group.generation_recorded = True
    group.state = GroupState.COMPLETING_REBALANCE
    group.previous_state = GroupState.PREPARING_REBALANCE
    group.generation_id = GenerationId(begun.generation)
    group.protocol_name = begun.protocol_name
    group.leader_id = MemberId(begun.leader)
    for member in begun.members:
        instance_id = member.group_instance_id
        group.admit(
            ClassicMember(
                member_id=MemberId(member.member_id),
                group_instance_id=None if instance_id is None else GroupInstanceId(instance_id),
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout,
                rebalance_timeout_ms=member.rebalance_timeout,
                protocol_type=begun.protocol_type,
                protocols=tuple((p.name, bytes(p.metadata)) for p in member.protocols),
            )
        )
    group.pending_sync_ids = set(group.members)
    group.subscribed_topics = subscribed_topics(
        begun.protocol_type,
        begun.protocol_name,
        (member.metadata_for(begun.protocol_name) for member in group.members.values()),
    )
    return group
