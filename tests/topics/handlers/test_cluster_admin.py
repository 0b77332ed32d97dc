"""Cluster administration: what differs from Kafka, or depends on this node's disk.

What is the same is compared with a Kafka in tests/compare/scenarios/administration.py.
"""

from uuid import UUID

import pytest

from protocol.features import SERVED_FEATURES
from protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RaftVoterListener,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicName
from seams.now import Now
from tests.topics.held_io import HeldIo
from tests.topics.plane import Plane
from topics.handlers.metadata_quorum import METADATA_TOPIC

A = TopicName("a")


@pytest.fixture
def plane(plane: Plane) -> Plane:
    """A topic `a` with two partitions, of two records and of none."""
    plane.given("a", 2)
    plane.given_records("a", 2)
    return plane


def take_offline(plane: Plane, index: int) -> None:
    partition = plane.data.registry.partition("a", index)
    assert partition is not None
    partition.offline = True


# Log directories


def log_dir(plane: Plane, topics: list[DescribableLogDirTopic] | None) -> DescribeLogDirsResult:
    answer = plane.ask(DescribeLogDirsRequest(topics), 5, DescribeLogDirsResponse)
    assert answer.error_code is ErrorCode.NONE
    (result,) = answer.results
    return result


def sizes(result: DescribeLogDirsResult) -> dict[str, list[tuple[int, int]]]:
    return {
        t.name: [(p.partition_index, p.partition_size) for p in t.partitions] for t in result.topics
    }


def test_the_log_directory_has_the_sizes_of_its_replicas_and_of_its_volume(plane: Plane) -> None:
    result = log_dir(plane, None)

    assert sizes(result)["a"] == [(0, plane.log("a").size_bytes), (1, 0)]
    assert plane.log("a").size_bytes > 0
    assert (result.log_dir, result.total_bytes, result.usable_bytes) == ("/data", 1_000, 400)
    assert not result.is_cordoned


def test_a_replica_without_a_usable_log_is_left_out(plane: Plane) -> None:
    take_offline(plane, 0)

    assert sizes(log_dir(plane, [DescribableLogDirTopic(A, [0, 1, 2])])) == {"a": [(1, 0)]}


def test_a_volume_that_cannot_be_read_is_an_error_of_the_directory(plane: Plane) -> None:
    plane.cluster.log_dir_fault = OSError(5, "Input/output error")

    result = log_dir(plane, None)

    assert (result.error_code, result.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, "/data")
    assert (list(result.topics), result.total_bytes, result.usable_bytes) == ([], -1, -1)


def test_the_volume_is_read_in_the_reader_thread() -> None:
    reader = HeldIo()
    plane = Plane(reader=reader)
    token = plane.send(DescribeLogDirsRequest(None), 5)
    assert not plane.answered(token)

    reader.run()

    assert plane.answered(token)


def test_a_replica_is_in_its_directory_already(plane: Plane) -> None:
    take_offline(plane, 1)
    topics = [AlterReplicaLogDirTopic(A, [0, 1, 7])]
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir("/data", topics)])
    (result,) = plane.ask(request, 2, AlterReplicaLogDirsResponse).results

    assert {p.partition_index: p.error_code for p in result.partitions} == {
        0: ErrorCode.NONE,
        1: ErrorCode.KAFKA_STORAGE_ERROR,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


# Leaders


@pytest.mark.parametrize(
    ("election_type", "error_code"),
    [
        (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_an_offline_partition_gets_no_leader(
    plane: Plane, election_type: int, error_code: ErrorCode
) -> None:
    take_offline(plane, 1)
    asked = [ElectLeadersTopic(A, [0, 1])]
    answer = plane.ask(ElectLeadersRequest(election_type, asked), 2, ElectLeadersResponse)
    everywhere = plane.ask(ElectLeadersRequest(election_type, None), 2, ElectLeadersResponse)

    (named,) = answer.replica_election_results
    assert [p.error_code for p in named.partition_result] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        error_code,
    ]
    found = {r.topic: r.partition_result for r in everywhere.replica_election_results}
    assert list(found) == sorted(plane.data.registry.topic_names())
    assert {name: len(partitions) for name, partitions in found.items() if partitions} == {A: 1}
    assert found[A][0] == named.partition_result[1]


# The cluster


def test_the_only_broker_cannot_be_unregistered(plane: Plane) -> None:
    answer = plane.ask(UnregisterBrokerRequest(1), 0, UnregisterBrokerResponse)

    assert answer.error_code is ErrorCode.INVALID_REQUEST
    assert answer.error_message == "Broker 1 is the only one of its cluster and is running"


@pytest.mark.parametrize("version", range(3))
def test_the_voter_is_caught_up_now(plane: Plane, version: int) -> None:
    plane.now = Now(0, 1_234)
    request = DescribeQuorumRequest([QuorumTopic(METADATA_TOPIC, [QuorumPartition(0)])])
    answer = plane.ask(request, version, DescribeQuorumResponse)
    (partition,) = answer.topics[0].partitions
    (voter,) = partition.current_voters

    assert (partition.leader_id, voter.replica_id) == (1, 1)
    assert voter.last_caught_up_timestamp == (1_234 if version >= 1 else -1)
    assert [node.node_id for node in answer.nodes] == ([1] if version >= 2 else [])


DIRECTORY = UUID(int=7)
LISTENERS = [RaftVoterListener("CONTROLLER", "host", 9093)]


@pytest.mark.parametrize(
    ("request_", "error_code"),
    [
        (AddRaftVoterRequest(None, 0, 2, DIRECTORY, LISTENERS), ErrorCode.UNSUPPORTED_VERSION),
        (
            AddRaftVoterRequest("a-cluster", 0, 2, DIRECTORY, LISTENERS),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (
            AddRaftVoterRequest("another", 0, 2, DIRECTORY, LISTENERS),
            ErrorCode.INCONSISTENT_CLUSTER_ID,
        ),
        (AddRaftVoterRequest(None, 0, 2, ZERO_TOPIC_ID, LISTENERS), ErrorCode.INVALID_REQUEST),
        (AddRaftVoterRequest(None, 0, -1, DIRECTORY, LISTENERS), ErrorCode.INVALID_REQUEST),
        (AddRaftVoterRequest(None, 0, 2, DIRECTORY, []), ErrorCode.INVALID_REQUEST),
    ],
)
def test_no_voter_can_be_added(
    plane: Plane, request_: AddRaftVoterRequest, error_code: ErrorCode
) -> None:
    answer = plane.ask(request_, 1, AddRaftVoterResponse)

    assert answer.error_code is error_code
    assert answer.error_message


def test_a_voter_of_another_cluster_cannot_be_removed(plane: Plane) -> None:
    request = RemoveRaftVoterRequest("another", 1, DIRECTORY)

    answer = plane.ask(request, 0, RemoveRaftVoterResponse)
    assert answer.error_code is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("feature", SERVED_FEATURES, ids=lambda feature: feature.name)
def test_a_feature_is_served_at_its_finalized_level_only(plane: Plane, feature) -> None:
    for level in range(feature.min_version, feature.max_version + 1):
        update = FeatureUpdateKey(feature.name, level, upgrade_type=2)
        answer = plane.ask(UpdateFeaturesRequest(0, [update]), 2, UpdateFeaturesResponse)
        is_present = level == feature.max_version
        assert (answer.error_code is ErrorCode.NONE) == is_present
        assert (answer.error_message is None) == is_present
