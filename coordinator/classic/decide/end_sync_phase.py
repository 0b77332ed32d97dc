"""Sync timeout: remove the members that joined a generation and did not sync in time.

Follows when a DelayedSync ends. Once all have synced there is nothing to do; after the rebalance
timeout those who have not are removed, in CompletingRebalance as in Stable, and the rest
rebalances. Sessions that end at the same time end first, as in Kafka, which files them first:
then those who are silent leave, and nobody else. Version 0 of JoinGroup has one time for both.
Kafka's counterpart: `GroupMetadataManager.expirePendingSync`.
"""

from coordinator.classic import events
from coordinator.classic.commands import BeginRebalance, EndSyncPhase, RebalanceCause
from coordinator.classic.delayed import DelayedSync
from coordinator.classic.events import RemovalCause, RemovedMember
from coordinator.classic.group_view import ClassicGroupView
from coordinator.outcome import Outcome
from protocol.names import GroupState
from seams.now import Now


def decide_end_sync_phase(
    group: ClassicGroupView | None, command: EndSyncPhase, now: Now
) -> Outcome:
    if (
        group is None
        or not command.expired
        or group.generation_id != command.generation_id
        or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        or not group.pending_sync_ids
    ):
        return Outcome()
    gone = [m for m in group.members.values() if m.member_id in group.pending_sync_ids]
    if any(member.session_deadline_ms <= now.mono_ms for member in gone):
        return Outcome(ops=(DelayedSync(group, group.generation_id, now.mono_ms),))
    removed = events.MembersRemoved(
        group.group_id,
        now.wall_ms,
        group.state,
        group.generation_id,
        RemovalCause.DID_NOT_SYNC,
        tuple(RemovedMember(member.caller) for member in gone),
    )
    gone_ids = tuple(member.member_id for member in gone)
    begin = BeginRebalance(
        group.group_id,
        RebalanceCause.DID_NOT_SYNC,
        f"Removing [{', '.join(gone_ids)}] on pending sync request expiration",
        gone_ids,
    )
    return Outcome(events=(removed,), then=(begin,))
