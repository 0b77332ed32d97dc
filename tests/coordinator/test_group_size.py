"""Group size (group.max.size): which members are accepted, and which are removed above it."""

from coordinator.classic.events import MembersRemoved, RemovalCause
from protocol.names import ErrorCode, GroupState
from tests.world import World, kafka_settings


def test_a_stable_group_that_is_full_takes_no_new_member() -> None:
    world = World(kafka_settings(group_max_size=2))
    world.given_stable_group(members=2)
    for version in (3, 9):
        asked = world.join("g", version=version)
        assert asked.error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert asked.joined.member_id == ""
    assert world.group().state is GroupState.STABLE


def test_a_full_group_takes_its_own_members_again() -> None:
    world = World(kafka_settings(group_max_size=2))
    group = world.given_stable_group(members=2)
    assert world.join("g", group.leader_id).waits


def test_a_full_group_is_refused_before_the_protocol_is_checked() -> None:
    world = World(kafka_settings(group_max_size=1))
    world.given_stable_group(members=1)
    asked = world.join("g", protocol_type="connect")
    assert asked.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_empty_group_is_never_full() -> None:
    world = World(kafka_settings(group_max_size=1))
    first = world.join("g")
    second = world.join("g")
    assert first.error is second.error is ErrorCode.MEMBER_ID_REQUIRED


def test_an_id_that_was_handed_out_is_refused_once_the_places_are_taken() -> None:
    world = World(kafka_settings(group_max_size=1))
    first, second = (world.join("g").joined.member_id for _ in range(2))
    taken = world.join("g", first)
    refused = world.join("g", second)
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.joined.member_id == ""
    assert second not in world.group().pending_member_ids
    world.advance(3_000)
    assert taken.joined.generation_id == 1


def test_while_a_rebalance_is_prepared_the_parked_joins_are_counted() -> None:
    world = World(kafka_settings(group_max_size=2))
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    assert world.join("g", leader).waits
    newcomer = world.join("g", version=3)
    assert newcomer.waits

    # The follower joins too late: it is not parked, and two others are.
    late = world.join("g", follower)
    assert late.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert newcomer.joined.generation_id == 2
    (removed,) = world.events_of(MembersRemoved)
    assert removed.cause is RemovalCause.GROUP_FULL
    assert len(group.members) == 2


def test_a_parked_member_may_send_its_join_again_into_a_full_group() -> None:
    world = World(kafka_settings(group_max_size=2))
    group = world.given_stable_group(members=2)
    world.join("g", group.leader_id)
    world.join("g", version=3)
    again = world.join("g", group.leader_id)
    assert again.waits


def test_a_group_that_is_loaded_over_its_limit_rebalances_and_sheds_the_last() -> None:
    world = World(kafka_settings())
    world.given_stable_group(members=3)
    world.settings = kafka_settings(group_max_size=2)
    world.crash()
    group = world.group()
    assert group.state is GroupState.PREPARING_REBALANCE

    first, second, third = group.members
    asked = [world.join("g", first), world.join("g", second)]
    assert world.heartbeat(group, third) is ErrorCode.REBALANCE_IN_PROGRESS
    shed = world.join("g", third)
    assert shed.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [a.joined.generation_id for a in asked] == [2, 2]
    assert set(group.members) == {first, second}
