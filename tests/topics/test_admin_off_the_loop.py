"""Changes of topics beside the event loop: their order, and what others see meanwhile."""

import pytest

from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from protocol.names import ErrorCode, ProducerId, TopicName
from seams.reply_token import ReplyToken
from storage.api import TopicPartition
from tests.topics.held_io import HeldIo
from tests.topics.plane import Plane
from topics.events import SaveFailed, TopicChange
from topics.producer_ids import BLOCK, FEW

A = TopicName("a")


@pytest.fixture
def admin() -> HeldIo:
    return HeldIo()


@pytest.fixture
def plane(admin: HeldIo) -> Plane:
    return Plane(admin=admin)


def create(plane: Plane, name: str = A, partitions: int = 1) -> ReplyToken:
    return plane.send(CreateTopicsRequest([CreatableTopic(TopicName(name), partitions, 1)]), 7)


def delete(plane: Plane) -> ReplyToken:
    return plane.send(DeleteTopicsRequest([DeleteTopicState(A)]), 6)


def ask_for(plane: Plane, name: str = A) -> ReplyToken:
    topics = [MetadataRequestTopic(name=TopicName(name))]
    return plane.send(MetadataRequest(topics, allow_auto_topic_creation=True), 12)


def grow(plane: Plane, count: int) -> ReplyToken:
    return plane.send(CreatePartitionsRequest([CreatePartitionsTopic(A, count, None)]), 3)


def code(plane: Plane, token: ReplyToken) -> ErrorCode:
    match plane.answers[token]:
        case CreateTopicsResponse(topics=[result]) | MetadataResponse(topics=[result]):
            return result.error_code
        case DeleteTopicsResponse(responses=[result]):
            return result.error_code
        case CreatePartitionsResponse(results=[result]):
            return result.error_code
        case answer:
            raise AssertionError(answer)


def test_a_topic_is_there_once_the_disk_has_it(plane: Plane, admin: HeldIo) -> None:
    heard: list[TopicChange] = []
    plane.data.registry.subscribe(heard.append)
    token = create(plane)
    assert not plane.answered(token)
    assert plane.data.registry.by_name(A) is None
    saves = plane.catalog.saves

    hand_back = admin.work()  # in its thread
    assert plane.catalog.saves == saves + 1
    assert TopicPartition(A, 0) in plane.store.logs
    assert plane.data.registry.by_name(A) is None
    assert heard == []

    hand_back()  # on the loop
    assert code(plane, token) is ErrorCode.NONE
    assert len(heard) == 1
    assert plane.produce(A).error_code is ErrorCode.NONE


def test_of_two_that_create_one_name_the_second_finds_it_there(plane: Plane, admin: HeldIo) -> None:
    first, second, by_name = create(plane), create(plane), ask_for(plane)
    assert admin.waiting == 1  # the second has not even been looked at
    admin.run()
    assert code(plane, first) is ErrorCode.NONE
    assert code(plane, second) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert code(plane, by_name) is ErrorCode.NONE
    assert len(plane.store.logs) == 1


def test_names_that_differ_in_dots_only_collide_though_both_are_on_their_way(
    plane: Plane, admin: HeldIo
) -> None:
    tokens = create(plane, "a.b"), create(plane, "a_b"), ask_for(plane, "a_b")
    admin.run()
    assert [code(plane, token) for token in tokens] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_deleted_topic_is_gone_once_that_is_decided_and_its_name_free_when_it_is_answered(
    plane: Plane, admin: HeldIo
) -> None:
    create(plane)
    admin.run()
    old = plane.topic_id(A)
    deleted, created = delete(plane), create(plane)
    assert plane.produce(A).error_code is ErrorCode.NONE  # nothing is decided yet

    admin.step()  # the catalog
    assert plane.produce(A).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not plane.answered(deleted)
    assert TopicPartition(A, 0) in plane.store.logs

    admin.step()  # the folders
    assert not plane.store.logs
    admin.step()  # the catalog, which need not name them any more
    assert code(plane, deleted) is ErrorCode.NONE
    assert not plane.answered(created)
    admin.run()
    assert code(plane, created) is ErrorCode.NONE
    assert plane.topic_id(A) != old


