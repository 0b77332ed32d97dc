"""OffsetCommit (api key 8): a group's positions are to be kept; for each partition, were they?

Version notes: v2-v4 retention_time_ms; v3 throttle_time_ms; v6 committed_leader_epoch; v7
group_instance_id (KIP-345); v8 flexible; v9 errors of the consumer protocol (KIP-848); v10 topics
by id instead of by name. There is no top-level error: a group's error is copied onto every
partition.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ZERO_TOPIC_ID,
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicId,
    TopicName,
)
from protocol.schema import (
    ERROR_CODE,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
    until,
)


class OffsetCommitRequestPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    committed_offset: Annotated[int, INT64] = 0
    committed_leader_epoch: Annotated[int, since(INT32, 6, ignorable=True)] = -1
    committed_metadata: Annotated[str | None, nullable(STRING)] = ""


class OffsetCommitRequestTopic(Struct):
    name: Annotated[TopicName, until(STRING, 9, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[
        Sequence[OffsetCommitRequestPartition], array(OffsetCommitRequestPartition)
    ] = ()


class OffsetCommitRequest(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_COMMIT
    VERSIONS: ClassVar = range(2, 11)
    FLEXIBLE_SINCE: ClassVar = 8

    group_id: Annotated[GroupId, STRING] = GroupId("")
    generation_id_or_member_epoch: Annotated[GenerationId, INT32] = NO_GENERATION
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, since(STRING, 7, nullable=True)] = None
    retention_time_ms: Annotated[int, until(INT64, 4, ignorable=True)] = -1
    topics: Annotated[Sequence[OffsetCommitRequestTopic], array(OffsetCommitRequestTopic)] = ()


class OffsetCommitResponsePartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class OffsetCommitResponseTopic(Struct):
    name: Annotated[TopicName, until(STRING, 9, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[
        Sequence[OffsetCommitResponsePartition], array(OffsetCommitResponsePartition)
    ] = ()


class OffsetCommitResponse(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_COMMIT
    VERSIONS: ClassVar = range(2, 11)
    FLEXIBLE_SINCE: ClassVar = 8

    throttle_time_ms: Annotated[int, since(INT32, 3, ignorable=True)] = 0
    topics: Annotated[Sequence[OffsetCommitResponseTopic], array(OffsetCommitResponseTopic)] = ()
