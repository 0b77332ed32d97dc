"""ExpireDelegationToken (api key 40): change when a delegation token expires.

Version notes: v2 flexible.
"""

from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import BYTES, ERROR_CODE, INT32, INT64, Message


class ExpireDelegationTokenRequest(Message):
    API_KEY: ClassVar = ApiKey.EXPIRE_DELEGATION_TOKEN
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    hmac: Annotated[bytes, BYTES] = b""
    expiry_time_period_ms: Annotated[int, INT64] = 0


class ExpireDelegationTokenResponse(Message):
    API_KEY: ClassVar = ApiKey.EXPIRE_DELEGATION_TOKEN
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    expiry_timestamp_ms: Annotated[int, INT64] = 0
    throttle_time_ms: Annotated[int, INT32] = 0
