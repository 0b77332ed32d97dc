"""Session deadlines: how a sign of life moves them.

A deadline that moves later is a number; the op that is scheduled at the earlier one finds it there
when it fires. A deadline that moves earlier, or that starts again after a pause, needs an op of its
own. Kafka's counterpart: `GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat`.
"""

from collections.abc import Iterable

from coordinator.classic import events
from coordinator.classic.decide.checks import identity_of
from coordinator.classic.delayed import DelayedHeartbeat
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from seams.now import Now


def beat_ops(
    group: ClassicGroupView, members: Iterable[ClassicMemberView], now: Now
) -> list[DelayedHeartbeat]:
    """The ops to file when these members' sessions start afresh now."""
    ops = []
    for member in members:
        deadline_ms = now.mono_ms + member.session_timeout_ms
        if deadline_ms < member.session_deadline_ms:
            ops.append(DelayedHeartbeat(group.group_id, member.member_id, deadline_ms))
    return ops


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
            identity_of(member),
            now.mono_ms - member.lapsed_at_ms,
            deadline_ms,
        ),
    )
