"""Partition reassignments: moves partitions to other brokers; this node is the only one.

AlterPartitionReassignments accepts the replicas that a partition has, ListPartitionReassignments
lists none. Kafka's counterpart: `ReplicationControlManager.alterPartitionReassignments`.
"""

from typing import Final

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from protocol.names import ErrorCode, TopicName
from topics.api_error import ApiError
from topics.placement import assignment_fault
from topics.registry import TopicRegistry

_ASSIGNED: Final = ApiError(ErrorCode.NONE)
_NONE_TO_CANCEL: Final = ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)


def answer_alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, registry: TopicRegistry, node_id: int
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",  # as Kafka has it
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [_result(topic.name, asked, registry, node_id) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def answer_list_partition_reassignments() -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)


def _result(
    name: TopicName, asked: ReassignablePartition, registry: TopicRegistry, node_id: int
) -> ReassignablePartitionResponse:
    error = _assign(name, asked, registry, node_id)
    return ReassignablePartitionResponse(asked.partition_index, error.error_code, error.message)


def _assign(
    name: TopicName, asked: ReassignablePartition, registry: TopicRegistry, node_id: int
) -> ApiError:
    unknown, index = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked.partition_index
    if registry.by_name(name) is None:
        return ApiError(unknown, f"Unable to find a topic named {name}.")
    if registry.partition(name, index) is None:
        return ApiError(unknown, f"Unable to find partition {name}:{index}.")
    if asked.replicas is None:
        return _NONE_TO_CANCEL
    return assignment_fault(asked.replicas, node_id) or _ASSIGNED
