"""Generation record: a generation that has begun and has no assignments yet.

Kafka stores a generation at the leader's SyncGroup. After a crash between the answers to the joins
and that moment the generation is forgotten, and its number is used a second time. Rollcall stores
it before it answers the joins, in a record of its own: after a restart its members go on in it.
The record's key opens with a type that no Kafka knows. Every Kafka skips such records at a load,
so it finds the last generation that has assignments, and so do its tools. The record is deleted in
the batch that stores the assignments: a log at rest is as Kafka writes it.

Written by complete_join.py, deleted by sync_group.py and by whatever else ends the generation, read
by classic/restore.py. See docs/adr for what was weighed. Kafka's counterpart: none.
"""

import struct
from collections.abc import Iterable
from typing import Final

from coordinator.classic.generation_messages import (
    BegunMember,
    GenerationBegunKey,
    GenerationBegunValue,
    OfferedProtocol,
)
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from protocol.compiler import writer
from protocol.names import GenerationId, GroupId, MemberId
from storage.api import Record

GENERATION_BEGUN: Final = 0x7263
"""The record type, "rc" in the log: far above the numbers that Kafka gives out one by one."""

GENERATION_BEGUN_VERSION: Final = 0
_INT16: Final = struct.Struct(">h")


def generation_record(
    group_id: GroupId,
    generation_id: GenerationId,
    protocol: tuple[str, str],
    leader_id: MemberId,
    begun_at_ms: int,
    members: Iterable[ClassicMemberView],
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
    write = writer(
        GenerationBegunValue, GENERATION_BEGUN_VERSION, prefix=_INT16.pack(GENERATION_BEGUN_VERSION)
    )
    return Record(_key(group_id), write(value))


def generation_tombstone(group_id: GroupId) -> Record:
    return Record(_key(group_id), None)


def _key(group_id: GroupId) -> bytes:
    write = writer(GenerationBegunKey, 0, prefix=_INT16.pack(GENERATION_BEGUN))
    return write(GenerationBegunKey(group_id))


def end_generation_record(group: ClassicGroupView) -> tuple[Record, ...]:
    """What belongs into the batch that stores how the generation went on."""
    return (generation_tombstone(group.group_id),) if group.generation_recorded else ()
