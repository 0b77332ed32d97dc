"""Slow consumers: seven ways to be slow, and what the group does in each; as Kafka does."""

import pytest

from coordinator.classic.group import ClassicGroup
from protocol.names import ErrorCode, GroupState, MemberId
from tests.world import REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, World, kafka_settings

TICK_MS = SESSION_TIMEOUT_MS // 2


@pytest.fixture
def group(world: World) -> ClassicGroup:
    return world.given_stable_group(members=3)


@pytest.fixture
def slow(group: ClassicGroup) -> MemberId:
    return next(m for m in group.members if m != group.leader_id)


def others_beat(world: World, group: ClassicGroup, slow: MemberId) -> set[ErrorCode]:
    return {world.heartbeat(group, m) for m in list(group.members) if m != slow}


def test_a_silent_past_its_session_it_is_removed_and_the_others_learn_it(
    world: World, group: ClassicGroup, slow: MemberId
) -> None:
    world.advance(TICK_MS)
    others_beat(world, group, slow)
    world.advance(TICK_MS)
    assert slow not in group.members
    assert others_beat(world, group, slow) == {ErrorCode.REBALANCE_IN_PROGRESS}
    assert world.heartbeat(group, slow) is ErrorCode.UNKNOWN_MEMBER_ID


def test_b_slow_but_heard_from_before_any_other_nothing_happens_if_that_is_forgiven() -> None:
    world = World(kafka_settings(forgive_slow_member=True))
    group = world.given_stable_group(members=3)
    slow = next(m for m in group.members if m != group.leader_id)
    world.advance(TICK_MS)
    others_beat(world, group, slow)
    world.advance(TICK_MS)
    assert world.heartbeat(group, slow) is ErrorCode.NONE
    assert others_beat(world, group, slow) == {ErrorCode.NONE}
    assert group.state is GroupState.STABLE
    assert group.generation_id == 1


def test_c_heard_from_in_the_rebalance_it_rejoins_in_time_and_is_in_this_generation(
    world: World, group: ClassicGroup, slow: MemberId
) -> None:
    leader = group.leader_id
    third = next(m for m in group.members if m not in (leader, slow))
    first = world.join("g", leader)
    second = world.join("g", third)
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert world.heartbeat(group, slow) is ErrorCode.REBALANCE_IN_PROGRESS
    last = world.join("g", slow)
    assert [a.joined.generation_id for a in (first, second, last)] == [2, 2, 2]
    assert {m.member_id for m in first.joined.members} == {leader, third, slow}


def test_d_rejoining_after_the_answers_went_out_it_starts_the_next_round(world: World) -> None:
    group = world.given_stable_group(members=3, session_timeout_ms=REBALANCE_TIMEOUT_MS * 2)
    leader = group.leader_id
    slow, third = (m for m in group.members if m != leader)
    joined = [world.join("g", leader), world.join("g", third)]
    world.advance(REBALANCE_TIMEOUT_MS)
    assert [a.joined.generation_id for a in joined] == [2, 2]
    assert world.join("g", slow).error is ErrorCode.UNKNOWN_MEMBER_ID

    # This round completes if the leader is quick, and the next one starts.
    synced = world.sync_all("g", [a.joined for a in joined])
    assert all(a.error is ErrorCode.NONE for a in synced)
    back = world.join("g", version=3)
    assert back.waits
    assert group.state is GroupState.PREPARING_REBALANCE
    assert world.heartbeat(group, leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_e_pausing_before_its_join_it_is_dropped_from_the_generation(
    world: World, group: ClassicGroup, slow: MemberId
) -> None:
    joined = [world.join("g", m) for m in group.members if m != slow]
    world.advance(SESSION_TIMEOUT_MS)
    assert [a.joined.generation_id for a in joined] == [2, 2]
    assert slow not in group.members


def test_f_pausing_after_its_join_it_is_counted_and_expires_later(
    world: World, group: ClassicGroup, slow: MemberId
) -> None:
    asked = [world.join("g", m) for m in list(group.members)]
    assert slow in group.members
    answers = [a.joined for a in asked if a.joined.member_id != slow]
    world.sync_all("g", answers)
    assert group.state is GroupState.STABLE
    world.advance(TICK_MS)
    others_beat(world, group, slow)
    world.advance(TICK_MS)
    assert slow not in group.members
    assert group.state is GroupState.PREPARING_REBALANCE


def test_g_after_its_own_time_out_it_comes_again_with_its_id(
    world: World, group: ClassicGroup, slow: MemberId
) -> None:
    # Slow joins, gives up on its connection, finds the coordinator again and sends its join again.
    first = world.join("g", slow, protocols=(("range", b"new"),))
    world.coordinator.disconnected(first.token, world.now)
    again = world.join("g", slow, protocols=(("range", b"new"),))
    assert group.awaiting_join_count == 1
    others = [world.join("g", m) for m in group.members if m != slow]
    assert again.joined.generation_id == 2
    assert {a.joined.generation_id for a in others} == {2}
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS, "an answer that nobody reads any more"
