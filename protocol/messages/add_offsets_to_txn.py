"""AddOffsetsToTxn (api key 25): the offsets of a group join the open transaction of a producer.

Version notes: v2 PRODUCER_FENCED may be answered; v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890).
"""

from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, GroupId, ProducerId
from protocol.schema import ERROR_CODE, INT16, INT32, INT64, STRING, Message


class AddOffsetsToTxnRequest(Message):
    API_KEY: ClassVar = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 3

    transactional_id: Annotated[str, STRING] = ""
    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    producer_epoch: Annotated[int, INT16] = 0
    group_id: Annotated[GroupId, STRING] = GroupId("")


class AddOffsetsToTxnResponse(Message):
    API_KEY: ClassVar = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
