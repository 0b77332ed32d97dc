"""DescribeTransactions (api key 65): the state and the partitions of transactions."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId, TopicName
from protocol.schema import ERROR_CODE, INT16, INT32, INT64, STRING, Message, Struct, array


class DescribeTransactionsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    transactional_ids: Annotated[Sequence[str], array(STRING)] = ()


class TransactionTopic(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class DescribedTransaction(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    transactional_id: Annotated[str, STRING] = ""
    transaction_state: Annotated[str, STRING] = ""
    transaction_timeout_ms: Annotated[int, INT32] = 0
    transaction_start_time_ms: Annotated[int, INT64] = 0
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT16] = 0
    topics: Annotated[Sequence[TransactionTopic], array(TransactionTopic)] = ()


class DescribeTransactionsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    transaction_states: Annotated[Sequence[DescribedTransaction], array(DescribedTransaction)] = ()
