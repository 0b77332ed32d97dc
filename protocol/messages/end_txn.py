"""EndTxn (api key 26): commit or abort the open transaction of a producer.

Version notes: v2 PRODUCER_FENCED may be answered; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 the
producer id and epoch of the next transaction (KIP-890).
"""

from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId
from protocol.schema import BOOL, ERROR_CODE, INT16, INT32, INT64, STRING, Message, since


class EndTxnRequest(Message):
    API_KEY: ClassVar = ApiKey.END_TXN
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    transactional_id: Annotated[str, STRING] = ""
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT16] = 0
    committed: Annotated[bool, BOOL] = False


class EndTxnResponse(Message):
    API_KEY: ClassVar = ApiKey.END_TXN
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    producer_id: Annotated[ProducerId, since(INT64, 5, ignorable=True)] = ProducerId(-1)
    producer_epoch: Annotated[int, since(INT16, 5, ignorable=True)] = -1
