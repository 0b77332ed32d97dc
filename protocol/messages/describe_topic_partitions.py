"""DescribeTopicPartitions (api key 75): the partitions of topics, page by page (KIP-966).

There is only v0. `response_partition_limit` bounds a page; `cursor` says where the next one begins.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
    ZERO_TOPIC_ID,
    ApiKey,
    ErrorCode,
    TopicId,
    TopicName,
)
from protocol.schema import BOOL, ERROR_CODE, INT32, STRING, UUID, Message, Struct, array, nullable


class TopicRequest(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")


class Cursor(Struct):
    topic_name: Annotated[TopicName, STRING] = TopicName("")
    partition_index: Annotated[int, INT32] = 0


class DescribeTopicPartitionsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: Annotated[Sequence[TopicRequest], array(TopicRequest)] = ()
    response_partition_limit: Annotated[int, INT32] = 2000
    cursor: Annotated[Cursor | None, nullable(Cursor)] = None


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    partition_index: Annotated[int, INT32] = 0
    leader_id: Annotated[int, INT32] = 0
    leader_epoch: Annotated[int, INT32] = -1
    replica_nodes: Annotated[Sequence[int], array(INT32)] = ()
    isr_nodes: Annotated[Sequence[int], array(INT32)] = ()
    eligible_leader_replicas: Annotated[Sequence[int] | None, nullable(array(INT32))] = None
    last_known_elr: Annotated[Sequence[int] | None, nullable(array(INT32))] = None
    offline_replicas: Annotated[Sequence[int], array(INT32)] = ()


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    name: Annotated[TopicName | None, nullable(STRING)] = TopicName("")
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    is_internal: Annotated[bool, BOOL] = False
    partitions: Annotated[
        Sequence[DescribeTopicPartitionsResponsePartition],
        array(DescribeTopicPartitionsResponsePartition),
    ] = ()
    topic_authorized_operations: Annotated[int, INT32] = OPERATIONS_NOT_REQUESTED


class DescribeTopicPartitionsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[
        Sequence[DescribeTopicPartitionsResponseTopic], array(DescribeTopicPartitionsResponseTopic)
    ] = ()
    next_cursor: Annotated[Cursor | None, nullable(Cursor)] = None
