"""Regular expressions that members subscribe with: when they are resolved, and what follows."""

import pytest

from coordinator.consumer import events
from coordinator.consumer.events import EpochCause
from coordinator.records import record_type
from protocol.names import ErrorCode, TopicName
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.world import START, World


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(orders=2, orchids=1, payments=1)
    return world


def resolved(world: World) -> list[events.RegularExpressionResolved]:
    return world.events_of(events.RegularExpressionResolved)


def test_a_first_expression_is_resolved_behind_the_answer(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    answer = a.join()

    assert answer.member_epoch == 1  # the group epoch rises when the topics are known
    assert a.owned == {}
    [found] = resolved(world)
    assert found.topics == {"orders", "orchids"}
    group = world.consumer_group()
    assert (group.epoch, group.assignment_epoch) == (2, 1)
    assert a.beat().member_epoch == 2
    assert a.owned == {"orders": {0, 1}, "orchids": {0}}
    [bumped] = world.events_of(events.GroupEpochBumped)
    assert bumped.causes == (EpochCause.REGULAR_EXPRESSION_CHANGED,)


def test_the_records_of_a_resolution_are_kafkas(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    a.join()
    a.beat()
    kinds = [[record_type(record.key) for record in batch] for batch in world.log.batches]
    assert kinds == [[5, 8], [16, 3], [7, 6, 8]]


def test_one_that_matches_nothing_does_not_bump_the_epoch(world: World) -> None:
    a = ConsumerClient(world, "a", regex="nothing")
    a.join()
    a.beat()
    assert len(resolved(world)) == 1
    assert not world.events_of(events.GroupEpochBumped)
    assert world.consumer_group().epoch == 1


def test_an_invalid_expression_is_refused(world: World) -> None:
    answer = world.heartbeat_consumer("g", "a", regex="(").beaten
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    text = "SubscribedTopicRegex `(` is not a valid regular expression: missing closing )."
    assert answer.error_message == text
    assert not world.has_group()


def test_an_expression_that_is_resolved_already_counts_at_once(world: World) -> None:
    a, b = ConsumerClient(world, "a", regex="or.*"), ConsumerClient(world, "b", regex="or.*")
    a.join()
    until_stable(a)
    epoch = world.consumer_group().epoch
    b.join()
    assert world.consumer_group().epoch == epoch + 1
    assert len(resolved(world)) == 1
    until_stable(a, b)
    assert partitions_of(a, b, topic="orders") == [0, 1]
    assert partitions_of(a, b, topic="orchids") == [0]


def test_names_and_an_expression_add_up(world: World) -> None:
    a = ConsumerClient(world, "a", topics=("payments",), regex="orc.*")
    a.join()
    until_stable(a)
    assert a.owned == {"payments": {0}, "orchids": {0}}


def test_a_new_topic_is_found_with_the_next_heartbeat_after_ten_seconds(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    a.join()
    a.beat()
    world.given_topics(orders=2, orchids=1, payments=1, orators=1)
    world.coordinator.partitions_changed({TopicName("orators")}, world.now)
    a.beat()
    world.advance(10_000)
    a.beat()
    assert len(resolved(world)) == 1
    world.advance(1)
    a.beat()
    assert len(resolved(world)) == 2
    until_stable(a)
    assert set(a.owned) == {"orders", "orchids", "orators"}


def test_a_topic_that_grows_or_goes_is_not_a_new_one(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    a.join()
    until_stable(a)
    world.given_topics(orders=3)
    world.coordinator.partitions_changed({TopicName("orders"), TopicName("orchids")}, world.now)
    epoch = a.epoch
    for _ in range(10):
        world.advance(5_000)
        a.beat()
    assert len(resolved(world)) == 1
    assert a.owned == {"orders": {0, 1, 2}}
    assert a.epoch == epoch + 1
    world.given_topics(orders=3, orchids=1)
    a.beat()
    assert len(resolved(world)) == 2


def test_without_a_change_they_are_resolved_again_after_the_refresh_interval(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    a.join()
    until_stable(a)
    epoch = a.epoch
    while world.now.mono_ms < START.mono_ms + 600_000:
        world.advance(5_000)
        a.beat()
    assert len(resolved(world)) == 1
    world.advance(5_000)
    a.beat()
    assert len(resolved(world)) == 2
    assert a.epoch == epoch


def test_an_expression_without_members_is_removed(world: World) -> None:
    a, b = (
        ConsumerClient(world, "a", regex="or.*"),
        ConsumerClient(world, "b", topics=("payments",)),
    )
    a.join()
    b.join()
    until_stable(a, b)
    a.leave()
    [removed] = world.events_of(events.RegularExpressionRemoved)
    assert removed.pattern == "or.*"
    assert not world.consumer_group().regexes
    kinds = [record_type(record.key) for record in world.log.batches[-1]]
    assert kinds == [8, 7, 5, 16, 3]


def test_a_member_changes_from_an_expression_to_names(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    a.join()
    until_stable(a)
    a.change(topics=("payments",), regex="")
    until_stable(a)
    assert a.owned == {"payments": {0}}
    assert not world.consumer_group().regexes
    assert not world.consumer_group().subscribed_regexes


def test_a_second_expression_soon_after_waits_ten_seconds(world: World) -> None:
    a, b = ConsumerClient(world, "a", regex="or.*"), ConsumerClient(world, "b", regex="pay.*")
    a.join()
    b.join()
    b.beat()
    assert len(resolved(world)) == 1
    world.advance(10_001)
    b.beat()
    assert len(resolved(world)) == 3  # both, together
    until_stable(a, b)
    assert set(b.owned) == {"payments"}


def test_after_a_restart_they_are_resolved_with_the_first_heartbeat(world: World) -> None:
    a = ConsumerClient(world, "a", regex="or.*")
    a.join()
    until_stable(a)
    world.given_topics(orders=2, orchids=1, orators=3)
    world.crash()
    until_stable(a)
    assert a.owned == {"orders": {0, 1}, "orchids": {0}, "orators": {0, 1, 2}}


def test_the_group_is_subscribed_to_what_an_expression_matches(world: World) -> None:
    ConsumerClient(world, "a", regex="or.*").join()
    group = world.consumer_group()
    assert group.is_subscribed_to(TopicName("orders"))
    assert not group.is_subscribed_to(TopicName("payments"))
