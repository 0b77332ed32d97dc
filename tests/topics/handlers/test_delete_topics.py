"""DeleteTopics: which topics go, by name or id, and what is refused rather than guessed at."""

from uuid import UUID

import pytest

from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.names import OFFSETS_TOPIC, ZERO_TOPIC_ID, ErrorCode, TopicId, TopicName
from tests.topics.plane import Plane
from topics.settings import TopicSettings

NOBODYS_ID = UUID(int=99)


def named(name: str | None, topic_id: TopicId = ZERO_TOPIC_ID) -> DeleteTopicState:
    return DeleteTopicState(None if name is None else TopicName(name), topic_id)


def delete(plane: Plane, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(topics)
    return list(plane.ask(request, 6, DeleteTopicsResponse).responses)


def exists(plane: Plane, name: str) -> bool:
    return plane.data.registry.by_name(TopicName(name)) is not None


def test_a_topic_goes_by_name(plane: Plane) -> None:
    plane.given("a")
    topic_id = plane.topic_id("a")
    (result,) = delete(plane, named("a"))
    assert result == DeletableTopicResult(TopicName("a"), topic_id)
    assert not exists(plane, "a")


def test_a_topic_goes_by_id(plane: Plane) -> None:
    plane.given("a")
    (result,) = delete(plane, named(None, plane.topic_id("a")))
    assert (result.name, result.error_code) == ("a", ErrorCode.NONE)
    assert not exists(plane, "a")


@pytest.mark.parametrize("version", [1, 4, 5])
def test_older_requests_list_names(plane: Plane, version: int) -> None:
    plane.given("a")
    request = DeleteTopicsRequest(topic_names=(TopicName("a"), TopicName("b")))
    results = plane.ask(request, version, DeleteTopicsResponse).responses
    assert [(r.name, r.error_code) for r in results] == [
        ("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", ErrorCode.NONE),
    ]
    message = "This server does not host this topic-partition." if version >= 5 else None
    assert results[0].error_message == message


def test_an_unknown_id_is_an_error(plane: Plane) -> None:
    (result,) = delete(plane, named(None, NOBODYS_ID))
    assert result.error_code is ErrorCode.UNKNOWN_TOPIC_ID
    assert (result.name, result.topic_id) == (None, NOBODYS_ID)
    assert result.error_message == "This server does not host this topic ID."


def test_a_topic_is_called_by_its_name_or_by_its_id_not_by_both_or_neither(plane: Plane) -> None:
    plane.given("a")
    results = delete(plane, named("a", plane.topic_id("a")), named(None))
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert [result.error_message for result in results] == [
        "You may not specify both topic name and topic id.",
        "Neither topic name nor id were specified.",
    ]
    assert exists(plane, "a")


def test_what_is_asked_for_twice_stays(plane: Plane) -> None:
    plane.given("a")
    topic_id = plane.topic_id("a")
    for twice, message in (
        ((named("a"), named("a")), "Duplicate topic name."),
        ((named(None, topic_id), named(None, topic_id)), "Duplicate topic id."),
        (
            (named("a"), named(None, topic_id)),
            "The provided topic name maps to an ID that was already supplied.",
        ),
    ):
        (result,) = delete(plane, *twice)
        assert result.error_code is ErrorCode.INVALID_REQUEST
        assert result.error_message == message
        assert exists(plane, "a")


def test_the_offsets_topic_cannot_be_deleted(plane: Plane) -> None:
    (result,) = delete(plane, named(OFFSETS_TOPIC))
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == ("Topic '__consumer_offsets' is internal and cannot be deleted.")
    assert exists(plane, OFFSETS_TOPIC)


@pytest.mark.parametrize(
    ("version", "error_code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_where_deletion_is_switched_off_nothing_goes(version: int, error_code: ErrorCode) -> None:
    plane = Plane(TopicSettings(delete_topic_enable=False))
    plane.given("a")
    request = DeleteTopicsRequest(topic_names=(TopicName("a"),))
    (result,) = plane.ask(request, version, DeleteTopicsResponse).responses
    assert result.error_code is error_code
    assert exists(plane, "a")


def test_where_deletion_is_switched_off_it_is_so_by_id_too() -> None:
    plane = Plane(TopicSettings(delete_topic_enable=False))
    plane.given("a")
    (result,) = delete(plane, named(None, plane.topic_id("a")))
    assert result.error_code is ErrorCode.TOPIC_DELETION_DISABLED
    assert exists(plane, "a")


def test_a_folder_that_an_operator_brings_back_from_a_copy_is_not_deleted_again(
    plane: Plane,
) -> None:
    name = plane.given("a")
    plane.given_records("a", 2)
    log = plane.log("a")
    topic = plane.data.registry.by_name(name)
    assert topic is not None
    plane.run(plane.data.registry.delete(topic))
    plane.stop()
    plane.store.logs[log.topic_partition] = log
    plane.restart()
    assert plane.data.registry.partition_count(name) == 1
    assert plane.log("a").log_end_offset == 2


def test_nor_one_of_a_topic_whose_deletion_a_start_has_finished(plane: Plane) -> None:
    name = plane.given("a")
    log = plane.log("a")
    topic = plane.data.registry.by_name(name)
    assert topic is not None
    plane.store.fail_deletions = True
    plane.run(plane.data.registry.delete(topic))
    plane.store.fail_deletions = False
    plane.store.logs[log.topic_partition] = log
    plane.restart()
    assert plane.data.registry.partition_count(name) is None
    plane.store.logs[log.topic_partition] = log
    plane.restart()
    assert plane.data.registry.partition_count(name) == 1
