"""FindCoordinator: which broker coordinates this group, or this transactional id?

In the embedded daemon that is always this one, loading or not: Kafka too answers from what it knows
of partition leaders, not from what the coordinator has loaded. For transactions there is none
before their topic is created, which the first request begins that is allowed to ask.
Kafka's counterpart: `KafkaApis.handleFindCoordinatorRequest`.
"""

from collections.abc import Callable
from typing import Final

from protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.names import CoordinatorType, ErrorCode, GroupId, TransactionalId
from protocol.primitives import echoed
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken

MANY_KEYS_SINCE: Final = 4

Endpoint = tuple[int, str, int]
"""Node id, host, port."""

FindTransactions = Callable[[], ErrorCode]
"""NONE if there is a coordinator of transactions, else COORDINATOR_NOT_AVAILABLE."""

NOT_AVAILABLE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE

_OLD_MESSAGES: Final = {
    ErrorCode.NONE: "NONE",  # Kafka's word for no error
    NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Later versions have no text for these."""

NO_NODE: Final[Endpoint] = (-1, "", -1)


def find_coordinator(
    request: FindCoordinatorRequest,
    token: ReplyToken,
    endpoint: Endpoint,
    find_transactions: FindTransactions | None,
    authorizer: Authorizer,
) -> FindCoordinatorResponse:
    key_type = request.key_type
    is_batched = token.api_version >= MANY_KEYS_SINCE
    keys = request.coordinator_keys if is_batched else [request.key]
    forbidden = {
        key: error_code
        for key in dict.fromkeys(keys if authorizer.is_enabled else ())
        if (error_code := _authorization(key_type, key, token, authorizer)) is not ErrorCode.NONE
    }
    found = ErrorCode.NONE, ""
    if any(key not in forbidden for key in keys):
        found = _refusal(key_type, find_transactions)
    coordinators = []
    for key in keys:
        error_code, message = (forbidden[key], "") if key in forbidden else found
        node_id, host, port = endpoint if error_code is ErrorCode.NONE else NO_NODE
        coordinators.append(Coordinator(echoed(key), node_id, host, port, error_code, message))
    if is_batched:
        return FindCoordinatorResponse(coordinators=coordinators)
    (only,) = coordinators
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or _OLD_MESSAGES[only.error_code],
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _authorization(key_type: int, key: str, token: ReplyToken, authorizer: Authorizer) -> ErrorCode:
    if key_type == CoordinatorType.GROUP:
        is_allowed = authorizer.may_describe_group(token, GroupId(key))
        return ErrorCode.NONE if is_allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == CoordinatorType.TRANSACTION:
        is_allowed = authorizer.may_describe_transactional_id(token, TransactionalId(key))
        return ErrorCode.NONE if is_allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _refusal(key_type: int, find_transactions: FindTransactions | None) -> tuple[ErrorCode, str]:
    if key_type == CoordinatorType.GROUP:
        return ErrorCode.NONE, ""
    if key_type == CoordinatorType.TRANSACTION:
        return NOT_AVAILABLE if find_transactions is None else find_transactions(), ""
    if key_type == CoordinatorType.SHARE:
        return ErrorCode.INVALID_REQUEST, "Share groups are not coordinated here."
    return ErrorCode.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}"
