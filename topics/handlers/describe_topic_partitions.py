"""DescribeTopicPartitions: the partitions of topics, one page per request.

Topics are in the order of their names. A page has a limited number of partitions; its cursor names
the topic and the partition that the next page begins with.
Kafka's counterpart: `DescribeTopicPartitionsRequestHandler`, `KRaftMetadataCache`.
"""

from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.names import ErrorCode, TopicName
from seams.topic_names import is_internal, name_fault
from topics.authorized_operations import TOPIC_OPERATIONS
from topics.partition import NO_LEADER
from topics.registry import Topic, TopicRegistry


def answer_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest,
    registry: TopicRegistry,
    node_id: int,
    limit: int,
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    first = TopicName("") if cursor is None else cursor.topic_name
    named = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (named and first not in named)):
        return _refused(request)
    room = max(min(limit, request.response_partition_limit), 1)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in sorted(named or registry.names()):
        if name < first:
            continue
        if room == 0:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, 0))
        topic = registry.by_name(name)
        if topic is None:
            topics.append(_unknown(name))
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        page = _described(topic, node_id, start, start + room)
        topics.append(page)
        if start + room < len(topic.partitions):
            next_cursor = Cursor(name, start + room)
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
        room -= len(page.partitions)
    return DescribeTopicPartitionsResponse(topics=topics)


def _described(
    topic: Topic, node_id: int, start: int, stop: int
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
        TOPIC_OPERATIONS,
    )


def _unknown(name: TopicName) -> DescribeTopicPartitionsResponseTopic:
    error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name_fault(name) is not None:
        error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code,
        name,
        is_internal=is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name)
            for topic in request.topics
        ]
    )
