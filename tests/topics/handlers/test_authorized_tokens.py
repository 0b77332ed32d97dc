"""Authorized tokens: the requests for delegation tokens, by who asks."""

import pytest

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages import Request
from protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.names import ErrorCode
from seams.principal import ANONYMOUS, Principal
from seams.reply_token import ReplyToken
from tests.topics.plane import Plane
from tests.topics.rights import Right, Rights

ALICE = Principal("User", "alice")
FOR_BOB = CreateDelegationTokenRequest("User", "bob")
FOR_BOB_RIGHT = Right(AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")


def ask(plane: Plane, request: Request, principal: Principal, version: int) -> object:
    token = ReplyToken(version, "a-client", "/127.0.0.1", principal)
    plane.data.handlers[request.API_KEY](request, token, plane.now)
    return plane.answers[token]


def created(
    plane: Plane, request: CreateDelegationTokenRequest, principal: Principal, version: int = 3
) -> CreateDelegationTokenResponse:
    answer = ask(plane, request, principal, version)
    assert isinstance(answer, CreateDelegationTokenResponse)
    return answer


def test_a_client_that_is_not_authenticated_may_not_ask(plane: Plane) -> None:
    answer = created(plane, CreateDelegationTokenRequest(), ANONYMOUS)

    assert answer.error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("version", [1, 3])
def test_a_token_of_ones_own_needs_no_right_but_tokens_are_off(version: int) -> None:
    answer = created(Plane(authorizer=Rights()), CreateDelegationTokenRequest(), ALICE, version)

    assert answer.error_code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    assert answer.token_requester_principal_name == ("alice" if version == 3 else "")


def test_a_token_for_another_user_needs_a_right_on_that_user() -> None:
    rights = Rights()
    plane = Plane(authorizer=rights)

    refused = created(plane, FOR_BOB, ALICE)
    rights.granted = {FOR_BOB_RIGHT}
    allowed = created(plane, FOR_BOB, ALICE)

    assert refused.error_code is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")
    assert rights.logged == [FOR_BOB_RIGHT]
    assert allowed.error_code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_only_users_renew_tokens(plane: Plane) -> None:
    request = CreateDelegationTokenRequest(renewers=(CreatableRenewers("Group", "g"),))

    assert created(plane, request, ALICE).error_code is ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize(
    "request_",
    [
        RenewDelegationTokenRequest(),
        ExpireDelegationTokenRequest(),
        DescribeDelegationTokenRequest(None),
    ],
)
def test_the_other_requests_are_off_for_users_and_refused_to_others(
    plane: Plane, request_: Request
) -> None:
    version = request_.VERSIONS[-1]
    codes = [
        ask(plane, request_, principal, version).error_code for principal in (ANONYMOUS, ALICE)
    ]  # type: ignore[attr-defined]

    assert codes == [
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    ]
