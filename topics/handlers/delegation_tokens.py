"""Delegation tokens: not served. A client that is not authenticated may not even ask for any.

Kafka's counterpart: the delegation token requests of `KafkaApis`, of a broker without
`delegation.token.secret.key`. Kafka differs: it goes by the listener, not by the principal.
"""

from typing import Final

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.messages.describe_delegation_token import DescribeDelegationTokenResponse
from protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from protocol.names import ErrorCode
from seams.authorizer import Authorizer
from seams.principal import ANONYMOUS, USER_TYPE, Principal
from seams.reply_token import ReplyToken

FIRST_VERSION_WITH_REQUESTER: Final = 3
_NO_TIME: Final = -1


def answer_create_delegation_token(
    request: CreateDelegationTokenRequest, token: ReplyToken, authorizer: Authorizer
) -> CreateDelegationTokenResponse:
    owner = requester = token.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    names_requester = token.api_version >= FIRST_VERSION_WITH_REQUESTER
    return CreateDelegationTokenResponse(
        error_code=_creation_error(request, owner, token, authorizer),
        principal_type=owner.principal_type,
        principal_name=owner.name,
        token_requester_principal_type=requester.principal_type if names_requester else "",
        token_requester_principal_name=requester.name if names_requester else "",
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )


def _creation_error(
    request: CreateDelegationTokenRequest,
    owner: Principal,
    token: ReplyToken,
    authorizer: Authorizer,
) -> ErrorCode:
    if token.principal == ANONYMOUS:
        return _refused(token)
    if owner != token.principal and not authorizer.allows(
        token, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return _refused(token)


def answer_renew_delegation_token(token: ReplyToken) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=_refused(token), expiry_timestamp_ms=_NO_TIME)


def answer_expire_delegation_token(token: ReplyToken) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=_refused(token), expiry_timestamp_ms=_NO_TIME)


def answer_describe_delegation_token(token: ReplyToken) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=_refused(token))


def _refused(token: ReplyToken) -> ErrorCode:
    if token.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
