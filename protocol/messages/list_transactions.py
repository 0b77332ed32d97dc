"""ListTransactions (api key 66): which transactional ids does the coordinator know?

Version notes: v1 duration_filter (KIP-994); v2 transactional_id_pattern (KIP-1152).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId
from protocol.schema import ERROR_CODE, INT32, INT64, STRING, Message, Struct, array, since


class ListTransactionsRequest(Message):
    API_KEY: ClassVar = ApiKey.LIST_TRANSACTIONS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    state_filters: Annotated[Sequence[str], array(STRING)] = ()
    producer_id_filters: Annotated[Sequence[ProducerId], array(INT64)] = ()
    duration_filter: Annotated[int, since(INT64, 1)] = -1
    transactional_id_pattern: Annotated[str | None, since(STRING, 2, nullable=True)] = None


class ListedTransaction(Struct):
    transactional_id: Annotated[str, STRING] = ""
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    transaction_state: Annotated[str, STRING] = ""


class ListTransactionsResponse(Message):
    API_KEY: ClassVar = ApiKey.LIST_TRANSACTIONS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    unknown_state_filters: Annotated[Sequence[str], array(STRING)] = ()
    transaction_states: Annotated[Sequence[ListedTransaction], array(ListedTransaction)] = ()
