"""A rebalance begins: who has to be told, and how long are the others waited for?

Follows at once on the turn that gives the reason: a join, a leave, an expiry. Parked syncs are sent
back to join; parked joins stay. A group that was empty gets the initial delay, any other is waited
for until all have rejoined or the longest rebalance timeout among its members is over.
Kafka's counterpart: `GroupMetadataManager.prepareRebalance` and
`tryCompleteInitialRebalanceElseSchedule`.
"""

from collections.abc import Sequence

from coordinator.classic import events
from coordinator.classic.commands import BeginRebalance, CompleteJoin, EndInitialDelay
from coordinator.classic.decide.lapsed_members import lapsed_removed
from coordinator.classic.decide.sessions import beat_ops
from coordinator.classic.delayed import (
    ClassicOp,
    DelayedJoin,
    InitialDelayedJoin,
    is_in_rebalance,
)
from coordinator.classic.group_view import ClassicGroupView
from coordinator.classic.transitions import CAN_REBALANCE
from coordinator.outcome import Outcome, Reply
from coordinator.settings import GroupSettings
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode, GroupState
from seams.now import Now


def decide_begin_rebalance(
    group: ClassicGroupView | None, command: BeginRebalance, now: Now, settings: GroupSettings
) -> Outcome:
    """Move to PreparingRebalance; if one is prepared already, this joins it."""
    if group is None or group.state not in CAN_REBALANCE:
        return Outcome()
    if group.lapsed_member_ids:
        # All members have to rejoin now, so the removal need not wait any longer.
        return Outcome(events=(lapsed_removed(group, now),), then=(command,))
    replies: Sequence[Reply] = ()
    ops: list[ClassicOp] = []
    if group.state is GroupState.COMPLETING_REBALANCE:
        waiting = [m for m in group.members.values() if m.awaiting_sync is not None]
        replies = tuple(
            Reply(m.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            for m in waiting
            if m.awaiting_sync is not None
        )
        ops.extend(beat_ops(group, waiting, now))
    begun = events.RebalanceBegun(
        group_id=group.group_id,
        at_ms=now.wall_ms,
        now_ms=now.mono_ms,
        from_state=group.state,
        old_generation_id=group.generation_id,
        cause=command.cause,
        reason=command.reason,
        trigger_ids=command.trigger_ids,
        waiting_for=tuple([m.caller for m in group.members.values() if m.awaiting_join is None]),
        rebalance_timeout_ms=group.rebalance_timeout_ms,
    )
    ops.append(_waiting(group, now, settings))
    return Outcome(replies=replies, events=(begun,), ops=ops)


def _waiting(
    group: ClassicGroupView, now: Now, settings: GroupSettings
) -> DelayedJoin | InitialDelayedJoin:
    rebalance_id = group.rebalance_id + 1  # the one that begins here
    if group.state is GroupState.EMPTY:
        delay_ms = settings.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        return InitialDelayedJoin(
            group, rebalance_id, delay_ms, remaining_ms, now.mono_ms + delay_ms
        )
    return DelayedJoin(group, rebalance_id, now.mono_ms + group.rebalance_timeout_ms)


def decide_end_initial_delay(
    group: ClassicGroupView | None, command: EndInitialDelay, now: Now, settings: GroupSettings
) -> Outcome:
    """Somebody came during the delay: wait once more, while time remains; else complete."""
    if group is None or not is_in_rebalance(group, command.rebalance_id):
        return Outcome()
    if not group.new_member_added or command.remaining_ms == 0:
        return Outcome(then=(CompleteJoin(group.group_id, command.rebalance_id, expired=True),))
    delay_ms = min(settings.group_initial_rebalance_delay_ms, command.remaining_ms)
    remaining_ms = max(command.remaining_ms - command.delay_ms, 0)
    extended = events.InitialDelayExtended(group.group_id, now.wall_ms, delay_ms, remaining_ms)
    op = InitialDelayedJoin(
        group, command.rebalance_id, delay_ms, remaining_ms, now.mono_ms + delay_ms
    )
    return Outcome(events=(extended,), ops=(op,))
