"""Consumer group wait: which members a consumer group waits for now, and until when.

Read from the group itself. In Assigning it waits for no member: the next heartbeat brings a target
assignment. In Reconciling it waits for those that are to give partitions back; without such, for
those that have not reached the target yet.
"""

from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberState
from history.waiting import AwaitedMember, GroupWait, WaitReason
from protocol.names import GroupState
from seams.now import Now


def consumer_group_wait(group: ConsumerGroupView, now: Now) -> GroupWait | None:
    """None if it waits for nothing."""
    if group.state is GroupState.ASSIGNING:
        return GroupWait(str(group.state), WaitReason.TARGET, group.state_since_ms)
    if group.state is not GroupState.RECONCILING:
        return None
    revoking = [member for member in group.members.values() if member.current.pending_revocation]
    behind = [member for member in group.members.values() if not _is_reconciled(group, member)]
    awaited = revoking or behind
    deadlines = [
        member.rebalance_deadline_ms
        for member in revoking
        if member.rebalance_deadline_ms is not None
    ]
    until_ms = None
    if deadlines:
        until_ms = now.wall_ms + max(0, max(deadlines) - now.mono_ms)
    return GroupWait(
        str(group.state),
        WaitReason.REVOCATIONS if revoking else WaitReason.RECONCILIATION,
        group.state_since_ms,
        until_ms,
        tuple(_awaited(member, now) for member in awaited),
        len(group.members) - len(behind),
    )


def _is_reconciled(group: ConsumerGroupView, member: ConsumerMemberView) -> bool:
    current = member.current
    return (
        current.state is ConsumerMemberState.STABLE
        and current.member_epoch == group.assignment_epoch
    )


def _awaited(member: ConsumerMemberView, now: Now) -> AwaitedMember:
    left_ms = max(0, member.session_deadline_ms - now.mono_ms)
    return AwaitedMember(member.metadata.identity, now.wall_ms + left_ms)
