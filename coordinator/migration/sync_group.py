"""SyncGroup at a consumer group: what a member of the classic protocol owns by now.

There is no leader: the assignment is the coordinator's, in the member's own version of
ConsumerProtocol. Kafka's counterpart: `GroupMetadataManager.classicGroupSyncToConsumerGroup`.
"""

from coordinator.classic.commands import Sync
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.events import ClassicMemberSynced, ConsumerEvent
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberState
from coordinator.migration.classic_members import (
    find_classic_member,
    instance_fenced,
    rejoin_requested,
    session_extended,
)
from coordinator.migration.embedded_protocol import assignment_bytes
from coordinator.outcome import Outcome, Reply
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.names import ErrorCode
from seams.now import Now
from seams.reply_token import ReplyToken


def decide_sync_of_classic_member(
    group: ConsumerGroupView, command: Sync, now: Now, context: ConsumerContext
) -> Outcome:
    request, token = command.request, command.token
    member_id, instance_id = request.member_id, request.group_instance_id
    found = find_classic_member(group, member_id, instance_id, request.generation_id)
    if found is ErrorCode.FENCED_INSTANCE_ID:
        fenced = instance_fenced(group, member_id, instance_id, request.generation_id, now)
        return _refused(token, found, fenced)
    if isinstance(found, ErrorCode):
        return _refused(token, found)
    if _contradicts(request, found):
        return _refused(token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if _is_behind(group, found):
        requested = rejoin_requested(group, found, now)
        return _refused(token, ErrorCode.REBALANCE_IN_PROGRESS, *requested)
    happened: list[ConsumerEvent] = [session_extended(group, found, now)]
    if found.sync_deadline_ms is not None:
        happened.append(ClassicMemberSynced(group.group_id, member_id))
    return Outcome(replies=(_answer(request, found, token, context),), events=happened)


def _contradicts(request: SyncGroupRequest, member: ConsumerMemberView) -> bool:
    """The protocol is the one that the answer to its JoinGroup named."""
    if request.protocol_type not in (None, PROTOCOL_TYPE):
        return True
    assert member.metadata.classic is not None
    return request.protocol_name not in (None, member.metadata.classic.protocols[0][0])


def _is_behind(group: ConsumerGroupView, member: ConsumerMemberView) -> bool:
    """Whether a newer target waits. One that gives partitions back has to do that first."""
    return (
        group.assignment_epoch > member.current.member_epoch
        and member.current.state is not ConsumerMemberState.UNREVOKED_PARTITIONS
    )


def _answer(
    request: SyncGroupRequest,
    member: ConsumerMemberView,
    token: ReplyToken,
    context: ConsumerContext,
) -> Reply:
    assert member.metadata.classic is not None
    metadata = member.metadata.classic.protocols[0][1]
    return Reply(
        token,
        SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(member.current.assigned, metadata, context.topics.view),
        ),
    )


def _refused(token: ReplyToken, error_code: ErrorCode, *happened: ConsumerEvent) -> Outcome:
    reply = Reply(token, SyncGroupResponse(error_code=error_code))
    return Outcome(replies=(reply,), events=happened)
