"""InitProducerId (api key 22): an idempotent or transactional producer asks for its id and epoch.

Version notes: v2 flexible; v3 the producer's present id and epoch, to go on from (KIP-360); v4
PRODUCER_FENCED may be answered; v5 TRANSACTION_ABORTABLE. Kafka's v6 (two-phase commit) is unstable
and not advertised, so it is not declared here.
"""

from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, ProducerId
from protocol.schema import ERROR_CODE, INT16, INT32, INT64, STRING, Message, nullable, since


class InitProducerIdRequest(Message):
    API_KEY: ClassVar = ApiKey.INIT_PRODUCER_ID
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 2

    transactional_id: Annotated[str | None, nullable(STRING)] = ""
    transaction_timeout_ms: Annotated[int, INT32] = 0
    producer_id: Annotated[ProducerId, since(INT64, 3)] = ProducerId(-1)
    producer_epoch: Annotated[int, since(INT16, 3)] = -1


class InitProducerIdResponse(Message):
    API_KEY: ClassVar = ApiKey.INIT_PRODUCER_ID
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    producer_id: Annotated[ProducerId, INT64] = ProducerId(-1)
    producer_epoch: Annotated[int, INT16] = 0
