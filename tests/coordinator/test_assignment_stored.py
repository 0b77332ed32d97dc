"""The leader's assignments on their way to the disk, and what may happen meanwhile."""

from coordinator.events import AssignmentDropped, GroupStabilized
from protocol.names import ErrorCode, GroupState
from tests.world import World


def test_a_join_before_the_leaders_sync_sends_the_waiting_syncs_back(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    newcomer = world.join("g", version=3)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert newcomer.waits

    late = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"x"})
    assert late.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_join_while_the_assignments_are_stored_wins_over_them(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync_all("g", [leader, follower])
    newcomer = world.join("g", version=3)
    assert world.group().state is GroupState.PREPARING_REBALANCE

    world.store()
    assert [one.error for one in asked] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert world.group().state is GroupState.PREPARING_REBALANCE
    assert all(not m.assignment for m in world.group().members.values())
    assert len(world.events_of(AssignmentDropped)) == 1
    assert not world.events_of(GroupStabilized)

    again = [world.join("g", m.member_id) for m in (leader, follower)]
    world.store()
    assert [a.joined.generation_id for a in (*again, newcomer)] == [2, 2, 2]


def test_assignments_stored_too_late_do_not_apply_to_the_next_generation(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    first = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"old"})
    again = world.join("g", leader.member_id, protocols=(("range", b"new"),))
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    assert world.group().generation_id == 2

    world.store()
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert again.joined.generation_id == 2
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    assert world.group().members[leader.member_id].assignment == b""


def test_a_member_that_leaves_while_the_assignments_are_stored_starts_a_rebalance(
    world: World,
) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"x"})
    left = world.leave("g", follower.member_id)
    world.store()
    assert asked.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert left.left.error_code is ErrorCode.NONE
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_heartbeats_and_joins_are_served_while_the_assignments_are_stored(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    world.sync_all("g", [leader, follower])
    beat = world.beat("g", follower.member_id, 1)
    again = world.join("g", follower.member_id)
    assert beat.waits
    world.store()
    assert beat.error is ErrorCode.NONE
    assert again.joined.generation_id == 1


def test_a_second_sync_of_the_leader_before_the_first_is_stored_is_the_one_that_is_answered(
    world: World,
) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    first = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    second = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"b"})
    world.store()
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.error is ErrorCode.NONE
    stored = second.synced.assignment
    world.crash()
    assert world.sync("g", leader.member_id, 1).synced.assignment == stored
