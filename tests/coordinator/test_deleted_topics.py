"""Offsets of a deleted topic: they go, whatever happens meanwhile, and no others do."""

from uuid import UUID

import pytest

from coordinator.group import CommittedOffset
from coordinator.records import add_offset_commits
from protocol.names import ZERO_TOPIC_ID, GroupId, TopicId, TopicName
from storage.api import RecordPair
from tests.memory_log import MemoryLog
from tests.world import World, kafka_settings

T = TopicName("t")
FOREIGN = UUID(int=77)
"""Of a topic that never was here: an import with --keep-topic-ids, or a Kafka's own folders."""


@pytest.fixture
def world() -> World:
    """Two partitions; groups in both have committed."""
    world = World(kafka_settings(offsets_topic_num_partitions=2))
    for group_id in GROUPS:
        world.commit(group_id)
    return world


GROUPS = ("a", "b", "c", "d")


def topic_id(world: World) -> TopicId:
    found = world.topics.topic_id(T)
    assert found is not None
    return found


def kept(world: World) -> set[str]:
    return {g.group_id for g in world.coordinator.groups() if g.offsets.get(T)}


def delete(world: World) -> TopicId:
    """As the daemon does: the topic is gone, and the catalog remembers it."""
    gone = topic_id(world)
    del world.topics.counts[T]
    world.deleted_topics = [(T, gone)]
    world.coordinator.topics_deleted([(T, gone)], world.now)
    return gone


def imported(world: World, group_id: str, with_id: TopicId) -> None:
    """A commit that came in another way than from a client."""
    records: list[RecordPair] = []
    commit = CommittedOffset(7, committed_at_ms=1, topic_id=with_id)
    add_offset_commits(records, GroupId(group_id), T, {0: commit}, 4)
    log = world.logs[world.coordinator.partition_for(GroupId(group_id))]
    log.append(records, 1)
    log.store()


def test_the_catalog_may_forget_a_topic_once_every_partition_has_and_it_is_stored(
    world: World,
) -> None:
    world.storing = False
    gone = delete(world)
    world.advance(10)
    assert kept(world) == set()
    assert world.forgotten == []
    world.store()
    assert world.forgotten == [gone]
    world.advance(10)
    assert world.forgotten == [gone]


def test_a_kill_after_the_deletion_leaves_no_offsets_behind(world: World) -> None:
    gone = delete(world)
    world.crash()
    world.advance(10)
    assert kept(world) == set()
    assert world.forgotten == [gone]


def test_a_kill_before_the_tombstones_are_stored_leaves_none_either(world: World) -> None:
    world.storing = False
    gone = delete(world)
    world.advance(10)
    world.crash()
    assert kept(world) == set(GROUPS)
    world.storing = True
    world.advance(10)
    assert kept(world) == set()
    assert world.forgotten == [gone]


def test_a_topic_that_is_deleted_while_a_partition_loads_is_forgotten_there_too() -> None:
    world = World(kafka_settings(offsets_topic_num_partitions=2))
    for group_id in GROUPS:
        world.commit(group_id)
    log = world.logs[0]
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, log)
    gone = delete(world)
    world.advance(10)
    assert world.forgotten == []
    world.coordinator.load(0, log.records, log.end_position)
    world.coordinator.finish_load(0, world.now)
    world.advance(10)
    while world.coordinator.restore_slice(0, world.now, 1_000):
        pass
    world.advance(10)
    assert kept(world) == set()
    assert world.forgotten == [gone]


def test_a_partition_that_cannot_be_loaded_keeps_the_topic_remembered(world: World) -> None:
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, world.logs[0])
    delete(world)
    world.coordinator.fail_load(0, "unreadable")
    world.advance(10)
    assert world.forgotten == []


def test_after_a_start_only_commits_with_the_id_of_the_deleted_topic_go(world: World) -> None:
    gone = topic_id(world)
    imported(world, "imported", ZERO_TOPIC_ID)
    imported(world, "foreign", FOREIGN)
    imported(world, "ours", gone)
    world.deleted_topics = [(T, gone)]
    world.crash()
    world.advance(10)
    assert kept(world) == {"imported", "foreign"}


def test_what_nobody_deleted_stays_though_no_topic_has_its_id(world: World) -> None:
    imported(world, "imported", ZERO_TOPIC_ID)
    imported(world, "foreign", FOREIGN)
    world.crash()
    world.advance(10)
    assert kept(world) == {*GROUPS, "imported", "foreign"}


@pytest.mark.parametrize("served_meanwhile", [True, False])
def test_commits_without_an_id_go_where_none_can_be_younger_than_the_deletion(
    served_meanwhile: bool,
) -> None:
    world = World(kafka_settings(offsets_value_version=3))  # its records have no topic id
    world.commit("g")
    log = world.log
    world.coordinator.resign(0, world.now)
    if not served_meanwhile:
        world.coordinator.begin_load(0, log)
    delete(world)
    if served_meanwhile:
        again(world, log)
        world.coordinator.resign(0, world.now)
        world.coordinator.begin_load(0, log)
    world.coordinator.load(0, log.records, log.end_position)
    world.coordinator.finish_load(0, world.now)
    world.advance(10)
    assert kept(world) == ({"g"} if served_meanwhile else set())


def again(world: World, log: MemoryLog) -> None:
    """The partition is served, and its group commits for a topic of the same name."""
    world.topics.counts[T] = 1
    world.coordinator.begin_load(0, log)
    world.coordinator.finish_load(0, world.now)
    world.commit("g", offsets={0: 5})
