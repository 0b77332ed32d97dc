"""Upgrade of an unsettled group: after a downgrade, and before the members were assigned."""

import pytest

from coordinator.group import GroupType
from protocol.names import GroupId, GroupState
from tests.classic_client import ClassicClient, numbers
from tests.consumer_client import ConsumerClient
from tests.world import World


def group_type(world: World) -> GroupType:
    group = world.coordinator.group(GroupId("g"))
    assert group is not None
    return group.group_type


def test_a_member_that_has_not_rejoined_since_a_downgrade_keeps_what_it_reads() -> None:
    world = World()
    world.given_topics(t=4)
    classic = ClassicClient(world, "classic")
    while not classic.owned:
        world.advance(1_000)
        classic.step()
    first = ConsumerClient(world, "first")
    first.join()
    world.advance(1_000)
    first.beat()  # the target of the classic member is smaller now, and it has not heard of that
    first.leave()
    assert group_type(world) is GroupType.CLASSIC

    second = ConsumerClient(world, "second")
    second.join()
    assert group_type(world) is GroupType.CONSUMER
    for _ in range(3):
        world.advance(1_000)
        second.beat()
        assert not numbers(second.owned) & numbers(classic.owned)

    for _ in range(4):
        world.advance(1_000)
        classic.step()
        second.beat()
        assert not numbers(second.owned) & numbers(classic.owned)
    assert len(numbers(second.owned) | numbers(classic.owned)) == 4


@pytest.mark.parametrize("has_begun", [False, True], ids=["waiting", "answered"])
def test_what_a_join_reports_is_not_given_to_one_that_a_downgrade_assigned_it(
    has_begun: bool,
) -> None:
    world = World()
    world.given_topics(t=4)
    old = ClassicClient(world, "old", cooperative=True)
    while not old.owned:
        world.advance(1_000)
        old.step()
    first = ConsumerClient(world, "first")
    first.join()
    new = ClassicClient(world, "new", cooperative=True)
    world.advance(1_000)
    new.step()
    assert not new.owned
    first.leave()
    assert group_type(world) is GroupType.CLASSIC

    def nothing_is_read_twice() -> None:
        assert not numbers(old.owned) & numbers(new.owned)
        assert not numbers(second.owned) & (numbers(old.owned) | numbers(new.owned))

    second = ConsumerClient(world, "second")
    if has_begun:
        new.join()  # it leads, and has not assigned when the group is upgraded
    old.join()  # it reads all of them still, and the downgrade has assigned two to the new member
    assert len(numbers(old.owned)) == 4
    state = GroupState.COMPLETING_REBALANCE if has_begun else GroupState.PREPARING_REBALANCE
    assert world.group().state is state
    second.join()
    assert group_type(world) is GroupType.CONSUMER
    for steps in (4 * [new.step, second.beat], 6 * [old.step, new.step, second.beat]):
        for step in steps:
            world.advance(300)
            step()
            nothing_is_read_twice()
    assert len(numbers(old.owned) | numbers(new.owned) | numbers(second.owned)) == 4


def test_a_static_member_that_was_not_assigned_yet_is_assigned_by_the_upgrade() -> None:
    world = World()
    world.given_topics(t=4)
    classic = ClassicClient(world, "classic", instance_id="i")
    world.advance(1_000)
    asked = classic.join()
    world.advance(3_000)
    assert not asked.waits  # the generation has begun, and the leader has not assigned

    consumer = ConsumerClient(world, "consumer", topics=("t",), instance_id="i")
    consumer.join()
    assert group_type(world) is GroupType.CONSUMER
    consumer.beat()
    assert len(numbers(consumer.owned)) == 4
