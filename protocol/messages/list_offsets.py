"""ListOffsets (api key 2): which offset belongs to this timestamp, or to the log's start or end?

Version notes: v2 isolation_level; v4 leader epochs; v6 flexible; v7 timestamp -3, the record with
the largest timestamp; v8 and v9 timestamps -4 and -5, of tiered storage; v10 timeout_ms; v11
timestamp -6.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import ERROR_CODE, INT8, INT32, INT64, STRING, Message, Struct, array, since


class ListOffsetsPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    current_leader_epoch: Annotated[int, since(INT32, 4, ignorable=True)] = -1
    timestamp: Annotated[int, INT64] = 0


class ListOffsetsTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[ListOffsetsPartition], array(ListOffsetsPartition)] = ()


class ListOffsetsRequest(Message):
    API_KEY: ClassVar = ApiKey.LIST_OFFSETS
    VERSIONS: ClassVar = range(1, 12)
    FLEXIBLE_SINCE: ClassVar = 6

    replica_id: Annotated[int, INT32] = 0
    isolation_level: Annotated[int, since(INT8, 2)] = 0
    topics: Annotated[Sequence[ListOffsetsTopic], array(ListOffsetsTopic)] = ()
    timeout_ms: Annotated[int, since(INT32, 10, ignorable=True)] = 0


class ListOffsetsPartitionResponse(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    timestamp: Annotated[int, INT64] = -1
    offset: Annotated[int, INT64] = -1
    leader_epoch: Annotated[int, since(INT32, 4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[ListOffsetsPartitionResponse], array(ListOffsetsPartitionResponse)
    ] = ()


class ListOffsetsResponse(Message):
    API_KEY: ClassVar = ApiKey.LIST_OFFSETS
    VERSIONS: ClassVar = range(1, 12)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: Annotated[int, since(INT32, 2, ignorable=True)] = 0
    topics: Annotated[Sequence[ListOffsetsTopicResponse], array(ListOffsetsTopicResponse)] = ()
