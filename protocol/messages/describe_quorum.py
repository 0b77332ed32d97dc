"""DescribeQuorum (api key 55): the voters and observers of the metadata log.

Version notes: v1 fetch times of replicas (KIP-836); v2 directory ids and the endpoints of voters
(KIP-853).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ZERO_TOPIC_ID, ApiKey, DirectoryId, ErrorCode, TopicName
from protocol.schema import (
    ERROR_CODE,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Message,
    Struct,
    array,
    since,
)


class QuorumPartition(Struct):
    partition_index: Annotated[int, INT32] = 0


class QuorumTopic(Struct):
    topic_name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[QuorumPartition], array(QuorumPartition)] = ()


class DescribeQuorumRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_QUORUM
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: Annotated[Sequence[QuorumTopic], array(QuorumTopic)] = ()


class QuorumReplica(Struct):
    replica_id: Annotated[int, INT32] = 0
    replica_directory_id: Annotated[DirectoryId, since(UUID, 2)] = ZERO_TOPIC_ID
    log_end_offset: Annotated[int, INT64] = 0
    last_fetch_timestamp: Annotated[int, since(INT64, 1, ignorable=True)] = -1
    last_caught_up_timestamp: Annotated[int, since(INT64, 1, ignorable=True)] = -1


class DescribedQuorumPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, since(STRING, 2, nullable=True, ignorable=True)] = ""
    leader_id: Annotated[int, INT32] = 0
    leader_epoch: Annotated[int, INT32] = 0
    high_watermark: Annotated[int, INT64] = 0
    current_voters: Annotated[Sequence[QuorumReplica], array(QuorumReplica)] = ()
    observers: Annotated[Sequence[QuorumReplica], array(QuorumReplica)] = ()


class DescribedQuorumTopic(Struct):
    topic_name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[DescribedQuorumPartition], array(DescribedQuorumPartition)] = ()


class QuorumListener(Struct):
    name: Annotated[str, STRING] = ""
    host: Annotated[str, STRING] = ""
    port: Annotated[int, UINT16] = 0


class QuorumNode(Struct):
    node_id: Annotated[int, INT32] = 0
    listeners: Annotated[Sequence[QuorumListener], array(QuorumListener)] = ()


class DescribeQuorumResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_QUORUM
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, since(STRING, 2, nullable=True, ignorable=True)] = ""
    topics: Annotated[Sequence[DescribedQuorumTopic], array(DescribedQuorumTopic)] = ()
    nodes: Annotated[Sequence[QuorumNode], since(array(QuorumNode), 2)] = ()
