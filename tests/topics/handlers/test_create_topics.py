"""CreateTopics: which topics are made, and what the others are told."""

import pytest

from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicName
from tests.topics.plane import Plane
from topics.settings import TopicSettings

DEFAULT = -1


def create(
    plane: Plane, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics, validate_only=validate_only)
    return list(plane.ask(request, version, CreateTopicsResponse).topics)


def topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    assigned: dict[int, tuple[int, ...]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        TopicName(name),
        partitions,
        replication_factor,
        [CreatableReplicaAssignment(*pair) for pair in (assigned or {}).items()],
        [CreatableTopicConfig(*pair) for pair in (configs or {}).items()],
    )


def test_a_topic_is_created_with_its_partitions_and_returned_with_its_configs(plane: Plane) -> None:
    (result,) = create(plane, topic("a", 3, configs={"retention.ms": "5000"}))
    assert result.error_code is ErrorCode.NONE
    assert result.error_message is None
    assert result.topic_id == plane.topic_id("a")
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert result.configs is not None
    returned = {config.name: (config.value, config.config_source) for config in result.configs}
    assert returned["retention.ms"] == ("5000", 1)
    assert returned["segment.bytes"] == ("1073741824", 5)
    assert len(returned) == 33
    assert list(returned) == sorted(returned)
    assert len(plane.store.logs) == 3


@pytest.mark.parametrize(("version", "partitions"), [(2, -1), (4, -1), (5, 1), (7, 1)])
def test_older_answers_say_less(plane: Plane, version: int, partitions: int) -> None:
    (result,) = create(plane, topic("a"), version=version)
    assert result.error_code is ErrorCode.NONE
    assert result.num_partitions == partitions
    assert (result.topic_id == ZERO_TOPIC_ID) is (version < 7)


def test_minus_one_stands_for_the_brokers_defaults() -> None:
    plane = Plane(TopicSettings(num_partitions=4))
    (result,) = create(plane, topic("a", DEFAULT, DEFAULT))
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_validating_makes_nothing(plane: Plane) -> None:
    saves = plane.catalog.saves
    (result,) = create(plane, topic("a", 2), validate_only=True)
    assert result.error_code is ErrorCode.NONE
    assert result.num_partitions == 2
    assert plane.data.registry.by_name(TopicName("a")) is None
    assert plane.catalog.saves == saves


def test_a_topic_that_is_there_is_not_made_again(plane: Plane) -> None:
    plane.given("a")
    (result,) = create(plane, topic("a", 5))
    assert result.error_code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert result.error_message == "Topic 'a' already exists."
    assert plane.data.registry.partition_count(TopicName("a")) == 1


def test_each_topic_is_judged_for_itself(plane: Plane) -> None:
    results = create(plane, topic("a"), topic("b b"), topic("c"))
    codes = [result.error_code for result in results]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]
    assert plane.data.registry.by_name(TopicName("c")) is not None


def test_many_topics_cost_one_save(plane: Plane) -> None:
    saves = plane.catalog.saves
    create(plane, *(topic(f"t{n}") for n in range(20)))
    assert plane.catalog.saves == saves + 1


def test_a_name_that_collides_with_an_existing_one_is_refused(plane: Plane) -> None:
    plane.given("a.b")
    (result,) = create(plane, topic("a_b"))
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == "Topic 'a_b' collides with existing topic: a.b"


def test_a_topic_named_twice_is_not_made(plane: Plane) -> None:
    results = create(plane, topic("a", 1), topic("b"), topic("a", 2))
    assert [(r.name, r.error_code) for r in results] == [
        ("b", ErrorCode.NONE),
        ("a", ErrorCode.INVALID_REQUEST),
    ]
    assert results[1].error_message == "Duplicate topic name."
    assert plane.data.registry.by_name(TopicName("a")) is None


@pytest.mark.parametrize("replication_factor", [2, 3, 32_767])
def test_more_replicas_than_there_are_nodes_are_refused(
    plane: Plane, replication_factor: int
) -> None:
    (result,) = create(plane, topic("a", 1, replication_factor))
    assert result.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == (
        f"Unable to replicate the partition {replication_factor} time(s): The target replication "
        f"factor of {replication_factor} cannot be reached because only 1 broker(s) are "
        "registered or some brokers have all their log directories cordoned."
    )


@pytest.mark.parametrize("replication_factor", [0, -2])
def test_a_replication_factor_that_is_no_number_of_replicas_is_refused(
    plane: Plane, replication_factor: int
) -> None:
    (result,) = create(plane, topic("a", 1, replication_factor))
    assert result.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == (
        "Replication factor must be larger than 0, or -1 to use the default value."
    )


