"""Delegation tokens: a client that is not authenticated may not ask for any, and here none is.

Kafka's counterpart: the delegation token requests of `KafkaApis`, on a PLAINTEXT listener.
"""

from typing import Final

from protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.messages.describe_delegation_token import DescribeDelegationTokenResponse
from protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from protocol.names import ErrorCode

FIRST_VERSION_WITH_REQUESTER: Final = 3
_USER: Final = "User"
_ANONYMOUS: Final = "ANONYMOUS"
_NO_TIME: Final = -1
_REFUSED: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def answer_create_delegation_token(
    request: CreateDelegationTokenRequest, version: int
) -> CreateDelegationTokenResponse:
    has_owner = bool(request.owner_principal_name)
    names_requester = version >= FIRST_VERSION_WITH_REQUESTER
    return CreateDelegationTokenResponse(
        error_code=_REFUSED,
        principal_type=(request.owner_principal_type or "") if has_owner else _USER,
        principal_name=request.owner_principal_name or _ANONYMOUS,
        token_requester_principal_type=_USER if names_requester else "",
        token_requester_principal_name=_ANONYMOUS if names_requester else "",
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )


def answer_renew_delegation_token() -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=_REFUSED, expiry_timestamp_ms=_NO_TIME)


def answer_expire_delegation_token() -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=_REFUSED, expiry_timestamp_ms=_NO_TIME)


def answer_describe_delegation_token() -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=_REFUSED)
