"""Target computed: what an assignor made outside of a turn comes back, or its failure.

It is taken over if the group still waits for it. Members that have joined since get their target
with the next one; the partitions of those that have left are free until then. A static member may
have come back with another id, which does not raise the group epoch.
"""

from collections.abc import Mapping

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.commands import TargetAssignmentComputed, TargetAssignmentFailed
from coordinator.consumer.decide.target_assignment import target_updated
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.records import target_records
from coordinator.outcome import Outcome
from protocol.names import MemberId
from seams.now import Now


def decide_target_computed(
    group: ConsumerGroupView | None, command: TargetAssignmentComputed, now: Now
) -> Outcome:
    if group is None or not _waits_for(group, command):
        return Outcome()
    taken_over = _taken_over(group, command)
    targets = _targets_now(group, command, taken_over)
    updated = target_updated(
        group, command.group_epoch, command.assignor, targets, now, command.took_ms
    )
    encoded = command.records
    if taken_over:
        holders = set(taken_over.values())
        encoded = {key: record for key, record in encoded.items() if key not in holders}
    return Outcome(events=(updated,), records=target_records(updated, encoded))


def _taken_over(
    group: ConsumerGroupView, command: TargetAssignmentComputed
) -> dict[MemberId, MemberId]:
    """Static members that were replaced meanwhile, and by whom."""
    taken_over = {}
    for member_id, instance_id in command.instances.items():
        holder_id = group.static_members.get(instance_id)
        if holder_id is not None and holder_id != member_id:
            taken_over[member_id] = holder_id
    return taken_over


def _targets_now(
    group: ConsumerGroupView,
    command: TargetAssignmentComputed,
    taken_over: Mapping[MemberId, MemberId],
) -> Mapping[MemberId, Assignment]:
    """Of the members that are there. Who replaced a static member gets what was meant for it."""
    members, computed = group.members, command.targets
    if not taken_over and computed.keys() <= members.keys():
        return computed
    targets = {
        member_id: target
        for member_id, target in computed.items()
        if member_id in members and member_id not in taken_over
    }
    for member_id, holder_id in taken_over.items():
        targets[holder_id] = computed[member_id]
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
