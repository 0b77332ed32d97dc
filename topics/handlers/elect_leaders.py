"""ElectLeaders: elects leaders of partitions; this node leads all of them, unless its disk failed.

Kafka's counterpart: `ReplicationControlManager.electLeaders`.
"""

from enum import IntEnum
from typing import Final

from protocol.messages.elect_leaders import (
    ElectedPartition,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from protocol.names import ErrorCode, TopicName
from topics.api_error import ApiError
from topics.partition import Partition
from topics.registry import TopicRegistry


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


_NOT_NEEDED: Final = ApiError(
    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)
_NO_PREFERRED_LEADER: Final = ApiError(
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
)
_NO_ELIGIBLE_LEADER: Final = ApiError(
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    "Eligible topic partition leaders are not available.",
)


def answer_elect_leaders(
    request: ElectLeadersRequest, registry: TopicRegistry
) -> ElectLeadersResponse:
    """Null asks for all partitions: those that need no election are not in the answer."""
    election = request.election_type
    if election not in set(ElectionType):
        return _unknown_type(request)
    if request.topic_partitions is None:
        return ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(name, _needed(name, election, registry))
                for name in registry.names()
            ]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                asked.topic,
                [
                    _elected(index, _elect(asked.topic, index, election, registry))
                    for index in asked.partitions
                ],
            )
            for asked in request.topic_partitions
        ]
    )


def _unknown_type(request: ElectLeadersRequest) -> ElectLeadersResponse:
    error = ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    return ElectLeadersResponse(
        error_code=error.error_code,
        replica_election_results=[
            ReplicaElectionResult(t.topic, [_elected(index, error) for index in t.partitions])
            for t in request.topic_partitions or ()
        ],
    )


def _needed(name: TopicName, election: int, registry: TopicRegistry) -> list[ElectedPartition]:
    topic = registry.by_name(name)
    partitions = () if topic is None else topic.partitions
    return [
        _elected(partition.topic_partition.partition, _outcome(partition, election))
        for partition in partitions
        if partition.offline
    ]


def _elect(name: TopicName, index: int, election: int, registry: TopicRegistry) -> ApiError:
    if registry.by_name(name) is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = registry.partition(name, index)
    if partition is None:
        return ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
        )
    return _outcome(partition, election)


def _outcome(partition: Partition, election: int) -> ApiError:
    if not partition.offline:
        return _NOT_NEEDED
    return _NO_PREFERRED_LEADER if election == ElectionType.PREFERRED else _NO_ELIGIBLE_LEADER


def _elected(index: int, error: ApiError) -> ElectedPartition:
    return ElectedPartition(index, error.error_code, error.message)
