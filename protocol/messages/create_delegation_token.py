"""CreateDelegationToken (api key 38): create a token with which a client may authenticate.

Version notes: v2 flexible; v3 the owner and the requester of the token.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BYTES,
    ERROR_CODE,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    since,
)


class CreatableRenewers(Struct):
    principal_type: Annotated[str, STRING] = ""
    principal_name: Annotated[str, STRING] = ""


class CreateDelegationTokenRequest(Message):
    API_KEY: ClassVar = ApiKey.CREATE_DELEGATION_TOKEN
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    owner_principal_type: Annotated[str | None, since(STRING, 3, nullable=True)] = ""
    owner_principal_name: Annotated[str | None, since(STRING, 3, nullable=True)] = ""
    renewers: Annotated[Sequence[CreatableRenewers], array(CreatableRenewers)] = ()
    max_lifetime_ms: Annotated[int, INT64] = 0


class CreateDelegationTokenResponse(Message):
    API_KEY: ClassVar = ApiKey.CREATE_DELEGATION_TOKEN
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    principal_type: Annotated[str, STRING] = ""
    principal_name: Annotated[str, STRING] = ""
    token_requester_principal_type: Annotated[str, since(STRING, 3)] = ""
    token_requester_principal_name: Annotated[str, since(STRING, 3)] = ""
    issue_timestamp_ms: Annotated[int, INT64] = 0
    expiry_timestamp_ms: Annotated[int, INT64] = 0
    max_timestamp_ms: Annotated[int, INT64] = 0
    token_id: Annotated[str, STRING] = ""
    hmac: Annotated[bytes, BYTES] = b""
    throttle_time_ms: Annotated[int, INT32] = 0
