"""Produce (api key 0): a producer hands over record batches; were they taken, and at which offset?

Version notes: v3 is the oldest that carries record batch v2, the only format we store; v5
log_start_offset in the answer; v7 zstd allowed; v8 record_errors and error_message; v9 flexible;
v10 leader hints in tags (KIP-951); v12 a produce may open a transaction (KIP-890); v13 topics by
id.

With acks=0 no response is sent at all. Advertised from v0 although v0-v2 are refused: old
librdkafka would otherwise switch itself off (see `api_versions.py`).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ZERO_TOPIC_ID, ApiKey, ErrorCode, TopicId, TopicName
from protocol.schema import (
    ERROR_CODE,
    INT16,
    INT32,
    INT64,
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


class PartitionProduceData(Struct):
    index: Annotated[int, INT32] = 0
    records: Annotated[bytes | None, nullable(RECORDS)] = None


class TopicProduceData(Struct):
    name: Annotated[TopicName, until(STRING, 12, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 13, ignorable=True)] = ZERO_TOPIC_ID
    partition_data: Annotated[Sequence[PartitionProduceData], array(PartitionProduceData)] = ()


class ProduceRequest(Message):
    API_KEY: ClassVar = ApiKey.PRODUCE
    VERSIONS: ClassVar = range(3, 14)
    FLEXIBLE_SINCE: ClassVar = 9

    transactional_id: Annotated[str | None, nullable(STRING)] = None
    acks: Annotated[int, INT16] = 0
    timeout_ms: Annotated[int, INT32] = 0
    topic_data: Annotated[Sequence[TopicProduceData], array(TopicProduceData)] = ()


class BatchIndexAndErrorMessage(Struct):
    batch_index: Annotated[int, INT32] = 0
    batch_index_error_message: Annotated[str | None, nullable(STRING)] = None


class LeaderIdAndEpoch(Struct):
    leader_id: Annotated[int, INT32] = -1
    leader_epoch: Annotated[int, INT32] = -1


class PartitionProduceResponse(Struct):
    index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    base_offset: Annotated[int, INT64] = 0
    log_append_time_ms: Annotated[int, INT64] = -1
    log_start_offset: Annotated[int, since(INT64, 5, ignorable=True)] = -1
    record_errors: Annotated[
        Sequence[BatchIndexAndErrorMessage],
        since(array(BatchIndexAndErrorMessage), 8, ignorable=True),
    ] = ()
    error_message: Annotated[str | None, since(STRING, 8, nullable=True, ignorable=True)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(LeaderIdAndEpoch, 0, since=10)] = None


class TopicProduceResponse(Struct):
    name: Annotated[TopicName, until(STRING, 12, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 13, ignorable=True)] = ZERO_TOPIC_ID
    partition_responses: Annotated[
        Sequence[PartitionProduceResponse], array(PartitionProduceResponse)
    ] = ()


class NodeEndpoint(Struct):
    node_id: Annotated[int, INT32] = 0
    host: Annotated[str, STRING] = ""
    port: Annotated[int, INT32] = 0
    rack: Annotated[str | None, nullable(STRING)] = None


class ProduceResponse(Message):
    API_KEY: ClassVar = ApiKey.PRODUCE
    VERSIONS: ClassVar = range(3, 14)
    FLEXIBLE_SINCE: ClassVar = 9

    responses: Annotated[Sequence[TopicProduceResponse], array(TopicProduceResponse)] = ()
    throttle_time_ms: Annotated[int, INT32] = 0
    node_endpoints: Annotated[Sequence[NodeEndpoint], tagged(array(NodeEndpoint), 0, since=10)] = ()
