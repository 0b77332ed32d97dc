"""Which generation has begun, with whom, before its assignments are known?

Kafka stores a generation at the leader's SyncGroup, so one that dies between the answers to the
joins and that moment is forgotten, and its number is used a second time. Rollcall writes it down
before it answers the joins, in a record of its own: its members then go on with the next process as
if nothing had happened. The record's key opens with a type that no Kafka knows. Every Kafka skips
such records when it loads, so it finds the last generation that has assignments; so do its tools.
The record is deleted in the batch that stores the assignments: a log at rest is Kafka's alone.

Written by complete_join.py, deleted by sync_group.py and whatever else ends the generation, read by
restore.py. See docs/adr for what was weighed. Kafka's counterpart: none.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Final

from coordinator.classic.generations import is_later
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.group import Group, GroupTable, GroupView, Member, MemberView
from protocol.compiler import reader, writer
from protocol.names import GenerationId, GroupId, GroupInstanceId, GroupState, MemberId
from protocol.primitives import Malformed
from protocol.schema import BYTES, INT32, INT64, STRING, Message, Struct, array, nullable
from storage.api import Record

GENERATION_BEGUN: Final = 0x7263
"""The record type, "rc" in the log: far above the numbers that Kafka gives out one by one."""

_VERSION: Final = 0
_INT16: Final = struct.Struct(">h")


class GenerationBegunKey(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    group: Annotated[str, STRING] = ""


class OfferedProtocol(Struct):
    name: Annotated[str, STRING] = ""
    metadata: Annotated[bytes, BYTES] = b""


class BegunMember(Struct):
    """A member with all that it offers: a client that joins again is compared with the whole."""

    member_id: Annotated[str, STRING] = ""
    group_instance_id: Annotated[str | None, nullable(STRING)] = None
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    rebalance_timeout: Annotated[int, INT32] = 0
    session_timeout: Annotated[int, INT32] = 0
    protocols: Annotated[Sequence[OfferedProtocol], array(OfferedProtocol)] = ()


class GenerationBegunValue(Message):
    """Without members when they would not fit: then only the number is spent."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    generation: Annotated[int, INT32] = 0
    protocol_type: Annotated[str, STRING] = ""
    protocol_name: Annotated[str, STRING] = ""
    leader: Annotated[str, STRING] = ""
    begun_at: Annotated[int, INT64] = 0
    members: Annotated[Sequence[BegunMember], array(BegunMember)] = ()


def generation_record(
    group_id: GroupId,
    generation_id: GenerationId,
    protocol: tuple[str, str],
    leader_id: MemberId,
    begun_at_ms: int,
    members: Iterable[MemberView],
) -> Record:
    """`protocol` is (type, name)."""
    value = GenerationBegunValue(
        generation_id,
        protocol[0],
        protocol[1],
        leader_id,
        begun_at_ms,
        [
            BegunMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                [OfferedProtocol(name, metadata) for name, metadata in member.protocols],
            )
            for member in members
        ],
    )
    write = writer(GenerationBegunValue, _VERSION, prefix=_INT16.pack(_VERSION))
    return Record(_key(group_id), write(value))


def generation_tombstone(group_id: GroupId) -> Record:
    return Record(_key(group_id), None)


def _key(group_id: GroupId) -> bytes:
    write = writer(GenerationBegunKey, 0, prefix=_INT16.pack(GENERATION_BEGUN))
    return write(GenerationBegunKey(group_id))


def end_generation_record(group: GroupView) -> tuple[Record, ...]:
    """What belongs into the batch that stores how the generation went on."""
    return (generation_tombstone(group.group_id),) if group.generation_recorded else ()


def apply_generation_record(groups: GroupTable, key: bytes, value: bytes | None) -> None:
    """Write the record into `groups`, at load. Raises Malformed for what cannot be read."""
    group_id = GroupId(reader(GenerationBegunKey, 0)(key, _INT16.size, len(key)).group)
    before = groups.get(group_id)
    if value is None:
        if before is not None:
            before.generation_recorded = False
        return
    if value[: _INT16.size] != _INT16.pack(_VERSION):
        raise Malformed(f"version {value[: _INT16.size].hex()} of a generation is not known")
    begun = reader(GenerationBegunValue, _VERSION)(value, _INT16.size, len(value))
    generation_id = GenerationId(begun.generation)
    if before is None:
        before = groups[group_id] = Group(group_id, begun.begun_at)
    before.generation_recorded = True
    if not is_later(generation_id, than=before.newest_generation_id):
        return
    if begun.members:
        before = groups[group_id] = _restored(group_id, begun, before)
    before.newest_generation_id = generation_id


def _restored(group_id: GroupId, begun: GenerationBegunValue, before: Group) -> Group:
    """The generation as it was when its joins were answered: everybody has yet to sync."""
    group = Group(group_id, begun.begun_at)
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
            Member(
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
