"""Metadata quorum: the voters of Kafka's metadata log, for DescribeQuorum and changes of voters.

This node is the only voter. Kafka differs: it has a metadata log, and a listener for controllers;
here the offsets are 0 and the voter has no endpoints. A change of voters is refused, as by a Kafka
with `controller.quorum.voters` (kraft.version 0).
Kafka's counterpart: `KafkaRaftClient.handleDescribeQuorumRequest`.
"""

from typing import Final

from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.describe_quorum import (
    DescribedQuorumPartition,
    DescribedQuorumTopic,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumNode,
    QuorumReplica,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.names import ZERO_TOPIC_ID, DirectoryId, ErrorCode, TopicName
from seams.now import Now
from topics.api_error import NO_SUCH_TOPIC, ApiError
from topics.cluster import ClusterView

METADATA_TOPIC: Final = TopicName("__cluster_metadata")
METADATA_PARTITION: Final = 0
FIRST_VERSION_WITH_NODES: Final = 2
METADATA_EPOCH: Final = 1
CONTROLLER_LISTENER: Final = "CONTROLLER"


def answer_describe_quorum(
    request: DescribeQuorumRequest, version: int, node_id: int, now: Now
) -> DescribeQuorumResponse:
    """Kafka answers for the one partition of the metadata log, if nothing else is asked for."""
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if asked != [(METADATA_TOPIC, METADATA_PARTITION)] or len(request.topics) > 1:
        return _unknown(request)
    voter = QuorumReplica(
        node_id,
        log_end_offset=0,
        last_fetch_timestamp=now.wall_ms,
        last_caught_up_timestamp=now.wall_ms,
    )
    partition = DescribedQuorumPartition(
        METADATA_PARTITION,
        leader_id=node_id,
        leader_epoch=METADATA_EPOCH,
        current_voters=(voter,),
    )
    return DescribeQuorumResponse(
        topics=(DescribedQuorumTopic(METADATA_TOPIC, (partition,)),),
        nodes=(QuorumNode(node_id),) if version >= FIRST_VERSION_WITH_NODES else (),
    )


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            DescribedQuorumTopic(
                topic.topic_name,
                [
                    DescribedQuorumPartition(
                        partition.partition_index, NO_SUCH_TOPIC.error_code, NO_SUCH_TOPIC.message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def answer_add_raft_voter(
    request: AddRaftVoterRequest, cluster: ClusterView
) -> AddRaftVoterResponse:
    error = _voter_error(
        "Add", request.cluster_id, request.voter_id, request.voter_directory_id, cluster
    )
    if error is None and CONTROLLER_LISTENER not in (each.name for each in request.listeners):
        error = ApiError(
            ErrorCode.INVALID_REQUEST,
            "Add voter request didn't include the endpoint for the default listener "
            f"{CONTROLLER_LISTENER}",
        )
    error = error or _static_voters("adding")
    return AddRaftVoterResponse(error_code=error.error_code, error_message=error.message)


def answer_remove_raft_voter(
    request: RemoveRaftVoterRequest, cluster: ClusterView
) -> RemoveRaftVoterResponse:
    error = _voter_error(
        "Remove", request.cluster_id, request.voter_id, request.voter_directory_id, cluster
    ) or _static_voters("removing")
    return RemoveRaftVoterResponse(error_code=error.error_code, error_message=error.message)


def _voter_error(
    what: str,
    cluster_id: str | None,
    voter_id: int,
    directory_id: DirectoryId,
    cluster: ClusterView,
) -> ApiError | None:
    if cluster_id is not None and cluster_id != cluster.cluster_id:
        return ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{cluster.cluster_id}"',
        )
    if voter_id < 0 or directory_id == ZERO_TOPIC_ID:
        return ApiError(
            ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter"
        )
    return None


def _static_voters(what: str) -> ApiError:
    return ApiError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"Cluster doesn't support {what} voter because the kraft.version feature is 0",
    )
