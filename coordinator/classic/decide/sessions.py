"""Session deadlines: how a sign of life moves them.

A deadline that moves later is a number; the op that is scheduled at the earlier one finds it there
when it fires. A deadline that moves earlier, or that starts again after a pause, needs an op of its
own. New members have five minutes until their join is answered, and then one session. Their op is
never further ahead than one session, so that the answers to 5,000 joins need no new ops.
Kafka's counterpart: `GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat`.
"""

from collections.abc import Iterable

from coordinator.classic import events
from coordinator.classic.delayed import DelayedHeartbeat
from coordinator.classic.group_view import SESSION_PAUSED, ClassicGroupView, ClassicMemberView
from protocol.names import MemberId
from seams.now import Now


def beat_ops(
    group: ClassicGroupView, members: Iterable[ClassicMemberView], now: Now
) -> list[DelayedHeartbeat]:
    """The ops to file when these members' sessions start afresh now."""
    ops = []
    for member in members:
        deadline_ms = now.mono_ms + member.session_timeout_ms
        before_ms = member.session_deadline_ms
        if deadline_ms < before_ms and (not member.is_new or before_ms == SESSION_PAUSED):
            ops.append(DelayedHeartbeat(group.group_id, member.member_id, deadline_ms))
    return ops


def new_member_op(
    group: ClassicGroupView,
    member_id: MemberId,
    session_timeout_ms: int,
    session_deadline_ms: int,
    now: Now,
) -> DelayedHeartbeat:
    """The op of a member whose join was not answered yet."""
    deadline_ms = min(session_deadline_ms, now.mono_ms + session_timeout_ms)
    return DelayedHeartbeat(group.group_id, member_id, deadline_ms)


def extend_session(
    group: ClassicGroupView, member: ClassicMemberView, now: Now
) -> tuple[events.SessionExtended | events.LapseForgiven]:
    """The member was heard from: its session starts afresh, lapsed or not.

    No op is filed here: the shard knows where the last one is, and sees to it.
    """
    deadline_ms = now.mono_ms + member.session_timeout_ms
    if member.lapsed_at_ms is None:
        return (events.SessionExtended(group.group_id, member.member_id, deadline_ms),)
    return (
        events.LapseForgiven(
            group.group_id,
            now.wall_ms,
            group.generation_id,
            member.caller,
            now.mono_ms - member.lapsed_at_ms,
            deadline_ms,
        ),
    )
