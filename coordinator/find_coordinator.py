"""FindCoordinator: which broker coordinates this group?

In the embedded daemon that is always this one, loading or not: Kafka too answers from what it knows
of partition leaders, not from what the coordinator has loaded. Only groups are coordinated here.
Kafka's counterpart: `KafkaApis.handleFindCoordinatorRequest`.
"""

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

NO_NODE: Final[Endpoint] = (-1, "", -1)


def find_coordinator(
    request: FindCoordinatorRequest, api_version: int, endpoint: Endpoint
) -> FindCoordinatorResponse:
    error_code, message = _refusal(request.key_type)
    node_id, host, port = endpoint if error_code is ErrorCode.NONE else NO_NODE
    if api_version < MANY_KEYS_SINCE:
        return FindCoordinatorResponse(
            error_code=error_code,
            error_message=message or "NONE",  # Kafka's word for no error
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


def _refusal(key_type: int) -> tuple[ErrorCode, str]:
    """Kafka differs: transactions are a part of it, so it never has to say that they are not."""
    if key_type == CoordinatorType.GROUP:
        return ErrorCode.NONE, ""
    if key_type == CoordinatorType.TRANSACTION:
        return ErrorCode.INVALID_REQUEST, "Transactions are not coordinated here."
    if key_type == CoordinatorType.SHARE:
        return ErrorCode.INVALID_REQUEST, "Share groups are not coordinated here."
    return ErrorCode.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}"
