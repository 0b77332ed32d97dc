"""Topics outlive the daemon: what the catalog keeps, and what becomes of a change cut short."""

import json

import pytest

from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.names import OFFSETS_TOPIC, ZERO_TOPIC_ID, ErrorCode, TopicName
from storage.api import Corrupt, TopicPartition
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import Plane
from topics.events import (
    PartitionFailed,
    PartitionsAdded,
    SaveFailed,
    TopicAdopted,
    TopicChange,
    TopicCreated,
    TopicDeleted,
)
from topics.settings import TopicSettings
from topics.topic_ids import random_topic_id


def test_the_offsets_topic_is_there_from_the_start(plane: Plane) -> None:
    topic = plane.data.registry.by_name(OFFSETS_TOPIC)
    assert topic is not None
    assert len(topic.partitions) == 50
    assert topic.is_internal
    assert topic.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
        "min.compaction.lag.ms": "86400000",
    }
    # Its logs are the coordinator's to make.
    assert plane.store.logs == {}


def test_a_topic_keeps_its_id_partitions_and_configs_over_a_restart(plane: Plane) -> None:
    plane.given("a", 3, retention_ms="5000")
    topic_id = plane.topic_id("a")
    plane.given_records("a", 2)

    plane.restart()

    assert plane.topic_id("a") == topic_id
    assert plane.data.registry.topic_name(topic_id) == "a"
    assert plane.data.registry.partition_count(TopicName("a")) == 3
    assert plane.log("a").settings.retention_ms == 5_000
    assert plane.fetch("a").high_watermark == 2


def test_the_offsets_topic_keeps_its_id_and_its_partitions_whatever_the_settings_say(
    plane: Plane,
) -> None:
    topic_id = plane.topic_id(OFFSETS_TOPIC)
    plane.restart(TopicSettings(offsets_topic_num_partitions=7))
    assert plane.topic_id(OFFSETS_TOPIC) == topic_id
    assert plane.data.registry.partition_count(OFFSETS_TOPIC) == 50


def test_the_offsets_topics_configs_are_what_the_settings_say_now(plane: Plane) -> None:
    plane.restart(TopicSettings(offsets_topic_segment_bytes=2 << 20, offsets_history_ms=7))
    topic = plane.data.registry.by_name(OFFSETS_TOPIC)
    assert topic is not None
    assert topic.configs["segment.bytes"] == str(2 << 20)
    assert topic.configs["min.compaction.lag.ms"] == "7"


def test_what_is_not_there_has_no_id_no_name_and_no_partitions(plane: Plane) -> None:
    registry = plane.data.registry
    assert registry.topic_id(TopicName("a")) is None
    assert registry.topic_name(random_topic_id()) is None
    assert registry.partition_count(TopicName("a")) is None
    assert registry.partition("a", 0) is None


def test_a_listener_hears_of_every_change_once_it_is_made(plane: Plane) -> None:
    heard: list[TopicChange] = []
    registry = plane.data.registry

    def listen(change: TopicChange) -> None:
        there = registry.by_name(change.name) is not None
        assert there is not isinstance(change, TopicDeleted)
        heard.append(change)

    registry.subscribe(listen)
    plane.given("a", 2)
    topic = registry.by_name(TopicName("a"))
    assert topic is not None
    registry.add_partitions(topic, 5)
    registry.delete(topic)

    assert heard == [
        TopicCreated(topic.name, topic.topic_id, 2),
        PartitionsAdded(topic.name, topic.topic_id, 2, 5),
        TopicDeleted(topic.name, topic.topic_id, 5),
    ]


def test_a_deleted_topics_records_are_gone_and_its_name_is_free(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 2)
    first_id = plane.topic_id("a")
    delete(plane, "a")
    assert plane.store.logs == {}
    plane.restart()
    assert plane.data.registry.by_name(TopicName("a")) is None

    plane.given("a")
    assert plane.topic_id("a") != first_id
    assert plane.fetch("a").high_watermark == 0


def test_a_creation_cut_short_after_the_catalog_is_finished_at_the_next_start(
    plane: Plane,
) -> None:
    plane.given("a", 2)
    del plane.store.logs[TopicPartition("a", 1)]
    plane.restart()
    assert plane.fetch("a", partition=1).error_code is ErrorCode.NONE


def test_a_deletion_cut_short_after_the_catalog_is_finished_at_the_next_start(
    plane: Plane,
) -> None:
    plane.given("a", 2)
    logs = dict(plane.store.logs)
    delete(plane, "a")
    plane.store.logs = logs  # the folders were not removed yet
    plane.restart()
    assert plane.store.logs == {}
    assert plane.data.registry.by_name(TopicName("a")) is None


def test_logs_that_no_catalog_knows_are_adopted_not_deleted(plane: Plane) -> None:
    topic_id = random_topic_id()
    for partition in (0, 2):
        topic_partition = TopicPartition("found", partition)
        log = MemoryLog(topic_partition, topic_id)
        log.append(plane.batch(b"kept"), 0)
        plane.store.logs[topic_partition] = log

    plane.restart()

    assert plane.topic_id("found") == topic_id
    assert plane.fetch("found", partition=2).high_watermark == 1
    # The partition between them is made.
    assert plane.fetch("found", partition=1).high_watermark == 0
    assert plane.events_of(TopicAdopted) == [TopicAdopted(TopicName("found"), topic_id, 3)]
    plane.restart()
    assert plane.events_of(TopicAdopted) == []


