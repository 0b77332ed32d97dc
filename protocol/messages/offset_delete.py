"""OffsetDelete (api key 47): forget what a group committed for these partitions (KIP-496).

There is only v0, never flexible. The answer opens with the error; the throttle time comes second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, GroupId, TopicName
from protocol.schema import ERROR_CODE, INT32, NEVER, STRING, array


@dataclass(slots=True)
class OffsetDeleteRequestPartition:
    partition_index: Annotated[int, INT32] = 0


@dataclass(slots=True)
class OffsetDeleteRequestTopic:
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[OffsetDeleteRequestPartition], array(OffsetDeleteRequestPartition)
    ] = ()


@dataclass(slots=True)
class OffsetDeleteRequest:
    API_KEY: ClassVar = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: Annotated[GroupId, STRING] = GroupId("")
    topics: Annotated[Sequence[OffsetDeleteRequestTopic], array(OffsetDeleteRequestTopic)] = ()


@dataclass(slots=True)
class OffsetDeleteResponsePartition:
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


@dataclass(slots=True)
class OffsetDeleteResponseTopic:
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[OffsetDeleteResponsePartition], array(OffsetDeleteResponsePartition)
    ] = ()


@dataclass(slots=True)
class OffsetDeleteResponse:
    API_KEY: ClassVar = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[Sequence[OffsetDeleteResponseTopic], array(OffsetDeleteResponseTopic)] = ()
