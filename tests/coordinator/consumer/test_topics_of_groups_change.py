"""Topic changes: topics are created, grow and are deleted, and the target assignment follows."""

import pytest

from coordinator.consumer import events
from coordinator.consumer.events import EpochCause
from protocol.names import TopicName
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(t=2)
    return world


def change(world: World, **partitions: int) -> None:
    before = world.topics.counts
    world.given_topics(**partitions)
    names = before.keys() ^ world.topics.counts.keys()
    names |= {n for n, count in world.topics.counts.items() if before.get(n) != count}
    world.coordinator.partitions_changed(names, world.now)
    world.check()


def test_a_topic_grows(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    epoch = a.epoch
    change(world, t=5)
    until_stable(a, b)

    assert partitions_of(a, b) == [0, 1, 2, 3, 4]
    assert a.epoch == b.epoch == epoch + 1
    bumped = world.events_of(events.GroupEpochBumped)[-1]
    assert (bumped.causes, bumped.changed_topics) == ((EpochCause.TOPICS_CHANGED,), ("t",))
    assert bumped.trigger_ids == ("a",)


def test_a_topic_is_created(world: World) -> None:
    a = ConsumerClient(world, "a", topics=("t", "u"))
    a.join()
    until_stable(a)
    change(world, t=2, u=1)
    until_stable(a)
    assert a.owned == {"t": {0, 1}, "u": {0}}


def test_a_topic_is_deleted(world: World) -> None:
    world.given_topics(t=2, u=1)
    a = ConsumerClient(world, "a", topics=("t", "u"))
    a.join()
    until_stable(a)
    change(world, t=2)
    until_stable(a)
    assert a.owned == {"t": {0, 1}}


def test_the_epoch_rises_with_a_heartbeat_and_not_before(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    until_stable(a)
    epoch = world.consumer_group().epoch
    change(world, t=3)
    change(world, t=4)
    assert world.consumer_group().epoch == epoch
    a.beat()
    assert world.consumer_group().epoch == epoch + 1


def test_other_topics_do_not_matter(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    until_stable(a)
    stored = len(world.log.batches)
    change(world, t=2, u=7)
    until_stable(a)
    assert len(world.log.batches) == stored
    assert not world.events_of(events.MetadataRefreshRequested)


def test_a_topic_that_is_as_before_does_not_bump_the_epoch(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    until_stable(a)
    epoch = a.epoch
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    until_stable(a)
    assert a.epoch == epoch
    assert world.events_of(events.MetadataRefreshed)
    assert not world.consumer_group().is_refresh_due


def test_a_change_during_a_restart_is_found(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    until_stable(a)
    world.given_topics(t=3)
    world.crash()
    until_stable(a)
    assert partitions_of(a) == [0, 1, 2]


def test_a_join_and_a_change_of_topics_are_one_bump(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    until_stable(a)
    change(world, t=3)
    b.join()
    bumped = world.events_of(events.GroupEpochBumped)[-1]
    assert bumped.causes == (EpochCause.MEMBER_JOINED, EpochCause.TOPICS_CHANGED)
    until_stable(a, b)
    assert partitions_of(a, b) == [0, 1, 2]
