"""Refusals: an error code in the response format of each API.

`refuse` answers a request that the group was never asked about: the partition is loading, not ours,
or cannot be written to. `refused` turns an answer that was ready into a refusal, when the log that
it waited for failed. Kafka's counterpart: `getErrorResponse` of each request class.
"""

from collections.abc import Sequence
from typing import Final

from coordinator.classic.decide.describe_group import refuse_describe_group
from coordinator.classic.decide.join_answers import join_refusal
from coordinator.consumer.decide.describe_group import refuse_describe_consumer_group
from coordinator.consumer.decide.refusal import refuse_heartbeat
from coordinator.offsets.offset_commit import refuse_offset_commit, unreadable_commits
from coordinator.offsets.offset_delete import refuse_offset_delete
from coordinator.offsets.offset_fetch import refuse_offset_fetch
from coordinator.offsets.txn_offset_commit import (
    refused_txn_commits,
    txn_offset_commit_of,
    txn_offset_commit_refusal,
)
from protocol.messages import Response
from protocol.messages.consumer_group_describe import DescribedConsumerGroup
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.delete_groups import DeletableGroupResult
from protocol.messages.describe_groups import DescribedGroup
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.list_groups import ListGroupsResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from protocol.names import UNKNOWN_MEMBER_ID, ErrorCode, GroupId, MemberId
from protocol.primitives import echoed
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView

GroupRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetDeleteRequest
    | TxnOffsetCommitRequest
    | ConsumerGroupHeartbeatRequest
)
"""Requests about one group."""


_CREATING: Final = frozenset({JoinGroupRequest, OffsetCommitRequest, TxnOffsetCommitRequest})


def may_create_group(request: GroupRequest) -> bool:
    """Whether it creates the group that it names if there is none."""
    if type(request) is ConsumerGroupHeartbeatRequest:  # isinstance asks each class's metaclass
        return request.member_epoch == JOIN_EPOCH
    return type(request) in _CREATING


def refuse(
    request: GroupRequest,
    token: ReplyToken,
    topics: TopicsView,
    error_code: ErrorCode,
    authorizer: Authorizer,
    member_id: MemberId = UNKNOWN_MEMBER_ID,
) -> Response:
    """What of a commit the client may not do is still named as such."""
    api_version = token.api_version
    match request:
        case HeartbeatRequest():
            if error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # As in Kafka: the group loads, and its member need not care.
                return HeartbeatResponse()
            return HeartbeatResponse(error_code=error_code)
        case JoinGroupRequest():
            return join_refusal(error_code, member_id, api_version)
        case SyncGroupRequest():
            return SyncGroupResponse(error_code=error_code)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=error_code)
        case OffsetCommitRequest():
            unreadable = unreadable_commits(request, token, topics, authorizer)
            return refuse_offset_commit(request, api_version, topics, error_code, unreadable)
        case OffsetDeleteRequest():
            return refuse_offset_delete(error_code)
        case TxnOffsetCommitRequest():
            names = (topic.name for topic in request.topics)
            unreadable = authorizer.unreadable_topics(token, names)
            commit = txn_offset_commit_of(request, topics, unreadable)
            return txn_offset_commit_refusal(commit, api_version, error_code)
        case ConsumerGroupHeartbeatRequest():
            return refuse_heartbeat(error_code)


def refused(response: Response, error_code: ErrorCode, api_version: int) -> Response:
    """What is sent in the place of an answer that must not go out any more."""
    match response:
        case JoinGroupResponse():
            return join_refusal(error_code, UNKNOWN_MEMBER_ID, api_version)
        case SyncGroupResponse():
            return SyncGroupResponse(error_code=error_code)
        case HeartbeatResponse():
            return HeartbeatResponse(error_code=error_code)
        case LeaveGroupResponse():
            return LeaveGroupResponse(error_code=error_code)
        case OffsetDeleteResponse():
            return refuse_offset_delete(error_code)
        case ConsumerGroupHeartbeatResponse():
            return refuse_heartbeat(error_code)
        case ListGroupsResponse():
            return ListGroupsResponse(error_code=error_code)
        case OffsetCommitResponse():
            return OffsetCommitResponse(topics=_refused_commits(response.topics, error_code))
        case TxnOffsetCommitResponse():
            return TxnOffsetCommitResponse(topics=refused_txn_commits(response.topics, error_code))
        case _:
            raise AssertionError(f"{type(response).__name__} does not wait for a log")


def _refused_commits(
    topics: Sequence[OffsetCommitResponseTopic], error_code: ErrorCode
) -> list[OffsetCommitResponseTopic]:
    """Partitions that were refused already keep their reason."""
    return [
        OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [
                OffsetCommitResponsePartition(
                    partition.partition_index,
                    error_code if partition.error_code is ErrorCode.NONE else partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def describe_refusals(group_ids: Sequence[GroupId], error_code: ErrorCode) -> list[DescribedGroup]:
    return [refuse_describe_group(group_id, error_code) for group_id in group_ids]


def describe_consumer_refusals(
    group_ids: Sequence[GroupId], error_code: ErrorCode
) -> list[DescribedConsumerGroup]:
    return [refuse_describe_consumer_group(group_id, error_code) for group_id in group_ids]


def delete_refusals(
    group_ids: Sequence[GroupId], error_code: ErrorCode
) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(echoed(group_id), error_code) for group_id in group_ids]


def fetch_refusals(
    place: int, wanted: OffsetFetchRequestGroup, api_version: int, error_code: ErrorCode
) -> list[tuple[int, OffsetFetchResponseGroup]]:
    return [(place, refuse_offset_fetch(wanted, api_version, error_code))]
