"""Replica placement: whether replicas can be placed as requested. One node holds one replica.

The checks and error messages of manual assignments and replication factors, for CreateTopics and
CreatePartitions. Kafka's counterpart: `StripedReplicaPlacer`,
`ReplicationControlManager.validateManualPartitionAssignment`.
"""

from collections.abc import Sequence

from protocol.names import ErrorCode
from topics.api_error import ApiError


def factor_fault(replication_factor: int) -> ApiError | None:
    """The error if there are not as many brokers; -1 is the default, one."""
    if replication_factor in (-1, 1):
        return None
    return ApiError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): The target replication "
        f"factor of {replication_factor} cannot be reached because only 1 broker(s) are "
        "registered or some brokers have all their log directories cordoned.",
    )


def assignment_fault(broker_ids: Sequence[int], node_id: int) -> ApiError | None:
    """The error if a partition cannot be assigned to these brokers."""
    if not broker_ids:
        return _fault("includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(broker_ids):
        if broker_id != node_id:
            return _fault(f"includes broker {broker_id}, but no such broker is registered.")
        if broker_id == previous:
            return _fault(f"includes the broker {broker_id} more than once.")
        previous = broker_id
    return None


def _fault(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {text}")
