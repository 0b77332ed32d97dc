"""AlterPartitionReassignments (api key 45): assign partitions to other brokers, or cancel that.

Version notes: v1 allow_replication_factor_change (KIP-860).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    since,
)


class ReassignablePartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    replicas: Annotated[Sequence[int] | None, nullable(array(INT32))] = None


class ReassignableTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[ReassignablePartition], array(ReassignablePartition)] = ()


class AlterPartitionReassignmentsRequest(Message):
    API_KEY: ClassVar = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    timeout_ms: Annotated[int, INT32] = 60000
    allow_replication_factor_change: Annotated[bool, since(BOOL, 1)] = True
    topics: Annotated[Sequence[ReassignableTopic], array(ReassignableTopic)] = ()


class ReassignablePartitionResponse(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""


class ReassignableTopicResponse(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[ReassignablePartitionResponse], array(ReassignablePartitionResponse)
    ] = ()


class AlterPartitionReassignmentsResponse(Message):
    API_KEY: ClassVar = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    allow_replication_factor_change: Annotated[bool, since(BOOL, 1, ignorable=True)] = True
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    responses: Annotated[Sequence[ReassignableTopicResponse], array(ReassignableTopicResponse)] = ()
