"""SaslHandshake (api key 17): a client names the SASL mechanism that it wants to use.

Version notes: v1 says that the exchange goes on in SaslAuthenticate requests.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, NEVER, STRING, Message, array


class SaslHandshakeRequest(Message):
    API_KEY: ClassVar = ApiKey.SASL_HANDSHAKE
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = NEVER

    mechanism: Annotated[str, STRING] = ""


class SaslHandshakeResponse(Message):
    API_KEY: ClassVar = ApiKey.SASL_HANDSHAKE
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = NEVER

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    mechanisms: Annotated[Sequence[str], array(STRING)] = ()
