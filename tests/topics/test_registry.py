"""Topics outlive the daemon: what the catalog keeps, and what becomes of a change cut short."""

import copy
import json

import pytest

from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.names import OFFSETS_TOPIC, ZERO_TOPIC_ID, ErrorCode, TopicName
from storage.api import Corrupt, NewerFormat, TopicPartition
from storage.repair.repair import repair_hint
from tests.topics.batches import batch
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import Plane
from topics.events import (
    CatalogRebuilt,
    PartitionFailed,
    PartitionsAdded,
    PartitionsFoundMissing,
    PartitionsRecreated,
    SaveFailed,
    StrayFolderRenamed,
    TopicChange,
    TopicCreated,
    TopicDeleted,
    TopicRecovered,
)
from topics.registry import LOST_CATALOG_SKIP
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
    assert registry.partition_racks(TopicName("a")) == ()


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
    plane.run(registry.add_partitions(topic, 5))
    plane.run(registry.delete(topic))

    assert heard == [
        TopicCreated(topic.name, topic.topic_id, 2),
        PartitionsAdded(topic.name, topic.topic_id, 2, 5),
        TopicDeleted(topic.name, topic.topic_id, 5),
    ]


def test_the_version_rises_with_every_change_of_names_or_partitions(plane: Plane) -> None:
    registry = plane.data.registry
    versions = [registry.topics_version]
    seen_by_listener: list[int] = []
    registry.subscribe(lambda _: seen_by_listener.append(registry.topics_version))

    plane.given("a", 2)
    versions.append(registry.topics_version)
    topic = registry.by_name(TopicName("a"))
    assert topic is not None
    plane.run(registry.add_partitions(topic, 5))
    versions.append(registry.topics_version)
    plane.given_records("a", 2)
    assert registry.topics_version == versions[-1]
    plane.run(registry.delete(topic))
    versions.append(registry.topics_version)

    assert versions == sorted(set(versions))
    assert seen_by_listener == versions[1:]


