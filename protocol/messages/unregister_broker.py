"""UnregisterBroker (api key 64): forget a broker that is gone for good."""

from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, INT32, STRING, Message, nullable


class UnregisterBrokerRequest(Message):
    API_KEY: ClassVar = ApiKey.UNREGISTER_BROKER
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: Annotated[int, INT32] = 0


class UnregisterBrokerResponse(Message):
    API_KEY: ClassVar = ApiKey.UNREGISTER_BROKER
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
