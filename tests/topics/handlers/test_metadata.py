"""Metadata: what clients learn of the node and its topics, and which topics come to be by it."""

from uuid import UUID

import pytest

from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from protocol.names import (
    OFFSETS_TOPIC,
    OPERATIONS_NOT_REQUESTED,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    ErrorCode,
    TopicName,
)
from tests.topics.plane import Plane
from topics.events import AutoCreationFailed, TopicCreated
from topics.settings import TopicSettings

NOBODYS_ID = UUID(int=99)


def about(
    plane: Plane, *names: str, version: int = 12, create: bool = False
) -> list[MetadataResponseTopic]:
    topics = [MetadataRequestTopic(name=TopicName(name)) for name in names]
    request = MetadataRequest(topics, allow_auto_topic_creation=create)
    return list(plane.ask(request, version, MetadataResponse).topics)


def test_the_node_has_the_address_of_the_clients_listener(
    plane: Plane,
) -> None:
    for client_host, host, port in (("/10.0.0.1", "inside", 9093), ("/1.2.3.4", "outside", 9092)):
        answer = plane.ask(MetadataRequest(()), 12, MetadataResponse, client_host)
        (broker,) = answer.brokers
        assert (broker.node_id, broker.host, broker.port) == (1, host, port)
        assert answer.controller_id == 1
        assert answer.cluster_id == "a-cluster"


def test_a_topic_is_described_with_its_id_and_its_partitions_all_on_this_node(plane: Plane) -> None:
    plane.given("a", 2)
    (topic,) = about(plane, "a")
    assert topic.topic_id == plane.topic_id("a")
    assert not topic.is_internal
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert partition.error_code is ErrorCode.NONE
        assert (partition.leader_id, partition.leader_epoch) == (1, 0)
        assert list(partition.replica_nodes) == list(partition.isr_nodes) == [1]
        assert list(partition.offline_replicas) == []


@pytest.mark.parametrize(
    ("version", "topics", "names"),
    [
        (0, (), [OFFSETS_TOPIC, "a"]),  # in version 0 none means all
        (1, (), []),
        (1, None, [OFFSETS_TOPIC, "a"]),
        (13, None, [OFFSETS_TOPIC, "a"]),
    ],
)
def test_the_version_decides_if_an_empty_list_means_all_topics(
    plane: Plane, version: int, topics: tuple[()] | None, names: list[str]
) -> None:
    plane.given("a")
    answer = plane.ask(MetadataRequest(topics), version, MetadataResponse)
    assert [topic.name for topic in answer.topics] == names


@pytest.mark.parametrize("version", range(14))
def test_every_version_is_answered(plane: Plane, version: int) -> None:
    plane.given("a")
    (topic,) = about(plane, "a", version=version, create=version < 4)
    assert (topic.name, topic.error_code) == ("a", ErrorCode.NONE)


def test_the_offsets_topic_is_flagged_internal(plane: Plane) -> None:
    (topic,) = about(plane, OFFSETS_TOPIC)
    assert topic.is_internal
    assert len(topic.partitions) == 50


def test_a_topic_that_is_not_there_is_unknown_and_one_that_cannot_be_is_invalid(
    plane: Plane,
) -> None:
    unknown, invalid = about(plane, "a", "b b")
    assert unknown.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert invalid.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert unknown.topic_id == ZERO_TOPIC_ID
    assert plane.store.logs == {}


def test_a_name_that_is_asked_for_twice_is_answered_once(plane: Plane) -> None:
    plane.given("a")
    assert len(about(plane, "a", "a")) == 1


# Topics that come to be because somebody asks


def test_a_missing_topic_is_created_and_described_at_once() -> None:
    plane = Plane(TopicSettings(num_partitions=3))
    (topic,) = about(plane, "a", create=True)
    assert topic.error_code is ErrorCode.NONE
    assert len(topic.partitions) == 3
    assert plane.events_of(TopicCreated) == [
        TopicCreated(TopicName("a"), topic.topic_id, 3, automatic=True)
    ]


def test_nothing_is_made_where_automatic_creation_is_switched_off() -> None:
    plane = Plane(TopicSettings(auto_create_topics_enable=False))
    (topic,) = about(plane, "a", create=True)
    assert topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert plane.store.logs == {}


