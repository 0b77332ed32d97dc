"""Consumer group heartbeat: one turn from what a member says to what it is to own.

Route: dispatch -> GroupCoordinator -> Shard.turn -> decide_heartbeat -> Outcome -> evolve. The
steps, each with a value as its result: find the member, update it, bump the group epoch, compute
the target assignment, reconcile the member, answer. All records of a turn are one batch, in Kafka's
order. Kafka's counterpart: `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from collections.abc import Sequence

from coordinator.consumer import events
from coordinator.consumer.commands import ConsumerHeartbeat, ResolveRegularExpressions
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.advance import advance
from coordinator.consumer.decide.find_member import FoundMember, find_member
from coordinator.consumer.decide.leave_group import decide_leave_consumer_group
from coordinator.consumer.decide.refusal import Refusal, refused_outcome
from coordinator.consumer.decide.update_member import updated_metadata
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import (
    NO_REBALANCE_TIMEOUT,
    CurrentAssignment,
    OwnedPartitions,
)
from coordinator.consumer.records import by_topic_id, turn_records
from coordinator.outcome import Outcome, Reply
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)
from protocol.names import ErrorCode
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
    metadata = updated_metadata(found.metadata, request, token)
    advanced = advance(group, found, metadata, request.topic_partitions, now, context)
    if isinstance(advanced, Refusal):
        return refused_outcome(token, advanced)
    happened = advanced.happened
    deadline_ms = now.mono_ms + context.configs.session_timeout_ms(group.group_id)
    happened.append(events.ConsumerSessionExtended(group.group_id, found.member_id, deadline_ms))
    then: tuple[ResolveRegularExpressions, ...] = ()
    if advanced.is_resolution_due:
        happened.append(events.RegularExpressionsRequested(group.group_id, now.mono_ms))
        then = (ResolveRegularExpressions(group.group_id, token),)
    return Outcome(
        replies=(_answer(command, found, advanced.current, context),),
        events=happened,
        records=turn_records(happened),
        then=then,
        job=advanced.job,
    )


def _full(
    group: ConsumerGroupView, request: ConsumerGroupHeartbeatRequest, context: ConsumerContext
) -> Refusal | None:
    size_max = context.settings.group_consumer_max_size
    if len(group.members) < size_max or request.member_id in group.members:
        return None
    text = f"The consumer group has reached its maximum capacity of {size_max} members."
    return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, text)


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
        HeartbeatTopicPartitions(topic_id, sorted(epochs))
        for topic_id, epochs in by_topic_id(assigned)
    ]
