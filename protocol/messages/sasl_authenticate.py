"""SaslAuthenticate (api key 36): one step of a SASL exchange.

Version notes: v1 session lifetime; v2 flexible.
"""

from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import BYTES, ERROR_CODE, INT64, STRING, Message, nullable, since


class SaslAuthenticateRequest(Message):
    API_KEY: ClassVar = ApiKey.SASL_AUTHENTICATE
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    auth_bytes: Annotated[bytes, BYTES] = b""


class SaslAuthenticateResponse(Message):
    API_KEY: ClassVar = ApiKey.SASL_AUTHENTICATE
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    auth_bytes: Annotated[bytes, BYTES] = b""
    session_lifetime_ms: Annotated[int, since(INT64, 1, ignorable=True)] = 0
