"""Load and unload of classic groups: timers after a load, refusals when a partition is closed.

After a load each member gets a full session, and a group above its size limit rebalances. When a
partition is closed, the parked joins and syncs of its groups are refused.
Kafka's counterpart: `GroupMetadataManager.onLoaded` and `onUnloaded`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator.classic.commands import BeginRebalance, ClassicCommand, RebalanceCause
from coordinator.classic.decide.join_answers import refuse_join
from coordinator.classic.delayed import ClassicOp, DelayedHeartbeat, DelayedSync
from coordinator.classic.group import ClassicGroup
from coordinator.outcome import Reply
from coordinator.settings import GroupSettings
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode, GroupState
from seams.now import Now


class AfterLoad(NamedTuple):
    """What a group that was loaded needs: ops to schedule, and a command to carry out, if any."""

    ops: list[ClassicOp]
    command: ClassicCommand | None


def start_after_load(group: ClassicGroup, now: Now, settings: GroupSettings) -> AfterLoad:
    ops: list[ClassicOp] = []
    for member in group.members.values():
        member.session_deadline_ms = now.mono_ms + member.session_timeout_ms
        ops.append(DelayedHeartbeat(group.group_id, member.member_id, member.session_deadline_ms))
    if group.state is GroupState.COMPLETING_REBALANCE:
        # A generation that had begun: its members go on where they were.
        deadline_ms = now.mono_ms + group.rebalance_timeout_ms
        ops.append(DelayedSync(group, group.generation_id, deadline_ms))
    size, limit = len(group.members), settings.group_max_size
    if size <= limit:
        return AfterLoad(ops, None)
    reason = (
        f"Freshly-loaded group {group.group_id} (size {size}) is over capacity "
        f"{limit}. Rebalancing in order to give a chance for consumers to commit "
        "offsets"
    )
    begin = BeginRebalance(group.group_id, RebalanceCause.OVER_CAPACITY, reason)
    return AfterLoad(ops, begin)


def refuse_parked(group: ClassicGroup, error_code: ErrorCode) -> Iterator[Reply]:
    """The answers to its parked joins and syncs."""
    for member in group.members.values():
        if member.awaiting_join is not None:
            yield refuse_join(member.awaiting_join, error_code, member.member_id)
        if member.awaiting_sync is not None:
            yield Reply(member.awaiting_sync, SyncGroupResponse(error_code=error_code))
