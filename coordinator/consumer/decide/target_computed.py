"""Target computed: what an assignor made outside of a turn comes back, or its failure.

It is taken over if the group still waits for it. Members that have joined since get their target
with the next one; the partitions of those that have left are free until then.
"""

from coordinator.consumer import events
from coordinator.consumer.commands import TargetAssignmentComputed, TargetAssignmentFailed
from coordinator.consumer.decide.target_assignment import target_updated
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.records import turn_records
from coordinator.outcome import Outcome
from seams.now import Now


def decide_target_computed(
    group: ConsumerGroupView | None, command: TargetAssignmentComputed, now: Now
) -> Outcome:
    if group is None or not _waits_for(group, command):
        return Outcome()
    members = {member_id: None for member_id in command.targets if member_id in group.members}
    updated = target_updated(
        group,
        command.group_epoch,
        command.assignor,
        members,
        command.targets,
        now,
        command.took_ms,
    )
    return Outcome(events=(updated,), records=turn_records((updated,)))


def decide_target_failed(
    group: ConsumerGroupView | None, command: TargetAssignmentFailed, now: Now
) -> Outcome:
    if group is None or not _waits_for(group, command):
        return Outcome()
    refused = events.TargetAssignmentRefused(
        group.group_id, now.wall_ms, command.group_epoch, command.assignor, command.reason
    )
    return Outcome(events=(refused,))


def _waits_for(
    group: ConsumerGroupView, command: TargetAssignmentComputed | TargetAssignmentFailed
) -> bool:
    is_same = group.computing_since_ms == command.requested_at_ms
    return is_same and group.computing_epoch == command.group_epoch
