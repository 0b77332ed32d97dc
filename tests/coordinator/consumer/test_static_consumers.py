"""Static members of consumer groups: they go for a while, and come back with another id."""

import pytest

from coordinator.consumer import events
from coordinator.records import record_type
from protocol.names import ErrorCode
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(t=4)
    return world


def static(world: World, member_id: str, instance_id: str = "i") -> ConsumerClient:
    return ConsumerClient(world, member_id, instance_id=instance_id)


def test_an_instance_id_in_use_is_refused_even_to_its_own_member(world: World) -> None:
    a = static(world, "a")
    a.join()
    for member_id in ("b", "a"):
        answer = static(world, member_id).join()
        assert answer.error_code is ErrorCode.UNRELEASED_INSTANCE_ID
        assert answer.error_message == (
            f"Static member {member_id} with instance id i cannot join the group because the"
            " instance id is owned by a member."
        )


def test_one_that_goes_for_a_while_keeps_its_partitions(world: World) -> None:
    a, b = static(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    owned, epoch = a.owned, world.consumer_group().epoch
    answer = a.leave(for_a_while=True)

    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", -2)
    assert (answer.heartbeat_interval_ms, answer.assignment) == (0, None)
    assert world.consumer_group().epoch == epoch
    assert b.beat().assignment is None

    back = static(world, "a2")
    answer = back.join()
    assert answer.error_code is ErrorCode.NONE
    assert back.owned == owned
    group = world.consumer_group()
    assert group.epoch == epoch  # no rebalance
    assert sorted(group.members) == ["a2", "b"]
    [replaced] = world.events_of(events.ConsumerStaticMemberReplaced)
    assert (replaced.old_member_id, replaced.member.member_id) == ("a", "a2")


def test_the_records_of_a_return_are_kafkas(world: World) -> None:
    a = static(world, "a")
    a.join()
    a.leave(for_a_while=True)
    stored = len(world.log.batches)
    static(world, "a2").join()

    [batch] = world.log.batches[stored:]
    kinds = [(record_type(record.key), record.value is None) for record in batch]
    tombstones = [(8, True), (7, True), (5, True)]
    # Type 5 again: the client id is another one. Then the epoch.
    assert kinds == [*tombstones, (5, False), (7, False), (8, False), (5, False), (8, False)]


def test_the_same_member_id_may_come_back(world: World) -> None:
    a = static(world, "a")
    a.join()
    a.leave(for_a_while=True)
    assert a.join().error_code is ErrorCode.NONE
    assert partitions_of(a) == [0, 1, 2, 3]


def test_one_that_does_not_come_back_is_removed_when_its_session_ends(world: World) -> None:
    a, b = static(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    a.leave(for_a_while=True)
    for _ in range(9):
        world.advance(5_000)
        b.beat()
    until_stable(b)
    assert partitions_of(b) == [0, 1, 2, 3]
    [removed] = world.events_of(events.ConsumerMemberRemoved)
    assert removed.cause is events.ConsumerRemovalCause.SESSION_EXPIRED
    assert removed.member_epoch == -2


def test_while_it_is_away_its_epoch_is_nobodys(world: World) -> None:
    a = static(world, "a")
    a.join()
    a.leave(for_a_while=True)
    answer = world.heartbeat_consumer("g", "a", 2, instance_id="i").beaten
    assert answer.error_code is ErrorCode.FENCED_MEMBER_EPOCH


def test_another_member_with_the_instance_id_is_fenced(world: World) -> None:
    static(world, "a").join()
    for epoch in (2, -1, -2):
        answer = world.heartbeat_consumer("g", "b", epoch, instance_id="i").beaten
        assert answer.error_code is ErrorCode.FENCED_INSTANCE_ID
        assert answer.error_message == "Static member b with instance id i was fenced by member a."
    fenced = world.events_of(events.ConsumerMemberFenced)
    assert [(event.member_id, event.instance_id) for event in fenced] == [("b", "i")] * 3


def test_an_unknown_instance(world: World) -> None:
    static(world, "a").join()
    for epoch in (2, -1, -2):
        answer = world.heartbeat_consumer("g", "a", epoch, instance_id="j").beaten
        assert answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID
        assert answer.error_message == "Instance id j is unknown."


def test_a_static_member_leaves_for_good(world: World) -> None:
    a = static(world, "a")
    a.join()
    answer = a.leave()
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, -1)
    assert not world.consumer_group().members
    assert not world.consumer_group().static_members


def test_one_that_goes_while_it_gives_back_has_given_back(world: World) -> None:
    a, b = static(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    world.advance(1_000)
    b.beat()
    a.beat()  # is told to give two partitions back
    assert b.beat().assignment is None
    a.leave(for_a_while=True)
    b.beat()
    assert partitions_of(b) == [2, 3]
    world.advance(60_000 - 1_000)  # no rebalance timeout is left
    assert not world.events_of(events.ConsumerMemberRemoved) or all(
        removed.cause is events.ConsumerRemovalCause.SESSION_EXPIRED
        for removed in world.events_of(events.ConsumerMemberRemoved)
    )
