"""OffsetForLeaderEpoch (api key 23): where did this leader epoch end? Shows a truncated log.

Version notes: v3 replica_id; v4 flexible. Mind the answer's order: the error comes first.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import ERROR_CODE, INT32, INT64, STRING, Message, Struct, array, since


class OffsetForLeaderPartition(Struct):
    partition: Annotated[int, INT32] = 0
    current_leader_epoch: Annotated[int, INT32] = -1
    leader_epoch: Annotated[int, INT32] = 0


class OffsetForLeaderTopic(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[OffsetForLeaderPartition], array(OffsetForLeaderPartition)] = ()


class OffsetForLeaderEpochRequest(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS: ClassVar = range(2, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    replica_id: Annotated[int, since(INT32, 3, ignorable=True)] = -2
    topics: Annotated[Sequence[OffsetForLeaderTopic], array(OffsetForLeaderTopic)] = ()


class EpochEndOffset(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    partition: Annotated[int, INT32] = 0
    leader_epoch: Annotated[int, INT32] = -1
    end_offset: Annotated[int, INT64] = -1


class OffsetForLeaderTopicResult(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[EpochEndOffset], array(EpochEndOffset)] = ()


class OffsetForLeaderEpochResponse(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS: ClassVar = range(2, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[Sequence[OffsetForLeaderTopicResult], array(OffsetForLeaderTopicResult)] = ()
