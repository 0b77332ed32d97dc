"""WriteTxnMarkers (api key 27): write the markers that end transactions in their partitions.

Version notes: v1 flexible; v2 transaction_version (KIP-1228).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId, TopicName
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    since,
)


class WritableTxnMarkerTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partition_indexes: Annotated[Sequence[int], array(INT32)] = ()


class WritableTxnMarker(Struct):
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT16] = 0
    transaction_result: Annotated[bool, BOOL] = False
    topics: Annotated[Sequence[WritableTxnMarkerTopic], array(WritableTxnMarkerTopic)] = ()
    coordinator_epoch: Annotated[int, INT32] = 0
    transaction_version: Annotated[int, since(INT8, 2, ignorable=True)] = 0


class WriteTxnMarkersRequest(Message):
    API_KEY: ClassVar = ApiKey.WRITE_TXN_MARKERS
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 1

    markers: Annotated[Sequence[WritableTxnMarker], array(WritableTxnMarker)] = ()


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class WritableTxnMarkerTopicResult(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[WritableTxnMarkerPartitionResult], array(WritableTxnMarkerPartitionResult)
    ] = ()


class WritableTxnMarkerResult(Struct):
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    topics: Annotated[
        Sequence[WritableTxnMarkerTopicResult], array(WritableTxnMarkerTopicResult)
    ] = ()


class WriteTxnMarkersResponse(Message):
    API_KEY: ClassVar = ApiKey.WRITE_TXN_MARKERS
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 1

    markers: Annotated[Sequence[WritableTxnMarkerResult], array(WritableTxnMarkerResult)] = ()
