"""DescribeDelegationToken (api key 41): which delegation tokens do these owners have?

Version notes: v2 flexible; v3 the requester of the token.
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
    nullable,
    since,
)


class DescribeDelegationTokenOwner(Struct):
    principal_type: Annotated[str, STRING] = ""
    principal_name: Annotated[str, STRING] = ""


class DescribeDelegationTokenRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_DELEGATION_TOKEN
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    owners: Annotated[
        Sequence[DescribeDelegationTokenOwner] | None, nullable(array(DescribeDelegationTokenOwner))
    ] = ()


class DescribedDelegationTokenRenewer(Struct):
    principal_type: Annotated[str, STRING] = ""
    principal_name: Annotated[str, STRING] = ""


class DescribedDelegationToken(Struct):
    principal_type: Annotated[str, STRING] = ""
    principal_name: Annotated[str, STRING] = ""
    token_requester_principal_type: Annotated[str, since(STRING, 3)] = ""
    token_requester_principal_name: Annotated[str, since(STRING, 3)] = ""
    issue_timestamp: Annotated[int, INT64] = 0
    expiry_timestamp: Annotated[int, INT64] = 0
    max_timestamp: Annotated[int, INT64] = 0
    token_id: Annotated[str, STRING] = ""
    hmac: Annotated[bytes, BYTES] = b""
    renewers: Annotated[
        Sequence[DescribedDelegationTokenRenewer], array(DescribedDelegationTokenRenewer)
    ] = ()


class DescribeDelegationTokenResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_DELEGATION_TOKEN
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    tokens: Annotated[Sequence[DescribedDelegationToken], array(DescribedDelegationToken)] = ()
    throttle_time_ms: Annotated[int, INT32] = 0
