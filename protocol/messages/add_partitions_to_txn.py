"""AddPartitionsToTxn (api key 24): partitions join the open transaction of a producer.

Version notes: v3 flexible; v4 requests of brokers, with many transactions, and only to verify where
`verify_only` is set; v5 TRANSACTION_ABORTABLE (KIP-890). Clients use v3 and below.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId, TopicName
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    since,
    until,
)


class AddPartitionsToTxnTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: Annotated[str, STRING] = ""
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT16] = 0
    verify_only: Annotated[bool, BOOL] = False
    topics: Annotated[Sequence[AddPartitionsToTxnTopic], array(AddPartitionsToTxnTopic)] = ()


class AddPartitionsToTxnRequest(Message):
    API_KEY: ClassVar = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    transactions: Annotated[
        Sequence[AddPartitionsToTxnTransaction], since(array(AddPartitionsToTxnTransaction), 4)
    ] = ()
    v3_and_below_transactional_id: Annotated[str, until(STRING, 3)] = ""
    v3_and_below_producer_id: Annotated[ProducerId, until(INT64, 3)] = ProducerId(0)
    v3_and_below_producer_epoch: Annotated[int, until(INT16, 3)] = 0
    v3_and_below_topics: Annotated[
        Sequence[AddPartitionsToTxnTopic], until(array(AddPartitionsToTxnTopic), 3)
    ] = ()


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Annotated[int, INT32] = 0
    partition_error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class AddPartitionsToTxnTopicResult(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    results_by_partition: Annotated[
        Sequence[AddPartitionsToTxnPartitionResult], array(AddPartitionsToTxnPartitionResult)
    ] = ()


class AddPartitionsToTxnResult(Struct):
    transactional_id: Annotated[str, STRING] = ""
    topic_results: Annotated[
        Sequence[AddPartitionsToTxnTopicResult], array(AddPartitionsToTxnTopicResult)
    ] = ()


class AddPartitionsToTxnResponse(Message):
    API_KEY: ClassVar = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 4, ignorable=True)] = ErrorCode.NONE
    results_by_transaction: Annotated[
        Sequence[AddPartitionsToTxnResult], since(array(AddPartitionsToTxnResult), 4)
    ] = ()
    results_by_topic_v3_and_below: Annotated[
        Sequence[AddPartitionsToTxnTopicResult], until(array(AddPartitionsToTxnTopicResult), 3)
    ] = ()
