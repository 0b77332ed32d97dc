"""Target computed: what an assignor made outside of a turn comes back, or its failure.

It is taken over if the group still waits for it. Members that have joined since get their target
with the next one; the partitions of those that have left are free until then. A static member may
have come back with another id, which does not raise the group epoch.
"""

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.commands import TargetAssignmentComputed, TargetAssignmentFailed
from coordinator.consumer.decide.target_assignment import target_updated
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.records import turn_records
from coordinator.outcome import Outcome
from protocol.names import MemberId
from seams.now import Now


def decide_target_computed(
    group: ConsumerGroupView | None, command: TargetAssignmentComputed, now: Now
) -> Outcome:
    if group is None or not _waits_for(group, command):
        return Outcome()
    targets = _targets_now(group, command)
    updated = target_updated(
        group, command.group_epoch, command.assignor, targets, targets, now, command.took_ms
    )
    return Outcome(events=(updated,), records=turn_records((updated,)))


def _targets_now(
    group: ConsumerGroupView, command: TargetAssignmentComputed
) -> dict[MemberId, Assignment]:
    """Of the members that are there. Who replaced a static member gets what was meant for it."""
    targets: dict[MemberId, Assignment] = {}
    for member_id, target in command.targets.items():
        instance_id = command.instances.get(member_id)
        holder_id = None if instance_id is None else group.static_members.get(instance_id)
        if holder_id is not None:
            targets[holder_id] = target
        elif member_id in group.members:
            targets.setdefault(member_id, target)
    return targets


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
