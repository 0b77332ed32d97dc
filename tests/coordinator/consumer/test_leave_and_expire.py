"""Members of consumer groups go: they leave, fall silent, or give nothing back."""

import pytest

from coordinator.consumer import events
from coordinator.consumer.events import ConsumerRemovalCause, EpochCause
from coordinator.records import record_type
from protocol.names import ErrorCode, GroupState
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.world import World, kafka_settings


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(t=4)
    return world


def test_a_member_leaves_and_the_other_gets_all(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    answer = a.leave()

    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", -1)
    assert (answer.heartbeat_interval_ms, answer.assignment) == (0, None)
    until_stable(b)
    assert partitions_of(b) == [0, 1, 2, 3]
    [removed] = world.events_of(events.ConsumerMemberRemoved)
    assert removed.cause is ConsumerRemovalCause.LEFT
    assert {len(partitions) for partitions in removed.owned.values()} == {2}
    bumped = world.events_of(events.GroupEpochBumped)
    assert EpochCause.MEMBER_LEFT in {cause for event in bumped for cause in event.causes}


def test_the_records_of_a_leave_are_kafkas(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    a.leave()
    batch = world.log.batches[-1]
    kinds = [(record_type(record.key), record.value is None) for record in batch]
    assert kinds == [(8, True), (7, True), (5, True), (3, False)]
    group = world.consumer_group()
    assert group.state is GroupState.EMPTY
    assert (group.epoch, group.metadata_hash) == (3, 0)


def test_a_silent_member_is_removed_after_its_session_timeout(world: World) -> None:
    ConsumerClient(world, "a").join()
    world.advance(44_999)
    assert world.consumer_group().members
    world.advance(1)
    assert not world.consumer_group().members
    [removed] = world.events_of(events.ConsumerMemberRemoved)
    assert removed.cause is ConsumerRemovalCause.SESSION_EXPIRED
    assert world.heartbeat_consumer("g", "a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_begins_the_session_again(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    for _ in range(5):
        world.advance(44_000)
        assert a.beat().error_code is ErrorCode.NONE
    world.advance(45_000)
    assert not world.consumer_group().members


def test_a_member_that_gives_nothing_back_is_removed(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    world.advance(1_000)
    b.beat()
    a.beat()  # from now on it has 60 seconds
    for _ in range(11):
        world.advance(5_000)
        assert a.beat(reports=False).error_code is ErrorCode.NONE
        b.beat()
    assert b.owned == {}
    world.advance(5_000)
    [removed] = world.events_of(events.ConsumerMemberRemoved)
    assert removed.cause is ConsumerRemovalCause.REBALANCE_TIMED_OUT
    assert removed.owned == {world.topics.id_of("t"): frozenset(range(4))}
    assert a.beat().error_code is ErrorCode.UNKNOWN_MEMBER_ID
    until_stable(a, b)
    assert partitions_of(a, b) == [0, 1, 2, 3]


def test_one_that_gave_back_has_no_rebalance_timeout(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    for _ in range(30):
        world.advance(5_000)
        a.beat()
        b.beat()
    assert not world.events_of(events.ConsumerMemberRemoved)


def test_a_silent_member_is_not_removed_before_the_log_has_room(world: World) -> None:
    ConsumerClient(world, "a").join()
    world.log.full = True
    world.advance(60_000)
    assert world.consumer_group().members
    world.log.full = False
    world.advance(1_000)
    assert not world.consumer_group().members


def test_without_room_in_the_log_only_a_steady_heartbeat_is_served(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    world.log.full = True
    world.advance(40_000)
    assert a.beat().error_code is ErrorCode.NONE
    world.advance(40_000)
    assert a.beat().error_code is ErrorCode.NONE
    refused = world.heartbeat_consumer("g", "b")
    assert refused.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat_consumer("g", "a", -1).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_group_survives_a_crash(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    epochs, owned = (a.epoch, b.epoch), (a.owned, b.owned)
    world.crash()
    until_stable(a, b)
    assert (a.epoch, b.epoch) == epochs
    assert (a.owned, b.owned) == owned


def test_an_answer_waits_for_its_records(world: World) -> None:
    world.storing = False
    asked = world.heartbeat_consumer("g", "a")
    steady = world.heartbeat_consumer("g", "a", 2)
    assert asked.waits
    assert steady.waits  # its epoch is not stored yet
    world.store()
    assert asked.error is ErrorCode.NONE
    assert steady.error is ErrorCode.NONE


def test_a_lost_write_is_not_answered_with_success(world: World) -> None:
    world.storing = False
    asked = world.heartbeat_consumer("g", "a")
    world.coordinator.on_log_failed(0, world.now)
    answer = asked.beaten
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)


def test_a_partition_that_is_not_ours_or_loads() -> None:
    world = World(kafka_settings())
    world.coordinator.resign(0, world.now)
    answer = world.heartbeat_consumer("g", "a").beaten
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert answer.error_message == "This is not the correct coordinator."
    world.coordinator.begin_load(0, world.log)
    answer = world.heartbeat_consumer("g", "a").beaten
    assert answer.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
