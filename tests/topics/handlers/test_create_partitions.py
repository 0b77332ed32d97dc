"""CreatePartitions: a topic grows, and only grows."""

import pytest

from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, TopicName
from tests.topics.plane import Plane


def grow(
    plane: Plane,
    name: str,
    count: int,
    assigned: list[tuple[int, ...]] | None = None,
    *,
    validate_only: bool = False,
) -> CreatePartitionsTopicResult:
    assignments = None
    if assigned is not None:
        assignments = [CreatePartitionsAssignment(broker_ids) for broker_ids in assigned]
    topic = CreatePartitionsTopic(TopicName(name), count, assignments)
    request = CreatePartitionsRequest((topic,), validate_only=validate_only)
    return plane.ask(request, 3, CreatePartitionsResponse).results[0]


def count_of(plane: Plane, name: str) -> int | None:
    return plane.data.registry.partition_count(TopicName(name))


def test_a_topic_grows_and_the_new_partitions_can_be_written(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 1)
    assert grow(plane, "a", 4) == CreatePartitionsTopicResult(TopicName("a"))
    assert count_of(plane, "a") == 4
    assert plane.produce("a", partition=3).error_code is ErrorCode.NONE
    assert plane.fetch("a").high_watermark == 1
    plane.restart()
    assert count_of(plane, "a") == 4


def test_validating_adds_nothing(plane: Plane) -> None:
    plane.given("a", 2)
    assert grow(plane, "a", 4, validate_only=True).error_code is ErrorCode.NONE
    assert count_of(plane, "a") == 2


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic a currently has 2 partition(s); 1 would not be an increase."),
        (-1, "The topic a currently has 2 partition(s); -1 would not be an increase."),
    ],
)
def test_a_topic_only_grows(plane: Plane, count: int, message: str) -> None:
    plane.given("a", 2)
    result = grow(plane, "a", count)
    assert result.error_code is ErrorCode.INVALID_PARTITIONS
    assert result.error_message == message


def test_what_is_not_there_does_not_grow(plane: Plane) -> None:
    result = grow(plane, "a", 2)
    assert result.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert result.error_message is None


def test_a_topic_that_is_named_twice_does_not_grow(plane: Plane) -> None:
    plane.given("a", 2)
    topics = [CreatePartitionsTopic(TopicName("a"), count, None) for count in (3, 4)]
    request = CreatePartitionsRequest(topics)
    (result,) = plane.ask(request, 3, CreatePartitionsResponse).results
    assert result.error_code is ErrorCode.INVALID_REQUEST
    assert result.error_message == "Duplicate topic name."
    assert count_of(plane, "a") == 2


def test_new_partitions_may_be_placed_on_the_node_that_there_is(plane: Plane) -> None:
    plane.given("a", 2)
    assert grow(plane, "a", 3, [(1,)]).error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("assigned", "message"),
    [
        (
            [],
            (
                "Attempted to add 1 additional partition(s), but only 0 assignment(s) were "
                "specified."
            ),
        ),
        (
            [(9,)],
            (
                "The manual partition assignment includes broker 9, "
                "but no such broker is registered."
            ),
        ),
        ([()], "The manual partition assignment includes an empty replica list."),
    ],
)
def test_a_placement_that_cannot_be_is_refused(
    plane: Plane, assigned: list[tuple[int, ...]], message: str
) -> None:
    plane.given("a", 2)
    result = grow(plane, "a", 3, assigned)
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message == message
    assert count_of(plane, "a") == 2


def test_the_offsets_topic_does_not_grow_for_its_count_finds_the_groups(plane: Plane) -> None:
    result = grow(plane, OFFSETS_TOPIC, 51)
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert count_of(plane, OFFSETS_TOPIC) == 50


def test_a_million_partitions_are_too_many(plane: Plane) -> None:
    plane.given("a")
    assert grow(plane, "a", 1_000_000).error_code is ErrorCode.POLICY_VIOLATION


def test_the_topics_of_a_request_grow_by_ten_thousand_partitions_at_most(plane: Plane) -> None:
    for name in ("a", "b", "c"):
        plane.given(name)
    counts = {"a": 5_002, "b": 5_001, "c": 5_000}  # each has one already
    topics = tuple(CreatePartitionsTopic(TopicName(n), count, None) for n, count in counts.items())
    request = CreatePartitionsRequest(topics, validate_only=True)
    results = plane.ask(request, 3, CreatePartitionsResponse).results
    assert [result.error_code for result in results] == [
        ErrorCode.NONE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.NONE,
    ]


def test_a_disk_error_is_returned(plane: Plane) -> None:
    plane.given("a")
    plane.store.room = 0
    result = grow(plane, "a", 2)
    assert result.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert result.error_message == "The disk refused: Too many open files"


def test_what_a_disk_refused_is_not_counted_against_the_limit(plane: Plane) -> None:
    plane.given("a")
    plane.given("b")
    plane.store.room = 0
    topics = tuple(CreatePartitionsTopic(TopicName(name), 9_000, None) for name in ("a", "b"))
    results = plane.ask(CreatePartitionsRequest(topics), 3, CreatePartitionsResponse).results
    assert [result.error_code for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
