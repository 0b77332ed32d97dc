"""OffsetDelete (api key 47): forget what a group committed for these partitions (KIP-496).

There is only v0, never flexible. The answer opens with the error; the throttle time comes second.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, GroupId, TopicName
from protocol.schema import ERROR_CODE, INT32, NEVER, STRING, Message, Struct, array


class OffsetDeleteRequestPartition(Struct):
    partition_index: Annotated[int, INT32] = 0


class OffsetDeleteRequestTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[OffsetDeleteRequestPartition], array(OffsetDeleteRequestPartition)
    ] = ()


class OffsetDeleteRequest(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: Annotated[GroupId, STRING] = GroupId("")
    topics: Annotated[Sequence[OffsetDeleteRequestTopic], array(OffsetDeleteRequestTopic)] = ()


class OffsetDeleteResponsePartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class OffsetDeleteResponseTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[OffsetDeleteResponsePartition], array(OffsetDeleteResponsePartition)
    ] = ()


class OffsetDeleteResponse(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[Sequence[OffsetDeleteResponseTopic], array(OffsetDeleteResponseTopic)] = ()
