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
from collections.abc import Callable, Iterable
from functools import cache
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
from protocol.primitives import uvarint
from storage.api import Record

GENERATION_BEGUN: Final = 0x7263
"""The record type, "rc" in the log: far above the numbers that Kafka gives out one by one."""

GENERATION_BEGUN_VERSION: Final = 0
_INT16: Final = struct.Struct(">h")

_NO_TAGS: Final = b"\x00"
_NO_MEMBERS: Final = b"\x01" + _NO_TAGS
"""The end of a value without members: their number and 1 as a varint, then no tags."""

_HEAD_BYTES: Final = 2 + 4 + 1 + 1 + 1 + 8 + 1
"""Version, generation, three empty strings, time and number of members: what is before the part of
the only member."""


def generation_record(
    group_id: GroupId,
    generation_id: GenerationId,
    protocol: tuple[str, str],
    leader_id: MemberId,
    begun_at_ms: int,
    members: Iterable[ClassicMemberView],
) -> Record:
    """`protocol` is (type, name). Members of a rebalance have their parts ready."""
    parts = [begun_part(member) if member.parts is None else member.parts[0] for member in members]
    value = GenerationBegunValue(
        generation_id, protocol[0], protocol[1], leader_id, begun_at_ms, ()
    )
    head = _writer()(value)[: -len(_NO_MEMBERS)] + uvarint(len(parts) + 1)
    return Record(_key(group_id), b"".join([head, *parts, _NO_TAGS]))


def begun_part(member: ClassicMemberView) -> bytes:
    """What the record has of this member."""
    begun = BegunMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        [OfferedProtocol(name, metadata) for name, metadata in member.protocols],
    )
    alone = _writer()(GenerationBegunValue(members=(begun,)))
    return alone[_HEAD_BYTES : -len(_NO_TAGS)]


@cache
def _writer() -> Callable[[GenerationBegunValue], bytes]:
    version = GENERATION_BEGUN_VERSION
    return writer(GenerationBegunValue, version, prefix=_INT16.pack(version))


def generation_tombstone(group_id: GroupId) -> Record:
    return Record(_key(group_id), None)


def _key(group_id: GroupId) -> bytes:
    write = writer(GenerationBegunKey, 0, prefix=_INT16.pack(GENERATION_BEGUN))
    return write(GenerationBegunKey(group_id))


def end_generation_record(group: ClassicGroupView) -> tuple[Record, ...]:
    """What belongs into the batch that stores how the generation went on."""
    return (generation_tombstone(group.group_id),) if group.generation_recorded else ()
