"""UnregisterBroker: forgets a broker that is gone for good; the only one there is cannot be.

Kafka differs: it unregisters a broker that runs, whose partitions then have no leader.
Kafka's counterpart: `ClusterControlManager.unregisterBroker`.
"""

from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.names import ErrorCode


def answer_unregister_broker(
    request: UnregisterBrokerRequest, node_id: int
) -> UnregisterBrokerResponse:
    if request.broker_id != node_id:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker ID {request.broker_id} is not currently registered",
        )
    return UnregisterBrokerResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"Broker {node_id} is the only one of its cluster and is running",
    )
