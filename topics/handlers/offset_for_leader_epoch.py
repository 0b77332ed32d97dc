"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a consumer detects truncation.

Answered in the reader thread, because the end of an earlier epoch is read from the log.
Kafka's counterpart: `ReplicaManager.lastOffsetForLeaderEpoch`.
"""

from collections.abc import Set as AbstractSet

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from protocol.names import ErrorCode, TopicName
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.reply_token import ReplyToken
from storage.api import Corrupt
from topics.leader_epochs import end_of_epoch, epoch_error
from topics.registry import TopicRegistry
from topics.topic_rights import NONE_FORBIDDEN, forbidden_topics


def forbidden_epochs(
    request: OffsetForLeaderEpochRequest, token: ReplyToken, authorizer: Authorizer
) -> frozenset[TopicName]:
    """Brokers, and consumers that may describe a topic, are answered."""
    if not authorizer.is_enabled or authorizer.allows(
        token, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=False
    ):
        return NONE_FORBIDDEN
    names = [topic.topic for topic in request.topics]
    return forbidden_topics(authorizer, token, AclOperation.DESCRIBE, names)


def answer_offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest,
    registry: TopicRegistry,
    forbidden: AbstractSet[TopicName],
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [
                    EpochEndOffset(ErrorCode.TOPIC_AUTHORIZATION_FAILED, requested.partition)
                    if topic.topic in forbidden
                    else _answer(topic.topic, requested, registry)
                    for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(
    name: TopicName, requested: OffsetForLeaderPartition, registry: TopicRegistry
) -> EpochEndOffset:
    partition = registry.partition(name, requested.partition)
    if partition is None:
        return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, requested.partition)
    log = partition.usable_log()
    if isinstance(log, ErrorCode):
        return EpochEndOffset(log, requested.partition)
    error_code = epoch_error(log, requested.current_leader_epoch)
    if error_code is not None:
        return EpochEndOffset(error_code, requested.partition)
    try:
        epoch, end_offset = end_of_epoch(log, requested.leader_epoch)
    except (Corrupt, OSError, IndexError):
        return EpochEndOffset(partition.read_error(), requested.partition)
    return EpochEndOffset(ErrorCode.NONE, requested.partition, epoch, end_offset)
