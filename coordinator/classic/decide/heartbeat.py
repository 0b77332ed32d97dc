"""Heartbeat: does this member's claim to its generation still stand?

The busiest question of all, so its common answer takes a short way: `Shard.heartbeat` asks
`judge_heartbeat`, moves one number and sends a shared answer. `decide_heartbeat` is the long way,
for what that cannot say: a fenced member, or lapsed ones of whom this answer would tell.
Kafka's counterpart: `GroupMetadataManager.classicGroupHeartbeatToClassicGroup`.
"""

from typing import Final

from coordinator.classic.commands import Beat
from coordinator.classic.decide.checks import check_member, fenced
from coordinator.classic.decide.lapsed_members import resolve_lapses
from coordinator.classic.decide.sessions import extend_session
from coordinator.classic.group_view import ClassicGroupView
from coordinator.outcome import Outcome, Reply
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.names import ApiKey, ErrorCode, GroupState
from seams.now import Now

HEARTBEAT_ANSWERS: Final = {
    error_code: HeartbeatResponse(error_code=error_code) for error_code in ErrorCode
}
"""One answer for each error: shared by all requests, and written to by nobody."""


def judge_heartbeat(group: ClassicGroupView | None, request: HeartbeatRequest) -> ErrorCode:
    """The answer. With NONE and REBALANCE_IN_PROGRESS the member's session starts afresh."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.group_instance_id is not None or request.member_id not in group.members:
        error_code = check_member(group, request.member_id, request.group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.PREPARING_REBALANCE:
        # The session starts afresh even here: the member is alive, it merely has to rejoin.
        return ErrorCode.REBALANCE_IN_PROGRESS
    # Clients beat between the answers to their JoinGroup and their SyncGroup; that is no error.
    return ErrorCode.NONE


def decide_heartbeat(group: ClassicGroupView | None, command: Beat, now: Now) -> Outcome:
    request = command.request
    error_code = judge_heartbeat(group, request)
    reply = Reply(command.token, HEARTBEAT_ANSWERS[error_code])
    if group is None:
        return Outcome(replies=(reply,))
    if error_code is ErrorCode.FENCED_INSTANCE_ID:
        happened = fenced(
            group, request.member_id, request.group_instance_id, ApiKey.HEARTBEAT, now.wall_ms
        )
        return Outcome(replies=(reply,), events=(happened,))
    if error_code is ErrorCode.NONE and group.lapsed_member_ids:
        return resolve_lapses(group, request.member_id, command, now)
    if error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        return Outcome(
            replies=(reply,), events=extend_session(group, group.members[request.member_id], now)
        )
    return Outcome(replies=(reply,))
