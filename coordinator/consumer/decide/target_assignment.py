"""Target assignment: what each member is to own, made by an assignor for a group epoch.

A small assignment is made in the turn. A large one is made outside of it (`AssignmentJob`), and
comes back as a command; until then members go on towards the target that there is. Kafka's
counterpart: `GroupMetadataManager.maybeUpdateTargetAssignment`, `TargetAssignmentBuilder`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.consumer import events
from coordinator.consumer.assignment_job import AssignmentJob
from coordinator.consumer.assignment_source import NOTHING_ASSIGNED, MembersAfter
from coordinator.consumer.assignors.assignor import Assignment, AssignorFailed
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.assignment_input import assignment_source, choose_assignor
from coordinator.consumer.decide.refusal import Refusal
from coordinator.consumer.decide.subscriptions import Subscriptions
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import ConsumerMemberMetadata
from protocol.names import ErrorCode, MemberId
from seams.now import Now


class MemberTarget(NamedTuple):
    """The target of one member, and the epoch for which it was made.

    `job` makes the next one outside of the turn.
    """

    epoch: int
    assignment: Assignment
    happened: tuple[events.ConsumerEvent, ...] = ()
    job: AssignmentJob | None = None


def is_assignment_due(
    group: ConsumerGroupView, group_epoch: int, now: Now, context: ConsumerContext
) -> bool:
    """Whether the group epoch is ahead of the target, and the last target is not too young."""
    if group_epoch <= group.assignment_epoch or group.computing_epoch is not None:
        return False
    interval_ms = context.configs.assignment_interval_ms(group.group_id)
    # Kafka differs: after the clock was set back it waits until that has caught up.
    return not group.assigned_at_ms <= now.wall_ms < group.assigned_at_ms + interval_ms


def compute_target(
    group: ConsumerGroupView,
    group_epoch: int,
    members: MembersAfter,
    subscriptions: Subscriptions,
    before: ConsumerMemberMetadata,
    member_id: MemberId,
    now: Now,
    context: ConsumerContext,
) -> MemberTarget | Refusal:
    """A new target for all, if it is made at once; the result is that of one member.

    `before`: the metadata that the member had.
    """
    assignor = choose_assignor(group, before, members.metadata[member_id], context)
    source = assignment_source(members, subscriptions, group, context.topics)
    job = AssignmentJob(
        group.group_id, group_epoch, assignor, source, context.stopwatch, now.wall_ms
    )
    if context.offloads and source.size > context.settings.assignor_inline_max:
        requested = events.TargetAssignmentRequested(group.group_id, group_epoch, now.wall_ms)
        target = members.targets.get(member_id, NOTHING_ASSIGNED)
        return MemberTarget(group.assignment_epoch, target, (requested,), job)
    try:
        _, targets, took_ms = job.run()
    except AssignorFailed as failed:
        refused = events.TargetAssignmentRefused(
            group.group_id, now.wall_ms, group_epoch, assignor.name, str(failed)
        )
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None, (refused,))
    updated = target_updated(group, group_epoch, assignor.name, targets, now, took_ms)
    return MemberTarget(group_epoch, targets[member_id], (updated,))


def target_updated(
    group: ConsumerGroupView,
    group_epoch: int,
    assignor: str,
    targets: Mapping[MemberId, Assignment],
    now: Now,
    took_ms: int,
) -> events.TargetAssignmentUpdated:
    """Only what changes is stored. A member without a target gets one, even if it is empty."""
    before = group.targets
    changed = {
        member_id: target
        for member_id, target in targets.items()
        if before.get(member_id) != target
    }
    return events.TargetAssignmentUpdated(
        group.group_id, now.wall_ms, group_epoch, assignor, changed, took_ms
    )
