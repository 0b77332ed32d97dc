"""CreatePartitions (api key 37): let these topics have more partitions.

Version notes: v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED may be answered.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import BOOL, ERROR_CODE, INT32, STRING, Message, Struct, array, nullable


class CreatePartitionsAssignment(Struct):
    broker_ids: Annotated[Sequence[int], array(INT32)] = ()


class CreatePartitionsTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    count: Annotated[int, INT32] = 0
    assignments: Annotated[
        Sequence[CreatePartitionsAssignment] | None, nullable(array(CreatePartitionsAssignment))
    ] = ()


class CreatePartitionsRequest(Message):
    API_KEY: ClassVar = ApiKey.CREATE_PARTITIONS
    VERSIONS: ClassVar = range(4)
    FLEXIBLE_SINCE: ClassVar = 2

    topics: Annotated[Sequence[CreatePartitionsTopic], array(CreatePartitionsTopic)] = ()
    timeout_ms: Annotated[int, INT32] = 0
    validate_only: Annotated[bool, BOOL] = False


class CreatePartitionsTopicResult(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = None


class CreatePartitionsResponse(Message):
    API_KEY: ClassVar = ApiKey.CREATE_PARTITIONS
    VERSIONS: ClassVar = range(4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    results: Annotated[
        Sequence[CreatePartitionsTopicResult], array(CreatePartitionsTopicResult)
    ] = ()
