"""Advance: from what a member says to what it is to own, the same for both protocols.

The steps, each with a value as its result: update the member and bump the group epoch
(`update_group`), compute the target assignment, reconcile the member. All events of the turn are in
Kafka's order of records. Kafka's counterpart: the common part of `consumerGroupHeartbeat` and
`classicGroupJoinToConsumerGroup` of `GroupMetadataManager`.
"""

from typing import NamedTuple

from coordinator.consumer import events
from coordinator.consumer.assignment_job import AssignmentJob
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.assignment_input import members_after
from coordinator.consumer.decide.bump_epoch import bump_epoch
from coordinator.consumer.decide.find_member import FoundMember
from coordinator.consumer.decide.reconcile import Goal, Reported, is_reconciled, reconcile_member
from coordinator.consumer.decide.refusal import Refusal
from coordinator.consumer.decide.subscriptions import (
    Subscriptions,
    subscriptions_after,
    subscriptions_of,
    topics_of_member,
)
from coordinator.consumer.decide.target_assignment import (
    MemberTarget,
    compute_target,
    is_assignment_due,
)
from coordinator.consumer.decide.update_regex import RegexUpdate, is_resolution_due, update_regex
from coordinator.consumer.events import EpochCause
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
)
from protocol.names import ErrorCode, GroupId
from seams.now import Now


class Advanced(NamedTuple):
    """A member after its request.

    `is_resolution_due`: expressions are to be resolved next. `job` makes the next target.
    """

    current: CurrentAssignment
    happened: list[events.ConsumerEvent]
    is_resolution_due: bool
    job: AssignmentJob | None


def advance(
    group: ConsumerGroupView,
    found: FoundMember,
    after: ConsumerMemberMetadata,
    reported: Reported,
    now: Now,
    context: ConsumerContext,
) -> Advanced | Refusal:
    """`after` is what the member says of itself now, `reported` what it says that it owns."""
    updated = update_group(group, found, after, now, context)
    if isinstance(updated, Refusal):
        return updated
    happened = updated.happened
    target = _target(group, found, updated, now, context)
    if isinstance(target, Refusal):
        return target
    happened.extend(target.happened)
    current = reconciled_member(group, found, updated, target, reported, context)
    if current is None:
        return _unknown_state()
    if current != found.current:
        happened.append(current_updated(group.group_id, after, current, now))
    subscriptions, regex = updated.subscriptions, updated.regex
    is_due = is_resolution_due(group, subscriptions, regex, now, context)
    return Advanced(current, happened, is_due, target.job)


# ---------------------------------------------------------------- the member and the group epoch


class UpdatedGroup(NamedTuple):
    """A group once it knows what a member says, before it assigns again."""

    metadata: ConsumerMemberMetadata
    subscriptions: Subscriptions
    are_names_changed: bool
    regex: RegexUpdate
    epoch: int
    happened: list[events.ConsumerEvent]

    @property
    def is_subscription_changed(self) -> bool:
        return self.are_names_changed or self.regex.is_changed


def update_group(
    group: ConsumerGroupView,
    found: FoundMember,
    after: ConsumerMemberMetadata,
    now: Now,
    context: ConsumerContext,
) -> UpdatedGroup | Refusal:
    before = found.metadata
    regex = update_regex(group, before.subscribed_topic_regex, after.subscribed_topic_regex)
    if isinstance(regex, Refusal):
        return regex
    are_names_changed = before.subscribed_topic_names != after.subscribed_topic_names
    if found.is_new or are_names_changed or regex.is_changed:
        subscriptions = subscriptions_after(group, () if found.is_new else (before,), (after,))
    else:
        subscriptions = subscriptions_of(group)
    happened = _member_events(group, found, after, regex, now)
    causes = _epoch_causes(found, regex, are_names_changed=are_names_changed)
    bumped = bump_epoch(group, subscriptions, causes, (found.member_id,), now, context)
    happened.extend(bumped.happened)
    return UpdatedGroup(after, subscriptions, are_names_changed, regex, bumped.epoch, happened)


def _member_events(
    group: ConsumerGroupView,
    found: FoundMember,
    after: ConsumerMemberMetadata,
    regex: RegexUpdate,
    now: Now,
) -> list[events.ConsumerEvent]:
    group_id, at_ms = group.group_id, now.wall_ms
    happened: list[events.ConsumerEvent] = []
    if found.replaces is not None:
        happened.append(
            events.ConsumerStaticMemberReplaced(
                group_id,
                at_ms,
                found.replaces,
                found.metadata,
                found.target,
                found.current,
                is_classic=after.classic is not None,
            )
        )
    if after != found.metadata:
        happened.append(events.ConsumerMemberUpdated(group_id, at_ms, after, found.is_new))
    if regex.removed is not None:
        happened.append(events.RegularExpressionRemoved(group_id, at_ms, regex.removed))
    return happened


def _epoch_causes(
    found: FoundMember, regex: RegexUpdate, *, are_names_changed: bool
) -> tuple[EpochCause, ...]:
    """A new expression is no cause yet: its topics will be one, once they are known."""
    if not (are_names_changed or regex.is_effective):
        return ()
    if found.is_new:
        return (EpochCause.MEMBER_JOINED,)
    if are_names_changed:
        return (EpochCause.SUBSCRIPTION_CHANGED,)
    return (EpochCause.REGULAR_EXPRESSION_CHANGED,)


# ---------------------------------------------------------------- the assignment


def _target(
    group: ConsumerGroupView,
    found: FoundMember,
    updated: UpdatedGroup,
    now: Now,
    context: ConsumerContext,
) -> MemberTarget | Refusal:
    if not is_assignment_due(group, updated.epoch, now, context):
        return MemberTarget(group.assignment_epoch, found.target)
    members = members_after(group, updated.metadata, found.target, found.replaces)
    return compute_target(
        group,
        updated.epoch,
        members,
        updated.subscriptions,
        found.metadata,
        updated.metadata.member_id,
        now,
        context,
    )


def reconciled_member(
    group: ConsumerGroupView,
    found: FoundMember,
    updated: UpdatedGroup,
    target: MemberTarget,
    reported: Reported,
    context: ConsumerContext,
) -> CurrentAssignment | None:
    """None: the member has to join again."""
    current = found.current
    if not updated.is_subscription_changed and is_reconciled(current, target.epoch):
        return current
    topics = topics_of_member(updated.metadata, group.regexes)
    goal = Goal(
        target.epoch,
        target.assignment,
        context.topics.ids_of(topics).keys(),
        bool(topics),
        updated.is_subscription_changed,
        reported,
        group.owners,
    )
    return reconcile_member(current, goal)


def current_updated(
    group_id: GroupId, metadata: ConsumerMemberMetadata, current: CurrentAssignment, now: Now
) -> events.CurrentAssignmentUpdated:
    """A member of the classic protocol has other timeouts: to join again, and to sync."""
    deadline_ms = None
    if metadata.classic is None and current.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
        deadline_ms = now.mono_ms + metadata.rebalance_timeout_ms
    return events.CurrentAssignmentUpdated(
        group_id, now.wall_ms, now.mono_ms, metadata.member_id, current, deadline_ms
    )


def _unknown_state() -> Refusal:
    text = (
        "The consumer group member is in a unknown state. The member must abandon all its"
        " partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, text)
