"""Metadata (api key 3): which brokers are there, and who leads the partitions of these topics?

Version notes: v1 null topics mean all of them (in v0 an empty array did), rack, controller_id and
is_internal; v2 cluster_id; v3 throttle_time_ms; v4 allow_auto_topic_creation; v5 offline_replicas;
v7 leader_epoch; v8 authorized operations; v9 flexible; v10 topic ids; v11 drops the cluster's
authorized operations; v12 topics may be looked up by id, then name is null; v13 a top-level error.
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
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT32,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    between,
    nullable,
    since,
)


class MetadataRequestTopic(Struct):
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    name: Annotated[TopicName | None, nullable(STRING, since=10)] = TopicName("")


class MetadataRequest(Message):
    API_KEY: ClassVar = ApiKey.METADATA
    VERSIONS: ClassVar = range(14)
    FLEXIBLE_SINCE: ClassVar = 9

    topics: Annotated[
        Sequence[MetadataRequestTopic] | None, nullable(array(MetadataRequestTopic), since=1)
    ] = ()
    allow_auto_topic_creation: Annotated[bool, since(BOOL, 4)] = True
    include_cluster_authorized_operations: Annotated[bool, between(BOOL, 8, 10)] = False
    include_topic_authorized_operations: Annotated[bool, since(BOOL, 8)] = False


class MetadataResponseBroker(Struct):
    node_id: Annotated[int, INT32] = 0
    host: Annotated[str, STRING] = ""
    port: Annotated[int, INT32] = 0
    rack: Annotated[str | None, since(STRING, 1, nullable=True, ignorable=True)] = None


class MetadataResponsePartition(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    partition_index: Annotated[int, INT32] = 0
    leader_id: Annotated[int, INT32] = 0
    leader_epoch: Annotated[int, since(INT32, 7, ignorable=True)] = -1
    replica_nodes: Annotated[Sequence[int], array(INT32)] = ()
    isr_nodes: Annotated[Sequence[int], array(INT32)] = ()
    offline_replicas: Annotated[Sequence[int], since(array(INT32), 5, ignorable=True)] = ()


class MetadataResponseTopic(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    name: Annotated[TopicName | None, nullable(STRING, since=12)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    is_internal: Annotated[bool, since(BOOL, 1, ignorable=True)] = False
    partitions: Annotated[
        Sequence[MetadataResponsePartition], array(MetadataResponsePartition)
    ] = ()
    topic_authorized_operations: Annotated[int, since(INT32, 8)] = OPERATIONS_NOT_REQUESTED


class MetadataResponse(Message):
    API_KEY: ClassVar = ApiKey.METADATA
    VERSIONS: ClassVar = range(14)
    FLEXIBLE_SINCE: ClassVar = 9

    throttle_time_ms: Annotated[int, since(INT32, 3, ignorable=True)] = 0
    brokers: Annotated[Sequence[MetadataResponseBroker], array(MetadataResponseBroker)] = ()
    cluster_id: Annotated[str | None, since(STRING, 2, nullable=True, ignorable=True)] = None
    controller_id: Annotated[int, since(INT32, 1, ignorable=True)] = -1
    topics: Annotated[Sequence[MetadataResponseTopic], array(MetadataResponseTopic)] = ()
    cluster_authorized_operations: Annotated[int, between(INT32, 8, 10)] = OPERATIONS_NOT_REQUESTED
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 13, ignorable=True)] = ErrorCode.NONE
