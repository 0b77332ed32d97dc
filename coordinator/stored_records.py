"""Stored records: what a load reads of a group's record, and what it passes over."""

from collections.abc import Sequence

import msgspec

from protocol.names import GenerationId, GroupInstanceId, MemberId


class RecordSkipped(msgspec.Struct, frozen=True):
    """A record that a load passes over; `name` is None if its type is not known at all."""

    offset: int
    record_type: int
    name: str | None


class StoredMember(msgspec.Struct, frozen=True):
    """A member as it is written: with the metadata of the selected protocol only."""

    member_id: MemberId
    group_instance_id: GroupInstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(msgspec.Struct, frozen=True):
    """A group's record, read back. A `rebalance_timeout_ms` of -1 was not known to its version."""

    protocol_type: str | None
    generation_id: GenerationId
    protocol_name: str | None
    leader_id: MemberId | None
    state_since_ms: int
    members: Sequence[StoredMember]
