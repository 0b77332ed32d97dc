"""DescribeTopicPartitions: the partitions of topics, one page per request.

Topics are in the order of their names. A page has a limited number of partitions; its cursor names
the topic and the partition that the next page begins with.
Kafka's counterpart: `DescribeTopicPartitionsRequestHandler`, `KRaftMetadataCache`.
"""

from functools import partial

from protocol.acl_codes import AclOperation
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.names import ErrorCode, TopicName
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from seams.topic_names import is_internal, name_fault
from topics.authorized_operations import topic_operations
from topics.partition import NO_LEADER
from topics.registry import TopicRegistry
from topics.topic import Topic
from topics.topic_rights import forbidden_topics


def answer_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest,
    token: ReplyToken,
    registry: TopicRegistry,
    authorizer: Authorizer,
    node_id: int,
    limit: int,
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    first = TopicName("") if cursor is None else cursor.topic_name
    named = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (named and first not in named)):
        return _refused(request)
    room = max(min(limit, request.response_partition_limit), 1)
    names = sorted(name for name in named or registry.names() if name >= first)
    forbidden = forbidden_topics(
        authorizer, token, AclOperation.DESCRIBE, names, logs_refusals=bool(named)
    )
    # Of all topics, those that are forbidden are left out.
    refused = [_forbidden(name) for name in names if name in forbidden and name in named]
    operations = partial(topic_operations, authorizer, token)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
    for name in names:
        if name in forbidden:
            continue
        if room == 0:
            next_cursor = Cursor(name, 0)
            break
        topic = registry.by_name(name)
        if topic is None:
            topics.append(_unknown(name, operations(name)))
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        page = _described(topic, node_id, start, start + room, operations(name))
        topics.append(page)
        if start + room < len(topic.partitions):
            next_cursor = Cursor(name, start + room)
            break
        room -= len(page.partitions)
    return DescribeTopicPartitionsResponse(topics=topics + refused, next_cursor=next_cursor)


def _described(
    topic: Topic, node_id: int, start: int, stop: int, operations: int
) -> DescribeTopicPartitionsResponseTopic:
    node = (node_id,)
    return DescribeTopicPartitionsResponseTopic(
        ErrorCode.NONE,
        topic.name,
        topic.topic_id,
        topic.is_internal,
        [
            DescribeTopicPartitionsResponsePartition(
                ErrorCode.LEADER_NOT_AVAILABLE, index, NO_LEADER, -1, node, (), (), (), node
            )
            if partition.offline
            else DescribeTopicPartitionsResponsePartition(
                ErrorCode.NONE, index, node_id, partition.leader_epoch, node, node, (), ()
            )
            for index, partition in enumerate(topic.partitions[start:stop], start)
        ],
        operations,
    )


def _forbidden(name: TopicName) -> DescribeTopicPartitionsResponseTopic:
    """Whether it exists is not disclosed."""
    return DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)


def _unknown(name: TopicName, operations: int) -> DescribeTopicPartitionsResponseTopic:
    error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name_fault(name) is not None:
        error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code,
        name,
        is_internal=is_internal(name),
        topic_authorized_operations=operations,
    )


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name)
            for topic in request.topics
        ]
    )
