"""Heartbeat at a consumer group: may a member of the classic protocol go on, or must it join again?

Kafka's counterpart: `GroupMetadataManager.classicGroupHeartbeatToConsumerGroup`.
"""

from coordinator.classic.commands import Beat
from coordinator.classic.decide.heartbeat import HEARTBEAT_ANSWERS
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.migration.classic_members import (
    find_classic_member,
    has_to_rejoin,
    instance_fenced,
    rejoin_requested,
    session_extended,
)
from coordinator.outcome import Outcome, Reply
from protocol.names import ErrorCode
from seams.now import Now


def decide_heartbeat_of_classic_member(
    group: ConsumerGroupView, command: Beat, now: Now, context: ConsumerContext
) -> Outcome:
    request = command.request
    member_id, instance_id = request.member_id, request.group_instance_id
    found = find_classic_member(group, member_id, instance_id, request.generation_id)
    if found is ErrorCode.FENCED_INSTANCE_ID:
        happened = instance_fenced(group, member_id, instance_id, request.generation_id, now)
        return Outcome(
            replies=(Reply(command.token, HEARTBEAT_ANSWERS[found]),), events=(happened,)
        )
    if isinstance(found, ErrorCode):
        return Outcome(replies=(Reply(command.token, HEARTBEAT_ANSWERS[found]),))
    extended = session_extended(group, found, now)
    if not has_to_rejoin(group, found, now, context):
        answer = Reply(command.token, HEARTBEAT_ANSWERS[ErrorCode.NONE])
        return Outcome(replies=(answer,), events=(extended,))
    answer = Reply(command.token, HEARTBEAT_ANSWERS[ErrorCode.REBALANCE_IN_PROGRESS])
    return Outcome(replies=(answer,), events=(extended, *rejoin_requested(group, found, now)))