def test_what_was_deleted_or_grown_meanwhile_is_seen_when_the_turn_comes(
    plane: Plane, admin: HeldIo
) -> None:
    tokens = [create(plane), grow(plane, 3), grow(plane, 2), delete(plane), grow(plane, 9)]
    tokens.append(delete(plane))
    admin.run()
    assert [code(plane, token) for token in tokens] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_metadata_waits_only_for_what_it_wants_made(plane: Plane, admin: HeldIo) -> None:
    create(plane)
    admin.run()
    create(plane, "slow")
    assert code(plane, ask_for(plane)) is ErrorCode.NONE
    made = ask_for(plane, "other")
    assert not plane.answered(made)
    admin.run()
    answer = plane.answers[made]
    assert isinstance(answer, MetadataResponse)
    (topic,) = answer.topics
    assert isinstance(topic, MetadataResponseTopic)
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)


def test_ids_of_a_block_need_no_disk_and_the_next_block_is_there_in_time(
    plane: Plane, admin: HeldIo
) -> None:
    def ids(count: int) -> list[ProducerId | None]:
        return [plane.take_producer_id()[0] for _ in range(count)]

    first, second = plane.take_producer_id(), plane.take_producer_id()
    assert admin.waiting == 1
    admin.run()
    assert (first, second) == ([0], [1])
    assert ids(BLOCK - FEW - 2) == list(range(2, BLOCK - FEW))
    assert admin.waiting == 1  # the next block, and nobody waits for it
    assert ids(FEW) == list(range(BLOCK - FEW, BLOCK))
    assert admin.waiting == 1
    late = [plane.take_producer_id() for _ in range(3)]
    assert not any(late)
    admin.run()
    assert all(late)
    assert ids(BLOCK - 3) == list(range(BLOCK + 3, 2 * BLOCK))


def test_a_block_that_cannot_be_reserved_is_asked_for_again(plane: Plane, admin: HeldIo) -> None:
    plane.catalog.fail_next = OSError(28, "No space left on device")
    refused, given = plane.take_producer_id(), plane.take_producer_id()
    admin.run()
    assert refused == [None]
    assert given == [0]


def test_folders_that_cannot_be_removed_are_gone_at_the_next_start(
    plane: Plane, admin: HeldIo
) -> None:
    create(plane, partitions=2)
    admin.run()
    logs, topic_id = dict(plane.store.logs), plane.topic_id(A)
    plane.store.fail_deletions = True
    token = delete(plane)
    admin.run()
    assert code(plane, token) is ErrorCode.NONE
    assert plane.events_of(SaveFailed)
    create(plane, "other")  # saves the catalog once more
    admin.run()
    plane.store.fail_deletions = False
    plane.store.logs.update(logs)
    plane.restart()
    assert plane.data.registry.by_name(A) is None
    assert plane.data.registry.by_id(topic_id) is None
    assert list(plane.store.logs) == [TopicPartition("other", 0)]


def test_a_mistake_of_ours_closes_one_connection_and_the_next_change_is_made(
    plane: Plane, admin: HeldIo
) -> None:
    first, second = create(plane), create(plane, "b")
    plane.store.fail_next = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        admin.step()
    assert plane.closed_connections == [first]
    admin.run()
    assert code(plane, second) is ErrorCode.NONE


def test_a_stop_ends_a_change_where_a_kill_might_and_the_next_start_finishes_it(
    plane: Plane, admin: HeldIo
) -> None:
    create(plane)
    admin.run()
    token = delete(plane)
    hand_back = admin.work()  # the catalog
    plane.stop()
    hand_back()
    assert admin.waiting == 0
    assert not plane.answered(token)
    assert plane.store.logs
    plane.restart()
    assert plane.data.registry.by_name(A) is None
    assert not plane.store.logs
