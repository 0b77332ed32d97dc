"""DescribeProducers (api key 61): which producers have written to these partitions?"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId, TopicName
from protocol.schema import (
    ERROR_CODE,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    nullable,
)


class DescribeProducersTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partition_indexes: Annotated[Sequence[int], array(INT32)] = ()


class DescribeProducersRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: Annotated[Sequence[DescribeProducersTopic], array(DescribeProducersTopic)] = ()


class DescribedProducer(Struct):
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT32] = 0
    last_sequence: Annotated[int, INT32] = -1
    last_timestamp: Annotated[int, INT64] = -1
    coordinator_epoch: Annotated[int, INT32] = 0
    current_txn_start_offset: Annotated[int, INT64] = -1


class DescribedProducersPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = None
    active_producers: Annotated[Sequence[DescribedProducer], array(DescribedProducer)] = ()


class DescribedProducersTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[DescribedProducersPartition], array(DescribedProducersPartition)
    ] = ()


class DescribeProducersResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[Sequence[DescribedProducersTopic], array(DescribedProducersTopic)] = ()