@pytest.mark.parametrize(
    ("name", "error_code"),
    [
        ("b b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a_b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),  # collides with a.b
        ("__share_group_state", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_topic_that_cannot_be_is_not_made(plane: Plane, name: str, error_code: ErrorCode) -> None:
    plane.given("a.b")
    (topic,) = about(plane, name, create=True)
    about(plane, name, create=True)
    assert topic.error_code is error_code
    assert plane.data.registry.by_name(TopicName(name)) is None
    # A reason that nobody can see from the name alone is told, once.
    failures = [AutoCreationFailed(TopicName("a_b"), "it collides with a.b")]
    assert plane.events_of(AutoCreationFailed) == (failures if name == "a_b" else [])


def test_too_many_default_replicas_prevent_automatic_creation_and_are_reported() -> None:
    plane = Plane(TopicSettings(default_replication_factor=3))
    (topic,) = about(plane, "a", create=True)
    assert topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (event,) = plane.events_of(AutoCreationFailed)
    assert event.reason.startswith("default.replication.factor: Unable to replicate")


def test_a_disk_that_refuses_leaves_the_topic_unknown_until_the_client_asks_again(
    plane: Plane,
) -> None:
    plane.catalog.fail_next = OSError(28, "No space left on device")
    (topic,) = about(plane, "a", create=True)
    assert topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (topic,) = about(plane, "a", create=True)
    assert topic.error_code is ErrorCode.NONE


# By id


def test_a_topic_is_found_by_its_id_and_an_unknown_id_is_an_error(plane: Plane) -> None:
    plane.given("a")
    topic_id = plane.topic_id("a")
    asked = [MetadataRequestTopic(asked_id, None) for asked_id in (topic_id, NOBODYS_ID)]
    answer = plane.ask(MetadataRequest(asked), 12, MetadataResponse)
    found = {topic.topic_id: (topic.name, topic.error_code) for topic in answer.topics}
    assert found == {
        topic_id: ("a", ErrorCode.NONE),
        NOBODYS_ID: (None, ErrorCode.UNKNOWN_TOPIC_ID),
    }


@pytest.mark.parametrize(
    ("version", "topic"),
    [
        (10, MetadataRequestTopic(NOBODYS_ID, TopicName("a"))),
        (11, MetadataRequestTopic(ZERO_TOPIC_ID, None)),
        (12, MetadataRequestTopic(ZERO_TOPIC_ID, None)),
    ],
)
def test_a_topic_that_is_called_as_its_version_cannot_is_an_invalid_request(
    plane: Plane, version: int, topic: MetadataRequestTopic
) -> None:
    answer = plane.ask(MetadataRequest((topic,)), version, MetadataResponse)
    assert [t.error_code for t in answer.topics] == [ErrorCode.INVALID_REQUEST]
    assert list(answer.brokers) == []


# Authorized operations


def test_authorized_operations_are_all_and_returned_on_request(plane: Plane) -> None:
    plane.given("a")
    topic = MetadataRequestTopic(name=TopicName("a"))
    answer = plane.ask(MetadataRequest((topic,)), 10, MetadataResponse)
    assert answer.cluster_authorized_operations == OPERATIONS_NOT_REQUESTED
    assert answer.topics[0].topic_authorized_operations == OPERATIONS_NOT_REQUESTED
    request = MetadataRequest(
        (topic,),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    answer = plane.ask(request, 10, MetadataResponse)
    # The very numbers that a Kafka without an authorizer answers.
    assert answer.cluster_authorized_operations == 8_096
    assert answer.topics[0].topic_authorized_operations == 3_576


def test_the_topic_of_transactions_is_made_as_its_coordinator_makes_it() -> None:
    plane = Plane(TopicSettings(transaction_state_log_num_partitions=4))
    assert plane.data.registry.by_name(TRANSACTION_STATE_TOPIC) is None
    (topic,) = about(plane, TRANSACTION_STATE_TOPIC, create=True)
    assert (topic.error_code, topic.is_internal) == (ErrorCode.NONE, True)
    assert len(topic.partitions) == 4
    made = plane.data.registry.by_name(TRANSACTION_STATE_TOPIC)
    assert made is not None
    assert made.configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    assert all(partition.log is None for partition in made.partitions)  # the coordinator's
