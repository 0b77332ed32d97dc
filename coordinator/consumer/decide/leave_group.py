"""Leave consumer group: a member goes for good (epoch -1), or a static one for a while (epoch -2).

Kafka's counterpart: `GroupMetadataManager.consumerGroupLeave`.
"""

from msgspec.structs import replace

from coordinator.consumer import events
from coordinator.consumer.commands import ConsumerHeartbeat
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.find_member import find_leaving
from coordinator.consumer.decide.refusal import Refusal, refused_outcome
from coordinator.consumer.decide.remove_members import remove_members
from coordinator.consumer.events import ConsumerRemovalCause
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import NOTHING_OWNED, CurrentAssignment
from coordinator.consumer.records import turn_records
from coordinator.outcome import Outcome, Reply
from protocol.messages.consumer_group_heartbeat import (
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from seams.now import Now


def decide_leave_consumer_group(
    group: ConsumerGroupView, command: ConsumerHeartbeat, now: Now, context: ConsumerContext
) -> Outcome:
    request = command.request
    member = find_leaving(group, request, now)
    if isinstance(member, Refusal):
        return refused_outcome(command.token, member)
    happened: list[events.ConsumerEvent]
    if leaves_for_a_while(request):
        happened = [_left_for_a_while(group, member, now)]
    else:
        happened = remove_members(group, (member,), ConsumerRemovalCause.LEFT, now, context)
    return Outcome(replies=(left_answer(command),), events=happened, records=turn_records(happened))


def leaves_for_a_while(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Only a static member does; a dynamic one that says so leaves for good."""
    return request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH


def left_answer(command: ConsumerHeartbeat) -> Reply:
    request = command.request
    answer = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return Reply(command.token, answer)


def _left_for_a_while(
    group: ConsumerGroupView, member: ConsumerMemberView, now: Now
) -> events.CurrentAssignmentUpdated:
    """It keeps what is assigned to it, until its session ends; its instance id is free."""
    current = replace(
        member.current,
        member_epoch=LEAVE_STATIC_EPOCH,
        assigned={t: dict.fromkeys(owned, 0) for t, owned in member.current.assigned.items()},
        pending_revocation=NOTHING_OWNED,
    )
    assert isinstance(current, CurrentAssignment)
    return events.CurrentAssignmentUpdated(
        group.group_id,
        now.wall_ms,
        now.mono_ms,
        member.member_id,
        current,
        instance_id=member.metadata.instance_id,
    )
