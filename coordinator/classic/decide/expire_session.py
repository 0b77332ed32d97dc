"""Session expiry: remove a member, or an assigned id, that was silent for its session timeout.

Follows when a DelayedHeartbeat fires. It may have sent a heartbeat since (then the op is scheduled
again at its new deadline), or it may be waiting for an answer (then its session is paused), unless
it is new: a join without an answer for five minutes is dropped, because its client would have sent
it again by now. See lapsed_members.py for what Rollcall does in a Stable group. Kafka's
counterpart: `GroupMetadataManager.expireClassicGroupMemberHeartbeat`.
"""

from coordinator.classic import events
from coordinator.classic.commands import (
    BeginRebalance,
    ClassicCommand,
    CompleteJoin,
    ExpireSession,
    RebalanceCause,
)
from coordinator.classic.decide.join_answers import refuse_join
from coordinator.classic.decide.lapsed_members import mark_lapsed, may_lapse
from coordinator.classic.decide.sessions import new_member_op
from coordinator.classic.delayed import DelayedHeartbeat
from coordinator.classic.events import RemovalCause, RemovedMember
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.outcome import Outcome, Reply
from coordinator.settings import GroupSettings
from protocol.names import ErrorCode, GroupState
from seams.now import Now


def decide_expire_session(
    group: ClassicGroupView | None, command: ExpireSession, now: Now, settings: GroupSettings
) -> Outcome:
    if group is None or group.state is GroupState.DEAD:
        return Outcome()
    if command.member_id in group.pending_member_ids:
        gone = events.PendingMemberRemoved(
            group.group_id, now.wall_ms, command.member_id, RemovalCause.SESSION_EXPIRED
        )
        return Outcome(events=(gone,), then=_complete_if_last(group, pending_gone=1))
    member = group.members.get(command.member_id)
    if member is None:
        return Outcome()
    if member.session_deadline_ms > now.mono_ms:
        deadline_ms = member.session_deadline_ms
        if member.is_new:
            op = new_member_op(group, member.member_id, member.session_timeout_ms, deadline_ms, now)
        else:
            op = DelayedHeartbeat(group.group_id, member.member_id, deadline_ms)
        return Outcome(ops=(op,))
    if not member.is_new and (member.awaiting_join is not None or member.awaiting_sync is not None):
        return Outcome(events=(events.SessionPaused(group.group_id, member.member_id),))
    if member.lapsed_at_ms is None and may_lapse(group, settings):
        return mark_lapsed(group, member, now, settings)
    return _remove(group, member, now)


def _remove(group: ClassicGroupView, member: ClassicMemberView, now: Now) -> Outcome:
    """The end of a member: its join is refused, and the others rebalance or go on without it."""
    replies: tuple[Reply, ...] = ()
    if member.awaiting_join is not None:
        replies = (refuse_join(member.awaiting_join, ErrorCode.UNKNOWN_MEMBER_ID),)
    removed = events.MembersRemoved(
        group.group_id,
        now.wall_ms,
        group.state,
        group.generation_id,
        RemovalCause.NEW_MEMBER_TIMED_OUT if member.is_new else RemovalCause.SESSION_EXPIRED,
        (RemovedMember(member.caller),),
    )
    then: tuple[ClassicCommand, ...]
    if group.state is GroupState.PREPARING_REBALANCE:
        then = _complete_if_last(group, members_gone=(member,))
    else:
        then = (
            BeginRebalance(
                group.group_id,
                RebalanceCause.SESSION_EXPIRED,
                f"removing member {member.member_id} on heartbeat expiration.",
                (member.member_id,),
            ),
        )
    return Outcome(replies=replies, events=(removed,), then=then)


def _complete_if_last(
    group: ClassicGroupView,
    *,
    pending_gone: int = 0,
    members_gone: tuple[ClassicMemberView, ...] = (),
) -> tuple[ClassicCommand, ...]:
    """Complete the join if only these were missing. Kafka does it even in the initial delay."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return ()
    pending = len(group.pending_member_ids) - pending_gone
    members = len(group.members) - len(members_gone)
    parked = group.awaiting_join_count - sum(m.awaiting_join is not None for m in members_gone)
    if pending or members != parked:
        return ()
    return (CompleteJoin(group.group_id, group.rebalance_id, expired=False),)
