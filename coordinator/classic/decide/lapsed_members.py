"""Lapsed members: a session has run out, but the removal waits until others would notice.

The rule of rollcall.forgive.slow.member. Kafka differs: it removes the member at once and has the
whole group rebalance. The protocol's original design only marks it: the group stays Stable, and a
member that was merely slow is taken back by whatever it sends next, in its generation. The lapse
becomes a removal at the first answer that would tell another member of it (its heartbeat, its
sync), at any JoinGroup, when a rebalance begins for another reason, or after
rollcall.forgive.max.ms. With nobody else to tell it is Kafka.
"""

from coordinator.classic import events
from coordinator.classic.commands import (
    BeginRebalance,
    ClassicCommand,
    RebalanceCause,
    RemoveLapsed,
)
from coordinator.classic.decide.sessions import extend_session
from coordinator.classic.delayed import DelayedHeartbeat
from coordinator.classic.events import RemovalCause, RemovedMember
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from protocol.names import GroupState, MemberId
from seams.now import Now


def may_lapse(group: ClassicGroupView, settings: GroupSettings) -> bool:
    """Would anybody be disturbed by this member's end? Then wait until they would hear of it."""
    others_are_there = len(group.members) - len(group.lapsed_member_ids) > 1
    return (
        settings.forgive_slow_member
        and settings.forgive_max_ms > 0
        and group.state is GroupState.STABLE
        and others_are_there
    )


def mark_lapsed(
    group: ClassicGroupView, member: ClassicMemberView, now: Now, settings: GroupSettings
) -> Outcome:
    """Mark the member, and look again when the forgiving ends."""
    until_ms = now.mono_ms + settings.forgive_max_ms
    lapsed = events.MemberLapsed(
        group.group_id,
        now.wall_ms,
        now.mono_ms,
        group.generation_id,
        member.caller,
        member.session_timeout_ms,
        until_ms,
    )
    op = DelayedHeartbeat(group.group_id, member.member_id, until_ms)
    return Outcome(events=(lapsed,), ops=(op,))


def resolve_lapses(
    group: ClassicGroupView, member_id: MemberId, command: ClassicCommand, now: Now
) -> Outcome:
    """Before `command` of this member is decided: take it back itself, and let the others go."""
    if member_id in group.lapsed_member_ids:
        happened = extend_session(group, group.members[member_id], now)
        return Outcome(events=happened, then=(command,))
    return Outcome(then=(RemoveLapsed(group.group_id), command))


def decide_remove_lapsed(group: ClassicGroupView | None, _: RemoveLapsed, now: Now) -> Outcome:
    """Do what was put off: Kafka's removal on heartbeat expiration, and its rebalance."""
    if group is None or not group.lapsed_member_ids:
        return Outcome()
    member_ids = tuple(group.lapsed_member_ids)
    begin = BeginRebalance(
        group.group_id,
        RebalanceCause.SESSION_EXPIRED,
        f"removing member {', '.join(member_ids)} on heartbeat expiration.",
        member_ids,
    )
    return Outcome(events=(lapsed_removed(group, now),), then=(begin,))


def lapsed_removed(group: ClassicGroupView, now: Now) -> events.MembersRemoved:
    return events.MembersRemoved(
        group.group_id,
        now.wall_ms,
        group.state,
        group.generation_id,
        RemovalCause.SESSION_EXPIRED,
        tuple(
            RemovedMember(group.members[member_id].caller) for member_id in group.lapsed_member_ids
        ),
    )
