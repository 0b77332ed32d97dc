"""Members of the consumer group protocol join: what they are answered, and what is stored."""

import pytest

from coordinator.consumer import events
from coordinator.consumer.events import EpochCause
from coordinator.events import GroupCreated
from coordinator.group import GroupType
from coordinator.records import record_type
from protocol.names import ErrorCode, GroupState
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.world import World, kafka_settings


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(t=4)
    return world


def batches(world: World) -> list[list[int]]:
    return [[record_type(record.key) for record in batch] for batch in world.log.batches]


def test_the_first_member_gets_everything_at_once(world: World) -> None:
    answer = ConsumerClient(world, "a").join()

    assert answer.error_code is ErrorCode.NONE
    assert (answer.member_id, answer.member_epoch) == ("a", 2)  # the first epoch is 2
    assert answer.heartbeat_interval_ms == 5_000
    assert answer.assignment is not None
    [assigned] = answer.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (world.topics.id_of("t"), [0, 1, 2, 3])
    group = world.consumer_group()
    assert group.state is GroupState.STABLE
    assert (group.epoch, group.assignment_epoch) == (2, 2)


def test_a_join_is_one_batch_in_kafkas_order(world: World) -> None:
    ConsumerClient(world, "a").join()

    assert batches(world) == [[5, 3, 7, 6, 8]]


def test_a_join_creates_the_group(world: World) -> None:
    ConsumerClient(world, "a").join()

    [created] = world.events_of(GroupCreated)
    assert created.group_type is GroupType.CONSUMER
    [bumped] = world.events_of(events.GroupEpochBumped)
    assert (bumped.causes, bumped.trigger_ids) == ((EpochCause.MEMBER_JOINED,), ("a",))


def test_a_second_member_waits_for_the_assignment_interval(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    answer = b.join()

    assert answer.member_epoch == 2  # of the assignment that there is
    assert answer.assignment is not None
    assert not answer.assignment.topic_partitions
    assert world.consumer_group().state is GroupState.ASSIGNING
    world.advance(1_000)
    assert b.beat().member_epoch == 3
    assert world.consumer_group().state is GroupState.RECONCILING


def test_members_share_the_partitions(world: World) -> None:
    clients = [ConsumerClient(world, name) for name in "abc"]
    for client in clients:
        client.join()
    until_stable(*clients)

    assert partitions_of(*clients) == [0, 1, 2, 3]
    assert sorted(len(client.owned["t"]) for client in clients) == [1, 1, 2]
    assert world.consumer_group().state is GroupState.STABLE


def test_a_partition_is_given_away_only_after_its_owner_gave_it_back(world: World) -> None:
    world.settings = kafka_settings(group_consumer_assignment_interval_ms=0)
    world.start(world.logs)
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()

    assert b.owned == {}
    assert a.beat().member_epoch == 2  # is to give back, and stays in its epoch
    assert len(a.owned["t"]) == 2
    assert b.beat().assignment is None  # not yet confirmed
    assert a.beat().member_epoch == 3
    b.beat()
    assert partitions_of(a, b) == [0, 1, 2, 3]


def test_a_member_of_version_zero_gets_an_id(world: World) -> None:
    answer = world.heartbeat_consumer("g", "", 0, version=0).beaten

    assert answer.error_code is ErrorCode.NONE
    assert answer.member_id == "consumer-1"
    assert list(world.consumer_group().members) == ["consumer-1"]


def test_the_answer_to_joining_again_with_epoch_zero_has_the_assignment(world: World) -> None:
    a = ConsumerClient(world, "a")
    a.join()
    stored = len(world.log.batches)
    answer = a.join()

    assert answer.member_epoch == 2
    assert answer.assignment is not None
    assert a.owned == {"t": frozenset({0, 1, 2, 3})}
    assert len(world.log.batches) == stored  # nothing has changed


def test_a_full_group_takes_nobody_else() -> None:
    world = World(kafka_settings(group_consumer_max_size=1))
    a = ConsumerClient(world, "a")
    a.join()
    answer = world.heartbeat_consumer("g", "b").beaten

    assert answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    text = "The consumer group has reached its maximum capacity of 1 members."
    assert answer.error_message == text
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    assert a.join().error_code is ErrorCode.NONE
    assert list(world.consumer_group().members) == ["a"]


def test_no_group_is_created_beyond_the_limit() -> None:
    world = World(kafka_settings(groups_max=1))
    ConsumerClient(world, "a").join()

    assert world.heartbeat_consumer("other", "b").error is ErrorCode.POLICY_VIOLATION
    assert world.heartbeat_consumer("other", "b", 3).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert not world.has_group("other")


def test_a_topic_that_does_not_exist_may_be_subscribed_to(world: World) -> None:
    a = ConsumerClient(world, "a", topics=("later",))
    answer = a.join()

    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
    assert a.owned == {}


def test_a_member_changes_its_subscription(world: World) -> None:
    world.given_topics(t=4, u=2)
    a = ConsumerClient(world, "a")
    a.join()
    world.advance(1_000)
    answer = world.heartbeat_consumer("g", "a", 2, topics=("u",), owned={"t": range(4)}).beaten

    assert answer.member_epoch == 2
    assert answer.assignment is not None
    assert not answer.assignment.topic_partitions  # "t" is to be given back first
    answer = world.heartbeat_consumer("g", "a", 2, owned={}).beaten
    assert answer.member_epoch == 3
    assert answer.assignment is not None
    assert [p.topic_id for p in answer.assignment.topic_partitions] == [world.topics.id_of("u")]
    bumped = world.events_of(events.GroupEpochBumped)[-1]
    assert bumped.causes == (EpochCause.SUBSCRIPTION_CHANGED,)
