"""Consumer group heartbeat: one turn from what a member says to what it is to own.

Route: dispatch -> GroupCoordinator -> Shard.turn -> decide_heartbeat -> Outcome -> evolve. The
steps, each with a value as its result: find the member, update it, bump the group epoch, compute
the target assignment, reconcile the member, answer. All records of a turn are one batch, in Kafka's
order. Kafka's counterpart: `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.consumer import events
from coordinator.consumer.commands import ConsumerHeartbeat, ResolveRegularExpressions
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.assignment_input import members_after
from coordinator.consumer.decide.bump_epoch import bump_epoch
from coordinator.consumer.decide.find_member import FoundMember, find_member
from coordinator.consumer.decide.leave_group import decide_leave_consumer_group
from coordinator.consumer.decide.reconcile import Goal, is_reconciled, reconcile_member
from coordinator.consumer.decide.refusal import Refusal, refused_outcome
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
from coordinator.consumer.decide.update_member import updated_metadata
from coordinator.consumer.decide.update_regex import RegexUpdate, is_resolution_due, update_regex
from coordinator.consumer.events import EpochCause
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import (
    NO_REBALANCE_TIMEOUT,
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
    OwnedPartitions,
)
from coordinator.consumer.records import turn_records
from coordinator.outcome import Outcome, Reply
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)
from protocol.names import ErrorCode, GroupId, MemberId, TopicId
from seams.now import Now


def decide_heartbeat(
    group: ConsumerGroupView, command: ConsumerHeartbeat, now: Now, context: ConsumerContext
) -> Outcome:
    """Of a group that is there, or of a new one without members."""
    request, token = command.request, command.token
    if request.member_epoch < JOIN_EPOCH:
        return decide_leave_consumer_group(group, command, now, context)
    full = _full(group, request, context)
    if full is not None:
        return refused_outcome(token, full)
    member_id = request.member_id or context.new_member_id()
    found = find_member(group, request, member_id, now)
    if isinstance(found, Refusal):
        return refused_outcome(token, found)
    updated = _update(group, found, command)
    if isinstance(updated, Refusal):
        return refused_outcome(token, updated)
    return _carry_on(group, found, updated, command, now, context)


def _full(
    group: ConsumerGroupView, request: ConsumerGroupHeartbeatRequest, context: ConsumerContext
) -> Refusal | None:
    size_max = context.settings.group_consumer_max_size
    if len(group.members) < size_max or request.member_id in group.members:
        return None
    text = f"The consumer group has reached its maximum capacity of {size_max} members."
    return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, text)


class _Updated(NamedTuple):
    """A member after its request, and what the group subscribes to then."""

    metadata: ConsumerMemberMetadata
    subscriptions: Subscriptions
    are_names_changed: bool
    regex: RegexUpdate

    @property
    def is_subscription_changed(self) -> bool:
        return self.are_names_changed or self.regex.is_changed


def _update(
    group: ConsumerGroupView, found: FoundMember, command: ConsumerHeartbeat
) -> _Updated | Refusal:
    before = found.metadata
    after = updated_metadata(before, command.request, command.token)
    regex = update_regex(group, before.subscribed_topic_regex, after.subscribed_topic_regex)
    if isinstance(regex, Refusal):
        return regex
    are_names_changed = before.subscribed_topic_names != after.subscribed_topic_names
    if found.is_new or are_names_changed or regex.is_changed:
        subscriptions = subscriptions_after(group, () if found.is_new else (before,), (after,))
    else:
        subscriptions = subscriptions_of(group)
    return _Updated(after, subscriptions, are_names_changed, regex)


def _carry_on(
    group: ConsumerGroupView,
    found: FoundMember,
    updated: _Updated,
    command: ConsumerHeartbeat,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    """From the updated member to the answer."""
    happened = _member_events(group, found, updated, now)
    causes = _epoch_causes(found, updated)
    member_id = found.member_id
    bumped = bump_epoch(group, updated.subscriptions, causes, (member_id,), now, context)
    happened.extend(bumped.happened)
    target = _target(group, bumped.epoch, found, updated, now, context)
    if isinstance(target, Refusal):
        return refused_outcome(command.token, target)
    happened.extend(target.happened)
    current = _reconciled(group, found, updated, target, command.request, context)
    if current is None:
        return refused_outcome(command.token, _unknown_state())
    if current != found.current:
        happened.append(_current_updated(group.group_id, updated.metadata, current, now))
    deadline_ms = now.mono_ms + context.configs.session_timeout_ms(group.group_id)
    happened.append(events.ConsumerSessionExtended(group.group_id, member_id, deadline_ms))
    then: tuple[ResolveRegularExpressions, ...] = ()
    if is_resolution_due(group, updated.subscriptions, updated.regex, now, context):
        happened.append(events.RegularExpressionsRequested(group.group_id, now.mono_ms))
        then = (ResolveRegularExpressions(group.group_id, command.token),)
    return Outcome(
        replies=(_answer(command, found, current, context),),
        events=happened,
        records=turn_records(happened),
        then=then,
    )


# ---------------------------------------------------------------- the steps


def _member_events(
    group: ConsumerGroupView, found: FoundMember, updated: _Updated, now: Now
) -> list[events.ConsumerEvent]:
    group_id, at_ms = group.group_id, now.wall_ms
    happened: list[events.ConsumerEvent] = []
    if found.replaces is not None:
        happened.append(
            events.ConsumerStaticMemberReplaced(
                group_id, at_ms, found.replaces, found.metadata, found.target, found.current
            )
        )
    if updated.metadata != found.metadata:
        happened.append(
            events.ConsumerMemberUpdated(group_id, at_ms, updated.metadata, found.is_new)
        )
    if updated.regex.removed is not None:
        happened.append(events.RegularExpressionRemoved(group_id, at_ms, updated.regex.removed))
    return happened


def _epoch_causes(found: FoundMember, updated: _Updated) -> tuple[EpochCause, ...]:
    """A new expression is no cause yet: its topics will be one, once they are known."""
    if not (updated.are_names_changed or updated.regex.is_effective):
        return ()
    if found.is_new:
        return (EpochCause.MEMBER_JOINED,)
    if updated.are_names_changed:
        return (EpochCause.SUBSCRIPTION_CHANGED,)
    return (EpochCause.REGULAR_EXPRESSION_CHANGED,)


def _target(
    group: ConsumerGroupView,
    group_epoch: int,
    found: FoundMember,
    updated: _Updated,
    now: Now,
    context: ConsumerContext,
) -> MemberTarget | Refusal:
    if not is_assignment_due(group, group_epoch, now, context):
        return MemberTarget(group.assignment_epoch, found.target)
    members = members_after(group, updated.metadata, found.target, found.replaces)
    return compute_target(
        group, group_epoch, members, updated.subscriptions, found.member_id, now, context
    )


def _reconciled(
    group: ConsumerGroupView,
    found: FoundMember,
    updated: _Updated,
    target: MemberTarget,
    request: ConsumerGroupHeartbeatRequest,
    context: ConsumerContext,
) -> CurrentAssignment | None:
    """None: the member has to join again."""
    current = found.current
    if not updated.is_subscription_changed and is_reconciled(current, target.epoch):
        return current
    topics = topics_of_member(updated.metadata, group.regexes)

    def owner_of(topic_id: TopicId, partition: int) -> MemberId | None:
        owners = group.owners.get(topic_id)
        return None if owners is None else owners.get(partition)

    goal = Goal(
        target.epoch,
        target.assignment,
        context.topics.ids_of(topics).keys(),
        updated.is_subscription_changed,
        request.topic_partitions,
        owner_of,
    )
    return reconcile_member(current, goal)


def _unknown_state() -> Refusal:
    text = (
        "The consumer group member is in a unknown state. The member must abandon all its"
        " partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, text)


def _current_updated(
    group_id: GroupId, metadata: ConsumerMemberMetadata, current: CurrentAssignment, now: Now
) -> events.CurrentAssignmentUpdated:
    deadline_ms = None
    if current.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
        deadline_ms = now.mono_ms + metadata.rebalance_timeout_ms
    return events.CurrentAssignmentUpdated(
        group_id, now.wall_ms, now.mono_ms, metadata.member_id, current, deadline_ms
    )


# ---------------------------------------------------------------- the answer


def _answer(
    command: ConsumerHeartbeat,
    found: FoundMember,
    current: CurrentAssignment,
    context: ConsumerContext,
) -> Reply:
    assignment = None
    if _is_full_request(command.request) or current.assigned != found.current.assigned:
        assignment = HeartbeatAssignment(_listed(current.assigned))
    answer = ConsumerGroupHeartbeatResponse(
        member_id=found.member_id,
        member_epoch=current.member_epoch,
        heartbeat_interval_ms=context.configs.heartbeat_interval_ms(command.group_id),
        assignment=assignment,
    )
    return Reply(command.token, answer)


def _is_full_request(request: ConsumerGroupHeartbeatRequest) -> bool:
    """One that joins, or says everything: after an error, say. It wants to know everything."""
    if request.member_epoch == JOIN_EPOCH:
        return True
    return (
        request.rebalance_timeout_ms != NO_REBALANCE_TIMEOUT
        and (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None)
        and request.topic_partitions is not None
    )


def _listed(assigned: OwnedPartitions) -> Sequence[HeartbeatTopicPartitions]:
    return [
        HeartbeatTopicPartitions(topic_id, sorted(assigned[topic_id]))
        for topic_id in sorted(assigned)
    ]