@pytest.mark.parametrize("partitions", [0, -2])
def test_a_topic_needs_partitions(plane: Plane, partitions: int) -> None:
    (result,) = create(plane, topic("a", partitions))
    assert result.error_code is ErrorCode.INVALID_PARTITIONS
    assert result.error_message == (
        "Number of partitions was set to an invalid non-positive value."
    )


def test_ten_thousand_partitions_are_the_most_that_one_request_may_ask(plane: Plane) -> None:
    results = create(plane, topic("a", 9_999), topic("b", 2), validate_only=True)
    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    results = create(plane, topic("a", 9_997), topic("b", 1), validate_only=True)
    assert {result.error_code for result in results} == {ErrorCode.NONE}


@pytest.mark.parametrize(
    ("partitions", "configs", "is_refused"),
    [(9_999, 0, False), (10_000, 0, True), (9_997, 2, False), (9_998, 2, True)],
)
def test_topics_partitions_and_configs_of_a_request_are_ten_thousand_at_most(
    plane: Plane, partitions: int, configs: int, *, is_refused: bool
) -> None:
    """Kafka's controller writes a record for each."""
    named = dict([("retention.ms", "5"), ("segment.bytes", "1048576")][:configs])
    (result,) = create(plane, topic("a", partitions, configs=named), validate_only=True)
    assert (result.error_code is ErrorCode.POLICY_VIOLATION) == is_refused
    expected = "Unable to perform excessively large batch operation." if is_refused else None
    assert result.error_message == expected


@pytest.mark.parametrize("partitions", [5_000, 5_001])
def test_a_request_that_is_too_large_fails_for_every_topic_as_often_as_it_is_named(
    plane: Plane, partitions: int
) -> None:
    named = ("twice", "twice", "bad/name", "a", "b")
    results = create(plane, *(topic(name, partitions) for name in named), validate_only=True)
    assert tuple(result.name for result in results) == named
    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    assert create(plane, topic("a"))[0].error_code is ErrorCode.NONE, "nothing was created"


def test_a_config_without_a_value_is_refused(plane: Plane) -> None:
    (result,) = create(plane, topic("a", configs={"retention.ms": None}))
    assert result.error_code is ErrorCode.INVALID_CONFIG
    assert result.error_message == "Null value not supported for topic configs: retention.ms"


def test_an_unknown_config_is_refused(plane: Plane) -> None:
    (result,) = create(plane, topic("a", configs={"nope": "1"}))
    assert result.error_code is ErrorCode.INVALID_CONFIG
    assert result.error_message == "Unknown topic config name: nope"


def test_partitions_may_be_placed_by_hand_on_the_node_that_there_is(plane: Plane) -> None:
    (result,) = create(plane, topic("a", DEFAULT, DEFAULT, {1: (1,), 0: (1,)}))
    assert result.error_code is ErrorCode.NONE
    assert result.num_partitions == 2


@pytest.mark.parametrize(
    ("assigned", "message"),
    [
        (
            {0: (9,)},
            (
                "The manual partition assignment includes broker 9, "
                "but no such broker is registered."
            ),
        ),
        ({0: ()}, "The manual partition assignment includes an empty replica list."),
        (
            {0: (1, 1)},
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        ({0: (1,), 2: (1,)}, "partitions should be a consecutive 0-based integer sequence"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(
    plane: Plane, assigned: dict[int, tuple[int, ...]], message: str
) -> None:
    (result,) = create(plane, topic("a", DEFAULT, DEFAULT, assigned))
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message == message


def test_a_partition_is_placed_once(plane: Plane) -> None:
    twice = [CreatableReplicaAssignment(0, (1,)), CreatableReplicaAssignment(0, (1,))]
    (result,) = create(plane, CreatableTopic(TopicName("a"), DEFAULT, DEFAULT, twice))
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message == "Found multiple manual partition assignments for partition 0"


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "named"),
    [(1, DEFAULT, "numPartitions"), (DEFAULT, 1, "replication factor")],
)
def test_numbers_and_a_placement_by_hand_exclude_each_other(
    plane: Plane, partitions: int, replication_factor: int, named: str
) -> None:
    (result,) = create(plane, topic("a", partitions, replication_factor, {0: (1,)}))
    assert result.error_code is ErrorCode.INVALID_REQUEST
    assert result.error_message == (
        f"A manual partition assignment was specified, but {named} was not set to -1."
    )


def test_the_log_of_the_metadata_quorum_is_nobodys_to_create(plane: Plane) -> None:
    (result,) = create(plane, topic("__cluster_metadata"))
    assert result.error_code is ErrorCode.INVALID_REQUEST
    assert result.error_message == ("Creation of internal topic __cluster_metadata is prohibited.")