def test_producer_ids_that_a_moved_log_has_are_given_to_nobody(plane: Plane) -> None:
    log = MemoryLog(TopicPartition("moved", 0), random_topic_id())
    log.last_producer_id = 4_711
    plane.store.logs[log.topic_partition] = log

    plane.restart()
    first = plane.data.registry.reserve_producer_ids(1_000)
    assert first == 4_712
    plane.restart()
    assert plane.data.registry.reserve_producer_ids(1_000) == 5_712


def test_a_catalog_that_cannot_be_read_stops_the_start(plane: Plane) -> None:
    for content in (b"{", b"{}", b'{"format": 99}', b"[]", b'{"format": 1, "topics": [{}]}'):
        plane.catalog.content = content
        with pytest.raises(Corrupt, match="topic catalog"):
            plane.restart()


def test_a_folder_of_another_topic_of_the_same_name_stops_the_start(plane: Plane) -> None:
    plane.given("a")
    plane.log("a").topic_id = random_topic_id()
    with pytest.raises(Corrupt, match="a-0"):
        plane.restart()


def test_a_damaged_partition_is_not_served_and_all_others_are(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 1, partition=1)
    damaged = TopicPartition("a", 0)
    del plane.store.logs[damaged]
    plane.store.damaged.add(damaged)
    plane.restart()
    assert plane.produce("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.fetch("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.fetch("a", partition=1).high_watermark == 1
    (event,) = plane.events_of(PartitionFailed)
    assert (event.topic_partition, event.offline) == (damaged, True)


def test_a_log_whose_id_a_crash_took_gets_it_again(plane: Plane) -> None:
    plane.given("a")
    topic_id = plane.topic_id("a")
    plane.log("a").topic_id = ZERO_TOPIC_ID
    plane.restart()
    assert plane.log("a").topic_id == topic_id


def test_a_log_without_an_id_that_no_catalog_knows_gets_one(plane: Plane) -> None:
    topic_partition = TopicPartition("found", 0)
    plane.store.logs[topic_partition] = MemoryLog(topic_partition, ZERO_TOPIC_ID)
    plane.restart()
    assert plane.topic_id("found") == plane.log("found").topic_id != ZERO_TOPIC_ID


def test_a_topic_whose_creation_cannot_be_saved_does_not_exist(plane: Plane) -> None:
    plane.catalog.fail_next = OSError(28, "No space left on device")
    result = plane.create("a")
    assert result.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert result.error_message == "The disk refused: No space left on device"
    assert plane.data.registry.by_name(TopicName("a")) is None
    assert plane.store.logs == {}
    assert plane.events_of(SaveFailed)
    assert plane.create("a").error_code is ErrorCode.NONE


def test_a_topic_whose_logs_cannot_be_made_does_not_exist_even_after_a_restart(
    plane: Plane,
) -> None:
    plane.store.room = 2
    result = plane.create("a", 3)
    assert result.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.store.logs == {}
    plane.store.room = None
    plane.restart()
    assert plane.data.registry.by_name(TopicName("a")) is None


def test_partitions_that_cannot_be_made_are_not_added(plane: Plane) -> None:
    plane.given("a", 1)
    plane.store.room = 1
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    with pytest.raises(OSError, match="Too many open files"):
        plane.data.registry.add_partitions(topic, 4)
    assert plane.data.registry.partition_count(TopicName("a")) == 1
    assert list(plane.store.logs) == [TopicPartition("a", 0)]
    plane.store.room = None
    plane.restart()
    assert plane.data.registry.partition_count(TopicName("a")) == 1


def test_a_deletion_that_cannot_be_saved_deletes_nothing(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 1)
    plane.catalog.fail_next = OSError(5, "Input/output error")
    assert delete(plane, "a") is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.fetch("a").high_watermark == 1
    assert delete(plane, "a") is ErrorCode.NONE


def test_the_catalog_is_a_file_that_people_can_read(plane: Plane) -> None:
    plane.given("a", 2, retention_ms="1")
    assert plane.catalog.content is not None
    topics = json.loads(plane.catalog.content)["topics"]
    assert topics[-1] == {
        "name": "a",
        "id": str(plane.topic_id("a")),
        "partitions": 2,
        "configs": {"retention.ms": "1"},
    }


def test_a_topic_id_never_looks_like_an_option() -> None:
    # In base64 an id that begins with these six bits begins with a dash.
    assert all(random_topic_id().bytes[0] >> 2 != 0b111110 for _ in range(1_000))


def delete(plane: Plane, name: str) -> ErrorCode:
    request = DeleteTopicsRequest((DeleteTopicState(TopicName(name)),))
    return plane.ask(request, 6, DeleteTopicsResponse).responses[0].error_code
