"""TxnOffsetCommit (api key 28): commit offsets of a group as a part of a transaction.

Version notes: v2 leader epochs; v3 flexible, and the group member; v4 TRANSACTION_ABORTABLE; v5 the
group's offsets need no AddOffsetsToTxn (KIP-890).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    ProducerId,
    TopicName,
)
from protocol.schema import (
    ERROR_CODE,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    since,
)


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    committed_offset: Annotated[int, INT64] = 0
    committed_leader_epoch: Annotated[int, since(INT32, 2, ignorable=True)] = -1
    committed_metadata: Annotated[str | None, nullable(STRING)] = ""


class TxnOffsetCommitRequestTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[TxnOffsetCommitRequestPartition], array(TxnOffsetCommitRequestPartition)
    ] = ()


class TxnOffsetCommitRequest(Message):
    API_KEY: ClassVar = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    transactional_id: Annotated[str, STRING] = ""
    group_id: Annotated[GroupId, STRING] = GroupId("")
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT16] = 0
    generation_id: Annotated[GenerationId, since(INT32, 3)] = NO_GENERATION
    member_id: Annotated[MemberId, since(STRING, 3)] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, since(STRING, 3, nullable=True)] = None
    topics: Annotated[
        Sequence[TxnOffsetCommitRequestTopic], array(TxnOffsetCommitRequestTopic)
    ] = ()


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class TxnOffsetCommitResponseTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[TxnOffsetCommitResponsePartition], array(TxnOffsetCommitResponsePartition)
    ] = ()


class TxnOffsetCommitResponse(Message):
    API_KEY: ClassVar = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[
        Sequence[TxnOffsetCommitResponseTopic], array(TxnOffsetCommitResponseTopic)
    ] = ()