def test_a_refused_change_does_not_raise_the_version(plane: Plane) -> None:
    before = plane.data.registry.topics_version
    plane.catalog.fail_next = OSError(28, "No space left on device")
    assert plane.create("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.data.registry.topics_version == before


def test_all_names_are_those_of_this_moment(plane: Plane) -> None:
    plane.given("b")
    plane.given("a")
    names = plane.data.registry.topic_names()
    delete(plane, "b")

    assert set(names) == {OFFSETS_TOPIC, "a", "b"}
    assert set(plane.data.registry.topic_names()) == {OFFSETS_TOPIC, "a"}


def test_each_partition_has_the_rack_of_this_node_if_it_has_one(plane: Plane) -> None:
    name = plane.given("a", 3)
    assert plane.data.registry.partition_racks(name) == ((), (), ())
    plane.restart(TopicSettings(broker_rack="east-1"))
    assert plane.data.registry.partition_racks(name) == (("east-1",),) * 3


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
    plane.store.fail_deletions = True
    delete(plane, "a")
    plane.store.fail_deletions = False
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
    # The partition between them is not made: its records may be elsewhere.
    assert TopicPartition("found", 1) not in plane.store.logs
    assert plane.fetch("found", partition=1).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.produce("found", partition=1).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.events_of(PartitionsFoundMissing) == [
        PartitionsFoundMissing(TopicName("found"), (1,))
    ]
    assert plane.events_of(TopicRecovered) == [TopicRecovered(TopicName("found"), topic_id, 3)]
    plane.restart()
    assert plane.events_of(TopicRecovered) == []
    assert TopicPartition("found", 1) not in plane.store.logs

    # Until it is put here, too.
    log = MemoryLog(TopicPartition("found", 1), topic_id)
    log.append(batch(b"kept", b"too", producer_id=900, producer_epoch=0, sequence=0), 0)
    plane.store.logs[log.topic_partition] = log
    plane.restart()
    assert plane.fetch("found", partition=1).high_watermark == 2
    assert plane.run(plane.data.registry.reserve_producer_ids(1)) == 901
    assert plane.events_of(PartitionsFoundMissing) == []


def test_a_repair_recreates_missing_partitions(plane: Plane) -> None:
    plane.store.logs[TopicPartition("found", 2)] = MemoryLog(
        TopicPartition("found", 2), random_topic_id()
    )
    plane.repair = True
    plane.restart()  # only now they are found to be missing
    assert plane.fetch("found", partition=1).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    plane.restart()
    assert plane.events_of(PartitionsRecreated) == [PartitionsRecreated(TopicName("found"), (0, 1))]
    assert plane.data.registry.was_repaired
    plane.repair = False
    plane.restart()
    assert plane.produce("found", partition=1).error_code is ErrorCode.NONE
    assert plane.events_of(PartitionsFoundMissing) == []


def test_without_a_catalog_the_checkpoints_show_lost_partitions(plane: Plane) -> None:
    plane.given("a", 4)
    plane.store.unexpected = [TopicPartition("a", 3), TopicPartition("other", 1)]
    for removed in (1, 3):
        del plane.store.logs[TopicPartition("a", removed)]
    plane.catalog.content = None
    plane.restart()
    assert plane.data.registry.partition_count(TopicName("a")) == 4
    assert plane.events_of(PartitionsFoundMissing) == [
        PartitionsFoundMissing(TopicName("a"), (1, 3))
    ]
    assert plane.data.registry.by_name(TopicName("other")) is None


def test_producer_ids_in_a_moved_log_are_not_assigned_again(plane: Plane) -> None:
    log = MemoryLog(TopicPartition("moved", 0), random_topic_id())
    log.last_producer_id = 4_711
    plane.store.logs[log.topic_partition] = log

    plane.restart()
    first = plane.run(plane.data.registry.reserve_producer_ids(1_000))
    assert first == 4_712
    plane.restart()
    assert plane.run(plane.data.registry.reserve_producer_ids(1_000)) == 5_712


def test_a_catalog_that_cannot_be_read_stops_the_start(plane: Plane) -> None:
    for content in (b"{", b"{}", b"\xff", b"[]", b'{"format": 1, "topics": [{}]}', b"[" * 99_999):
        plane.catalog.content = content
        with pytest.raises(Corrupt, match="topic catalog"):
            plane.restart()


def test_a_folder_with_another_topic_id_is_not_served_and_nothing_in_its_place(
    plane: Plane,
) -> None:
    plane.given("a", 2)
    plane.given_records("a", 1, partition=1)
    plane.log("a").topic_id = other = random_topic_id()
    plane.restart()
    assert plane.produce("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.fetch("a", partition=1).high_watermark == 1
    (event,) = plane.events_of(PartitionFailed)
    assert event.topic_partition == TopicPartition("a", 0)
    assert str(other) in event.reason
    assert "--repair" in event.reason

    # With a repair it is set aside, and the partition starts empty.
    plane.repair = True
    plane.restart()
    assert plane.store.strays == [TopicPartition("a", 0)]
    assert plane.events_of(StrayFolderRenamed) == [StrayFolderRenamed("a-0.x-stray")]
    assert plane.produce("a").error_code is ErrorCode.NONE


def test_a_topic_that_is_deleted_takes_no_other_topics_folder_along(plane: Plane) -> None:
    plane.given("a", 3)
    plane.log("a", 1).topic_id = random_topic_id()
    damaged = TopicPartition("a", 2)
    del plane.store.logs[damaged]
    plane.store.damaged[damaged] = ZERO_TOPIC_ID
    plane.restart()
    assert delete(plane, "a") is ErrorCode.NONE
    assert plane.store.strays == [TopicPartition("a", 1)]
    assert not plane.store.logs
    assert not plane.store.damaged
    assert plane.create("a", 3).error_code is ErrorCode.NONE


def test_a_stray_folder_beyond_a_topics_partitions_is_set_aside_before_they_are_wanted(
    plane: Plane,
) -> None:
    plane.given("a")
    stray = TopicPartition("a", 2)
    plane.store.logs[stray] = MemoryLog(stray, random_topic_id())
    plane.store.logs[stray].append(plane.batch(b"somebody's"), 0)
    plane.restart()
    assert plane.store.strays == [stray]
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    plane.run(plane.data.registry.add_partitions(topic, 4))
    plane.restart()
    assert plane.data.registry.partition_count(TopicName("a")) == 4
    assert plane.fetch("a", partition=2).high_watermark == 0


def test_more_partitions_of_a_topic_than_the_catalog_says_are_kept_if_they_hold_records(
    plane: Plane,
) -> None:
    """An older copy of the catalog was brought back; or they were wanted, and not made."""
    plane.given("a")
    before = plane.catalog.content
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    plane.run(plane.data.registry.add_partitions(topic, 5))
    plane.given_records("a", 1, partition=2)
    plane.catalog.content = before
    plane.restart()
    assert plane.data.registry.partition_count(TopicName("a")) == 3
    assert plane.fetch("a", partition=2).high_watermark == 1
    assert sorted(plane.store.logs) == [TopicPartition("a", 0), TopicPartition("a", 2)]


def test_a_copy_of_a_topics_folder_under_another_name_is_set_aside(plane: Plane) -> None:
    plane.given("orders", 2)
    backup = TopicPartition("backup", 7)
    plane.store.logs[backup] = MemoryLog(backup, plane.topic_id("orders"))
    plane.restart()
    assert plane.store.strays == [backup]
    assert plane.data.registry.by_name(TopicName("backup")) is None
    # Without a catalog the one with more folders is taken for the topic.
    plane.store.logs[backup] = MemoryLog(backup, plane.topic_id("orders"))
    plane.catalog.content = None
    plane.restart()
    assert plane.data.registry.names() == [OFFSETS_TOPIC, "orders"]


@pytest.mark.parametrize("content", [None, b"{"], ids=["lost", "damaged"])
def test_without_a_catalog_the_folders_say_what_there_was(
    plane: Plane, content: bytes | None
) -> None:
    plane.given("a", 3, retention_ms="5000")
    ids = {name: plane.topic_id(name) for name in ("a", OFFSETS_TOPIC)}
    records = batch(b"v", producer_id=4_711, producer_epoch=0, sequence=0)
    assert plane.produce("a", records, partition=1).error_code is ErrorCode.NONE
    for index in range(7):
        key = TopicPartition(OFFSETS_TOPIC, index)
        plane.store.logs[key] = MemoryLog(key, ids[OFFSETS_TOPIC])
    damaged = TopicPartition("a", 2)
    del plane.store.logs[damaged]
    plane.store.damaged[damaged] = ids["a"]
    plane.catalog.content, plane.repair = content, content is not None
    plane.producer_snapshot.content = None
    plane.restart()

    assert {name: plane.topic_id(name) for name in ids} == ids
    registry = plane.data.registry
    assert registry.partition_count(TopicName("a")) == 3
    assert registry.partition_count(OFFSETS_TOPIC) == 7
    assert plane.fetch("a", partition=1).high_watermark == 1
    assert plane.fetch("a", partition=2).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    # Nobody is given an id that somebody has written with, or may yet write with.
    assert plane.run(registry.reserve_producer_ids(1)) == 4_712 + LOST_CATALOG_SKIP
    if content is not None:
        assert plane.catalog.kept == [content]
        (event,) = plane.events_of(CatalogRebuilt)
        assert set(event.topics) == {"a", OFFSETS_TOPIC}
    plane.repair = False
    plane.restart()
    assert {name: plane.topic_id(name) for name in ids} == ids


def test_producer_ids_in_the_snapshot_alone_are_not_assigned_again(plane: Plane) -> None:
    plane.given("a")
    records = batch(b"v", producer_id=4_711, producer_epoch=0, sequence=0)
    assert plane.produce("a", records).error_code is ErrorCode.NONE
    plane.stop()
    plane.log("a").stored.clear()  # retention
    plane.catalog.content = None
    plane.restart()
    assert plane.run(plane.data.registry.reserve_producer_ids(1)) > 4_711


def test_a_catalog_of_a_newer_version_says_so_and_no_repair_touches_it(plane: Plane) -> None:
    plane.catalog.content = b'{"format": 2, "other": []}'
    for plane.repair in (False, True):
        with pytest.raises(NewerFormat, match=r"format 2.* knows 1") as refused:
            plane.restart()
        assert "newer" in repair_hint(refused.value)
        assert "--repair" not in repair_hint(refused.value)
    assert plane.catalog.content == b'{"format": 2, "other": []}'


def test_a_damaged_catalog_is_refused_with_what_helps(plane: Plane) -> None:
    plane.catalog.content = b"{"
    with pytest.raises(Corrupt) as refused:
        plane.restart()
    assert "--repair" in repair_hint(refused.value)
    assert "lose their configs" in repair_hint(refused.value)
    assert "cuts" not in repair_hint(refused.value)


FIELDS = {
    "name": ("", "../up", 7, None, "a" * 250),
    "id": ("x", 7, None),
    "partitions": (0, -1, 1 << 40, "3", None, True, 1.5),
    "configs": ([], {"retention.ms": 7}, {"retention.ms": "x"}, None),
    "missing": ([7], [-1], ["0"], 5),
}


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_a_topic_that_makes_no_sense_gets_past_the_start(
    plane: Plane, field: str
) -> None:
    plane.given("a", 2, retention_ms="5000")
    plane.given_records("a", 1)
    assert plane.catalog.content is not None
    sound = json.loads(plane.catalog.content)
    for value in FIELDS[field]:
        document = copy.deepcopy(sound)
        document["topics"][-1][field] = value
        plane.catalog.content = json.dumps(document).encode()
        plane.repair = False
        with pytest.raises(Corrupt, match="topic catalog"):
            plane.restart()
        plane.repair = True
        plane.restart()
        assert plane.fetch("a").high_watermark == 1
        assert plane.data.registry.partition_count(TopicName("a")) == 2


def test_partitions_that_are_not_served_have_no_leader(plane: Plane) -> None:
    plane.given("a", 2)
    plane.log("a").topic_id = random_topic_id()
    plane.restart()
    request = MetadataRequest([MetadataRequestTopic(name=TopicName("a"))])
    (topic,) = plane.ask(request, 12, MetadataResponse).topics
    assert topic.error_code is ErrorCode.NONE
    bad, good = topic.partitions
    assert bad.error_code is ErrorCode.LEADER_NOT_AVAILABLE
    assert (bad.leader_id, list(bad.isr_nodes), list(bad.offline_replicas)) == (-1, [], [1])
    assert (good.error_code, good.leader_id) == (ErrorCode.NONE, 1)


def test_a_damaged_partition_is_not_served_and_all_others_are(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 1, partition=1)
    damaged = TopicPartition("a", 0)
    del plane.store.logs[damaged]
    plane.store.damaged[damaged] = ZERO_TOPIC_ID
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
        plane.run(plane.data.registry.add_partitions(topic, 4))
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


def test_a_topic_id_never_begins_with_a_dash() -> None:
    # In base64 an id that begins with these six bits begins with a dash.
    assert all(random_topic_id().bytes[0] >> 2 != 0b111110 for _ in range(1_000))


def delete(plane: Plane, name: str) -> ErrorCode:
    request = DeleteTopicsRequest((DeleteTopicState(TopicName(name)),))
    return plane.ask(request, 6, DeleteTopicsResponse).responses[0].error_code


def test_a_deleted_topic_is_remembered_until_its_offsets_are_forgotten(plane: Plane) -> None:
    plane.given("a")
    plane.given("b")
    removed = [plane.topic_id(name) for name in ("a", "b")]
    delete(plane, "a")
    plane.given("a")  # a namesake changes nothing about it
    delete(plane, "b")
    remembered = [(TopicName("a"), removed[0]), (TopicName("b"), removed[1])]
    assert plane.data.registry.forgetting == remembered
    plane.restart()
    assert plane.data.registry.forgetting == remembered

    plane.data.registry.offsets_forgotten(removed[0])
    plane.given("c")  # whatever saves the catalog
    plane.restart()
    assert plane.data.registry.forgetting == remembered[1:]


def test_a_catalog_that_says_something_else_than_was_saved_is_damaged(plane: Plane) -> None:
    plane.given("a", 2)
    content = plane.catalog.content
    assert content is not None
    plane.catalog.content = content.replace(b'"partitions": 50', b'"partitions": 54')
    with pytest.raises(Corrupt, match="crc32 does not fit"):
        plane.restart()
    # An editor may leave the checksum out, and may format it differently.
    document = json.loads(content)
    del document["crc32"]
    plane.catalog.content = json.dumps(document).encode()
    plane.restart()
    assert plane.data.registry.partition_count(TopicName("a")) == 2


def test_a_catalog_from_before_names_no_topic_that_is_to_be_forgotten(plane: Plane) -> None:
    plane.given("a")
    document = json.loads(plane.catalog.content)
    del document["forgetting"], document["crc32"]
    plane.catalog.content = json.dumps(document).encode()
    plane.restart()
    assert plane.data.registry.forgetting == []
    assert plane.data.registry.by_name(TopicName("a")) is not None
