"""Fetch (api key 1): a consumer asks for record batches from an offset, and may wait for them.

Version notes: v5 log_start_offset; v7 fetch sessions (KIP-227); v9 current_leader_epoch; v10 zstd;
v11 rack_id and preferred_read_replica (KIP-392); v12 flexible, diverging epochs in tags; v13 topics
by id (KIP-516); v15 replica_id moves into the tagged replica_state (KIP-903); v16 node_endpoints
(KIP-951); v17 the directory id of a replica (KIP-853); v18 high_watermark of a replica (KIP-1166).

`records` are bytes to this package: whole record batches exactly as the log holds them.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import (
    ZERO_TOPIC_ID,
    ApiKey,
    DirectoryId,
    ErrorCode,
    ProducerId,
    TopicId,
    TopicName,
)
from protocol.schema import (
    ERROR_CODE,
    INT8,
    INT32,
    INT32_MAX,
    INT64,
    INT64_MAX,
    RECORDS,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
    tagged,
    until,
)


class ReplicaState(Struct):
    replica_id: Annotated[int, INT32] = -1
    replica_epoch: Annotated[int, INT64] = -1


class FetchPartition(Struct):
    partition: Annotated[int, INT32] = 0
    current_leader_epoch: Annotated[int, since(INT32, 9, ignorable=True)] = -1
    fetch_offset: Annotated[int, INT64] = 0
    last_fetched_epoch: Annotated[int, since(INT32, 12)] = -1
    log_start_offset: Annotated[int, since(INT64, 5, ignorable=True)] = -1
    partition_max_bytes: Annotated[int, INT32] = 0
    replica_directory_id: Annotated[DirectoryId, tagged(UUID, 0, since=17, ignorable=True)] = (
        ZERO_TOPIC_ID
    )
    high_watermark: Annotated[int, tagged(INT64, 1, since=18, ignorable=True)] = INT64_MAX


class FetchTopic(Struct):
    topic: Annotated[TopicName, until(STRING, 12, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 13, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[FetchPartition], array(FetchPartition)] = ()


class ForgottenTopic(Struct):
    topic: Annotated[TopicName, until(STRING, 12, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 13, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class FetchRequest(Message):
    API_KEY: ClassVar = ApiKey.FETCH
    VERSIONS: ClassVar = range(4, 19)
    FLEXIBLE_SINCE: ClassVar = 12

    cluster_id: Annotated[
        str | None, tagged(STRING, 0, since=12, nullable=True, ignorable=True)
    ] = None
    replica_id: Annotated[int, until(INT32, 14)] = -1
    replica_state: Annotated[ReplicaState | None, tagged(ReplicaState, 1, since=15)] = None
    max_wait_ms: Annotated[int, INT32] = 0
    min_bytes: Annotated[int, INT32] = 0
    max_bytes: Annotated[int, INT32] = INT32_MAX
    isolation_level: Annotated[int, INT8] = 0
    session_id: Annotated[int, since(INT32, 7, ignorable=True)] = 0
    session_epoch: Annotated[int, since(INT32, 7, ignorable=True)] = -1
    topics: Annotated[Sequence[FetchTopic], array(FetchTopic)] = ()
    forgotten_topics_data: Annotated[Sequence[ForgottenTopic], since(array(ForgottenTopic), 7)] = ()
    rack_id: Annotated[str, since(STRING, 11, ignorable=True)] = ""


class EpochEndOffset(Struct):
    epoch: Annotated[int, INT32] = -1
    end_offset: Annotated[int, INT64] = -1


class LeaderIdAndEpoch(Struct):
    leader_id: Annotated[int, INT32] = -1
    leader_epoch: Annotated[int, INT32] = -1


class SnapshotId(Struct):
    end_offset: Annotated[int, INT64] = -1
    epoch: Annotated[int, INT32] = -1


class AbortedTransaction(Struct):
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    first_offset: Annotated[int, INT64] = 0


class PartitionData(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    high_watermark: Annotated[int, INT64] = 0
    last_stable_offset: Annotated[int, INT64] = -1
    log_start_offset: Annotated[int, since(INT64, 5, ignorable=True)] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, tagged(EpochEndOffset, 0, since=12)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(LeaderIdAndEpoch, 1, since=12)] = None
    snapshot_id: Annotated[SnapshotId | None, tagged(SnapshotId, 2, since=12)] = None
    aborted_transactions: Annotated[
        Sequence[AbortedTransaction] | None, nullable(array(AbortedTransaction))
    ] = ()
    preferred_read_replica: Annotated[int, since(INT32, 11)] = -1
    records: Annotated[bytes | None, nullable(RECORDS)] = None


class FetchableTopicResponse(Struct):
    topic: Annotated[TopicName, until(STRING, 12, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 13, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[PartitionData], array(PartitionData)] = ()


class NodeEndpoint(Struct):
    node_id: Annotated[int, INT32] = 0
    host: Annotated[str, STRING] = ""
    port: Annotated[int, INT32] = 0
    rack: Annotated[str | None, nullable(STRING)] = None


class FetchResponse(Message):
    API_KEY: ClassVar = ApiKey.FETCH
    VERSIONS: ClassVar = range(4, 19)
    FLEXIBLE_SINCE: ClassVar = 12

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 7, ignorable=True)] = ErrorCode.NONE
    session_id: Annotated[int, since(INT32, 7)] = 0
    responses: Annotated[Sequence[FetchableTopicResponse], array(FetchableTopicResponse)] = ()
    node_endpoints: Annotated[Sequence[NodeEndpoint], tagged(array(NodeEndpoint), 0, since=16)] = ()
