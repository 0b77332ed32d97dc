"""DeleteRecords (api key 21): remove the records of partitions below an offset.

Version notes: v2 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import ERROR_CODE, INT32, INT64, STRING, Message, Struct, array


class DeleteRecordsPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    offset: Annotated[int, INT64] = 0


class DeleteRecordsTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[DeleteRecordsPartition], array(DeleteRecordsPartition)] = ()


class DeleteRecordsRequest(Message):
    API_KEY: ClassVar = ApiKey.DELETE_RECORDS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    topics: Annotated[Sequence[DeleteRecordsTopic], array(DeleteRecordsTopic)] = ()
    timeout_ms: Annotated[int, INT32] = 0


class DeleteRecordsPartitionResult(Struct):
    partition_index: Annotated[int, INT32] = 0
    low_watermark: Annotated[int, INT64] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class DeleteRecordsTopicResult(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[DeleteRecordsPartitionResult], array(DeleteRecordsPartitionResult)
    ] = ()


class DeleteRecordsResponse(Message):
    API_KEY: ClassVar = ApiKey.DELETE_RECORDS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[Sequence[DeleteRecordsTopicResult], array(DeleteRecordsTopicResult)] = ()
