"""The initial rebalance delay: a group that was empty gathers before its first generation."""

import pytest

from coordinator.classic.events import InitialDelayExtended
from protocol.names import ErrorCode, GroupState
from tests.world import World, kafka_settings

DELAY_MS = 3_000


def test_a_lone_member_waits_exactly_one_delay(world: World) -> None:
    asked = world.join("g", version=3)
    world.advance(DELAY_MS - 1)
    assert asked.waits
    world.advance(1)
    assert asked.joined.generation_id == 1
    assert not world.events_of(InitialDelayExtended)


def test_it_never_completes_early_even_if_all_have_joined(world: World) -> None:
    world.join("g", version=3)
    assert world.group().all_members_joined
    world.join("g", next(iter(world.group().members)), version=3)
    world.advance(DELAY_MS - 1)
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_second_member_extends_it_by_one_delay(world: World) -> None:
    first = world.join("g", version=3)
    world.advance(1_000)
    second = world.join("g", version=3)
    world.advance(2 * DELAY_MS - 1_001)
    assert first.waits
    world.advance(1)
    assert first.joined.generation_id == second.joined.generation_id == 1


def test_members_that_keep_coming_extend_it_up_to_the_rebalance_timeout() -> None:
    world = World(kafka_settings())
    first = world.join("g", version=3, rebalance_timeout_ms=10_000)
    # 3 s, then 3 s with 7 s remaining, then 3 s with 4 s remaining, then 1 s with 1 s remaining.
    waited = 0
    while first.waits:
        world.join("g", version=3, rebalance_timeout_ms=10_000)
        world.advance(500)
        waited += 500
    assert waited == 10_000


def test_ids_that_were_handed_out_do_not_extend_it(world: World) -> None:
    first = world.join("g", version=3)
    world.advance(1_000)
    world.join("g", version=9)
    world.advance(DELAY_MS - 1_000)
    assert first.joined.generation_id == 1


def test_a_rebalance_timeout_shorter_than_the_delay_does_not_shorten_it(world: World) -> None:
    asked = world.join("g", version=3, rebalance_timeout_ms=1_000)
    world.join("g", version=3, rebalance_timeout_ms=1_000)
    world.advance(DELAY_MS - 1)
    assert asked.waits
    world.advance(1)
    assert asked.joined.generation_id == 1


def test_without_a_delay_the_first_generation_begins_at_the_next_tick() -> None:
    world = World(kafka_settings(group_initial_rebalance_delay_ms=0))
    asked = world.join("g", version=3)
    assert asked.waits
    world.advance(0)
    assert asked.joined.generation_id == 1


def test_a_group_that_has_become_empty_waits_again(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.leave("g", *group.members)
    asked = world.join("g", version=3)
    world.advance(DELAY_MS - 1)
    assert asked.waits
    world.advance(1)
    assert asked.joined.generation_id == 3


@pytest.mark.parametrize("members", [1, 2])
def test_members_that_leave_during_the_delay_do_not_end_it(world: World, members: int) -> None:
    asked = [world.join("g", version=3) for _ in range(members)]
    world.leave("g", *world.group().members)
    assert all(answer.error is ErrorCode.UNKNOWN_MEMBER_ID for answer in asked)
    assert world.group().state is GroupState.PREPARING_REBALANCE
    world.advance(2 * DELAY_MS)
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 1
