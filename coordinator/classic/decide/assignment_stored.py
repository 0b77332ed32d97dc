"""Stored assignments: hand them out, unless the group has moved on or the log failed.

While they were being written, joins were served. So the state and the generation are checked again:
if a rebalance has begun since, what was stored is dropped, for the next generation will be stored
over it. This is the one thing that takes effect when stored rather than when decided.
Kafka's counterpart: the `appendFuture` in `GroupMetadataManager.classicGroupSyncToClassicGroup`.
"""

from collections.abc import Mapping, Sequence

from coordinator.classic import events
from coordinator.classic.commands import (
    AssignmentStored,
    BeginRebalance,
    RebalanceCause,
    RefuseAssignment,
)
from coordinator.classic.decide.sessions import beat_ops
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.outcome import Outcome, Reply, replies_to_many
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import GenerationId, GroupState, MemberId
from seams.now import Now


def decide_assignment_stored(
    group: ClassicGroupView | None, command: AssignmentStored, now: Now
) -> Outcome:
    """Hand out the assignments and be Stable, unless the group has moved on."""
    if group is None:
        return Outcome()
    if not _still_wanted(group, command.generation_id):
        dropped = events.AssignmentDropped(
            group.group_id,
            now.wall_ms,
            command.generation_id,
            group.state,
            group.generation_id,
        )
        return Outcome(events=(dropped,))
    waiting = [m for m in group.members.values() if m.awaiting_sync is not None]
    stabilized = events.GroupStabilized(
        group_id=group.group_id,
        at_ms=now.wall_ms,
        now_ms=now.mono_ms,
        generation_id=group.generation_id,
        assignments=command.assignments,
        answered=tuple(m.member_id for m in waiting),
    )
    return Outcome(
        replies=_answers(group, waiting, command.assignments),
        events=(stabilized,),
        ops=beat_ops(group, waiting, now),
    )


def _answers(
    group: ClassicGroupView,
    waiting: list[ClassicMemberView],
    assignments: Mapping[MemberId, bytes],
) -> Sequence[Reply]:
    protocol_type, protocol_name = group.protocol_type, group.protocol_name
    member_ids = [member.member_id for member in waiting]
    tokens = [member.awaiting_sync for member in waiting]

    def make(first: int, end: int) -> list[Reply]:
        replies: list[Reply] = []
        for n in range(first, end):
            token = tokens[n]
            assert token is not None
            answer = SyncGroupResponse(
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                assignment=assignments.get(member_ids[n], b""),
            )
            replies.append(Reply(token, answer))
        return replies

    return replies_to_many(len(waiting), make)


def decide_refuse_assignment(
    group: ClassicGroupView | None, command: RefuseAssignment, now: Now
) -> Outcome:
    """They cannot be stored: all who wait are told so, and the group tries again."""
    if group is None or not _still_wanted(group, command.generation_id):
        return Outcome()
    waiting = [m for m in group.members.values() if m.awaiting_sync is not None]
    replies = [
        Reply(m.awaiting_sync, SyncGroupResponse(error_code=command.error_code))
        for m in waiting
        if m.awaiting_sync is not None
    ]
    refused = events.AssignmentRefused(
        group.group_id,
        now.wall_ms,
        now.mono_ms,
        group.generation_id,
        command.member_id,
        command.error_code,
    )
    begin = BeginRebalance(
        group.group_id,
        RebalanceCause.ASSIGNMENT_NOT_STORED,
        f"Error {command.error_code.name} when storing group assignmentduring SyncGroup "
        f"(member: {command.member_id}).",
        (command.member_id,),
    )
    return Outcome(
        replies=replies,
        events=(refused,),
        ops=beat_ops(group, waiting, now),
        then=(begin,),
    )


def _still_wanted(group: ClassicGroupView, generation_id: GenerationId) -> bool:
    return group.state is GroupState.COMPLETING_REBALANCE and group.generation_id == generation_id
