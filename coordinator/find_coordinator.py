"""FindCoordinator: which broker coordinates this group, or this transactional id?

In the embedded daemon that is always this one, loading or not: Kafka too answers from what it knows
of partition leaders, not from what the coordinator has loaded. For transactions there is none
before their topic is created, which the first request begins.
Kafka's counterpart: `KafkaApis.handleFindCoordinatorRequest`.
"""

from collections.abc import Callable
from typing import Final

from protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.names import CoordinatorType, ErrorCode
from protocol.primitives import echoed

MANY_KEYS_SINCE: Final = 4

Endpoint = tuple[int, str, int]
"""Node id, host, port."""

FindTransactions = Callable[[], ErrorCode]
"""NONE if there is a coordinator of transactions, else COORDINATOR_NOT_AVAILABLE."""

NOT_AVAILABLE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE

_OLD_MESSAGES: Final = {
    ErrorCode.NONE: "NONE",  # Kafka's word for no error
    NOT_AVAILABLE: "The coordinator is not available.",
}
"""Later versions have no text for these."""

NO_NODE: Final[Endpoint] = (-1, "", -1)


def find_coordinator(
    request: FindCoordinatorRequest,
    api_version: int,
    endpoint: Endpoint,
    find_transactions: FindTransactions | None,
) -> FindCoordinatorResponse:
    error_code, message = _refusal(request.key_type, find_transactions)
    node_id, host, port = endpoint if error_code is ErrorCode.NONE else NO_NODE
    if api_version < MANY_KEYS_SINCE:
        return FindCoordinatorResponse(
            error_code=error_code,
            error_message=message or _OLD_MESSAGES[error_code],
            node_id=node_id,
            host=host,
            port=port,
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(echoed(key), node_id, host, port, error_code, message)
            for key in request.coordinator_keys
        ]
    )


def _refusal(key_type: int, find_transactions: FindTransactions | None) -> tuple[ErrorCode, str]:
    if key_type == CoordinatorType.GROUP:
        return ErrorCode.NONE, ""
    if key_type == CoordinatorType.TRANSACTION:
        return NOT_AVAILABLE if find_transactions is None else find_transactions(), ""
    if key_type == CoordinatorType.SHARE:
        return ErrorCode.INVALID_REQUEST, "Share groups are not coordinated here."
    return ErrorCode.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}"
