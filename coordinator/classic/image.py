"""Classic image: a classic group in plain values, as a snapshot keeps it, and back.

A snapshot keeps of a group what its records say of it, no more and no less: the two functions are
inverse to each other for every group that a load makes, and property tests check that.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

from coordinator.classic.events import Protocols
from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.offsets.committed_offsets import OffsetsByTopic
from coordinator.offsets.plain_offsets import OffsetColumns, offsets_of_plain, plain_offsets
from protocol.names import (
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
)

# Only these come out of a log.
_STATES: Final = (GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE)


class _Plain(NamedTuple):
    """The fields of a group, in the order of a blob."""

    state: int
    state_since_ms: int
    generation_id: int
    newest_generation_id: int
    generation_recorded: bool
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str
    members: "Sequence[_PlainMember]"
    offsets: Sequence[OffsetColumns] | OffsetsByTopic


_PlainMember = tuple[
    str, str | None, str, str, int, int, str, Sequence[tuple[str, bytes]], bytes
]  # member, instance, client, host, session, rebalance timeout, type, protocols, assignment


def plain_classic_group(group: ClassicGroup) -> object:
    """What msgpack takes: a list of plain values and lists of these."""
    return _Plain(
        _STATES.index(group.state),
        group.state_since_ms,
        group.generation_id,
        group.newest_generation_id,
        group.generation_recorded,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        [
            (
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.protocol_type,
                member.protocols,
                member.assignment,
            )
            for member in group.members.values()
        ],
        plain_offsets(group.offsets),
    )


def classic_group_of(group_id: GroupId, plain: object) -> ClassicGroup:
    """The group that `plain_classic_group` was asked about."""
    stored = _Plain._make(cast("Iterable[object]", plain))
    group = ClassicGroup(group_id, stored.state_since_ms)
    group.generation_id = GenerationId(stored.generation_id)
    group.newest_generation_id = GenerationId(stored.newest_generation_id)
    group.generation_recorded = stored.generation_recorded
    group.protocol_name = stored.protocol_name
    group.leader_id = MemberId(stored.leader_id)
    for member in stored.members:
        group.admit(_member_of(member))
    group.protocol_type = stored.protocol_type
    group.state = _STATES[stored.state]
    if group.state is GroupState.COMPLETING_REBALANCE:
        group.previous_state = GroupState.PREPARING_REBALANCE
        group.pending_sync_ids = set(group.members)
    group.subscribed_topics = subscribed_topics(
        group.protocol_type,
        group.protocol_name,
        (member.metadata_for(group.protocol_name) for member in group.members.values()),
    )
    group.offsets = offsets_of_plain(stored.offsets)
    return group


def _member_of(plain: _PlainMember) -> ClassicMember:
    member_id, instance_id, client, host, session_ms, rebalance_ms, kind, protocols, assigned = (
        plain
    )
    offered: Protocols = tuple((name, metadata) for name, metadata in protocols)
    return ClassicMember(
        member_id=MemberId(member_id),
        group_instance_id=None if instance_id is None else GroupInstanceId(instance_id),
        client_id=client,
        client_host=host,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type=kind,
        protocols=offered,
        assignment=assigned,
    )
