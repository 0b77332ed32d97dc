"""Forgiven lapses (rollcall.forgive.slow.member): until another member would learn of it."""

from collections.abc import Callable

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import LapseForgiven, MemberLapsed, MembersRemoved, RebalanceBegun
from coordinator.classic.group import ClassicGroup
from protocol.names import ErrorCode, GroupInstanceId, GroupState, MemberId
from tests.world import SESSION_TIMEOUT_MS, Asked, World, kafka_settings

FORGIVE_MAX_MS = 60_000


@pytest.fixture
def world() -> World:
    return World(kafka_settings(forgive_slow_member=True, forgive_max_ms=FORGIVE_MAX_MS))


def given_a_lapse(world: World, **given: object) -> tuple[ClassicGroup, MemberId, MemberId]:
    """A Stable group whose first follower's session has just run out; the others live."""
    group = world.given_stable_group(**given)  # type: ignore[arg-type]
    live = group.leader_id
    slow = next(m for m in group.members if m != live)
    world.advance(SESSION_TIMEOUT_MS - 1)
    for member_id in group.members:
        if member_id != slow:
            assert world.heartbeat(group, member_id) is ErrorCode.NONE
    world.advance(1)
    assert group.state is GroupState.STABLE
    assert list(group.lapsed_member_ids) == [slow]
    return group, live, slow


def test_a_lapse_is_only_marked_and_shown(world: World) -> None:
    group, _, slow = given_a_lapse(world)
    assert slow in group.members
    (lapsed,) = world.events_of(MemberLapsed)
    assert lapsed.member.member_id == slow
    assert lapsed.forgiven_until_ms == world.now.mono_ms + FORGIVE_MAX_MS
    assert not world.events_of(MembersRemoved)


def beat(world: World, member_id: str) -> Asked:
    return world.beat("g", member_id, 1)


def sync(world: World, member_id: str) -> Asked:
    return world.sync("g", member_id, 1)


def commit(world: World, member_id: str) -> Asked:
    return world.committing("g", member_id, 1)


def join(world: World, member_id: str) -> Asked:
    return world.join("g", member_id)


@pytest.mark.parametrize("ask", [beat, sync, commit, join])
def test_whatever_it_sends_next_takes_it_back_in_its_generation(
    world: World, ask: Callable[[World, str], Asked]
) -> None:
    group, live, slow = given_a_lapse(world)
    world.advance(1_500)
    asked = ask(world, slow)
    if ask is commit:
        assert not asked.waits
    else:
        assert asked.error is ErrorCode.NONE
    assert group.state is GroupState.STABLE
    assert group.generation_id == 1
    assert not group.lapsed_member_ids
    (forgiven,) = world.events_of(LapseForgiven)
    assert forgiven.late_by_ms == 1_500
    assert world.heartbeat(group, live) is ErrorCode.NONE


def test_its_session_starts_afresh_when_it_is_taken_back(world: World) -> None:
    group, live, slow = given_a_lapse(world)
    world.heartbeat(group, slow)
    world.advance(SESSION_TIMEOUT_MS - 2_000)
    world.heartbeat(group, live)
    world.advance(1_999)
    assert not group.lapsed_member_ids
    world.advance(1)
    assert list(group.lapsed_member_ids) == [slow]


@pytest.mark.parametrize("ask", [beat, sync])
def test_the_first_answer_that_informs_another_member_makes_it_a_removal(
    world: World, ask: Callable[[World, str], Asked]
) -> None:
    group, live, slow = given_a_lapse(world)
    assert ask(world, live).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(group.members) == [live]
    assert group.state is GroupState.PREPARING_REBALANCE
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.SESSION_EXPIRED
    assert begun.reason == f"removing member {slow} on heartbeat expiration."
    assert world.beat("g", slow, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_another_members_commit_reveals_nothing_and_removes_no_member(world: World) -> None:
    group, live, slow = given_a_lapse(world)
    assert world.commit("g", live, 1) is ErrorCode.NONE
    assert list(group.lapsed_member_ids) == [slow]


def test_a_beat_that_is_refused_makes_no_removal(world: World) -> None:
    group, live, slow = given_a_lapse(world)
    assert world.beat("g", live, 9).error is ErrorCode.ILLEGAL_GENERATION
    assert world.beat("g", "stranger", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("g", slow, 9).error is ErrorCode.ILLEGAL_GENERATION
    assert list(group.lapsed_member_ids) == [slow]


def test_any_join_of_another_makes_it_a_removal(world: World) -> None:
    group, live, slow = given_a_lapse(world)
    assert world.join("g").error is ErrorCode.MEMBER_ID_REQUIRED
    assert group.state is GroupState.PREPARING_REBALANCE
    assert list(group.members) == [live]
    assert slow not in group.members


def test_it_is_a_removal_after_the_longest_forgiving(world: World) -> None:
    group, live, slow = given_a_lapse(world)
    for _ in range(6):
        world.commit("g", live, 1)  # the other one lives, and asks nothing that would tell it
        world.advance(SESSION_TIMEOUT_MS - 1)
    assert list(group.lapsed_member_ids) == [slow]
    world.commit("g", live, 1)
    world.advance(6)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert slow not in group.members


def test_a_member_without_company_is_removed_at_once_as_in_kafka(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.advance(SESSION_TIMEOUT_MS)
    assert group.state is GroupState.EMPTY
    assert not world.events_of(MemberLapsed)


def test_when_the_last_live_member_falls_silent_too_all_are_removed_at_once(
    world: World,
) -> None:
    group, _, _ = given_a_lapse(world)
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert group.state is GroupState.EMPTY
    assert not group.members


def test_a_member_that_leaves_takes_the_lapsed_with_it(world: World) -> None:
    group, live, slow = given_a_lapse(world, members=3)
    other = next(m for m in group.members if m not in (live, slow))
    world.leave("g", other)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert list(group.members) == [live]


def test_a_lapsed_member_may_leave(world: World) -> None:
    group, live, slow = given_a_lapse(world)
    left = world.leave("g", slow)
    assert left.left.members[0].error_code is ErrorCode.NONE
    assert list(group.members) == [live]


def test_a_lapsed_leader_that_rejoins_is_taken_back_and_starts_its_rebalance(
    world: World,
) -> None:
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    other = next(m for m in group.members if m != leader)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, other)
    world.advance(1)
    assert list(group.lapsed_member_ids) == [leader]
    assert world.join("g", leader).waits
    assert group.state is GroupState.PREPARING_REBALANCE
    assert set(group.members) == {leader, other}


def test_of_two_lapsed_members_the_one_that_beats_is_kept_and_the_other_goes(
    world: World,
) -> None:
    group = world.given_stable_group(members=3)
    live, beating, silent = group.members
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, live)
    world.advance(1)
    assert set(group.lapsed_member_ids) == {beating, silent}
    assert world.beat("g", beating, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(group.members) == {live, beating}


def test_a_static_member_that_restarts_late_is_taken_back_by_its_instance(world: World) -> None:
    group, live, slow = given_a_lapse(world, instances=["a", "b"])
    instance_id = group.members[slow].group_instance_id
    asked = world.join("g", instance_id=instance_id)
    assert asked.joined.generation_id == 1
    assert group.state is GroupState.STABLE
    assert group.static_members[GroupInstanceId("b")] == asked.joined.member_id
    assert world.heartbeat(group, live) is ErrorCode.NONE


@pytest.mark.parametrize("given", ["given_joined", "preparing"])
def test_outside_of_stable_nobody_is_forgiven(world: World, given: str) -> None:
    if given == "given_joined":
        world.given_joined(members=2)
    else:
        group = world.given_stable_group(members=2)
        world.join("g", group.leader_id)
    world.advance(SESSION_TIMEOUT_MS)
    assert not world.events_of(MemberLapsed)


def test_a_restart_forgets_the_lapse_and_gives_a_full_session(world: World) -> None:
    _, _, slow = given_a_lapse(world)
    world.crash()
    assert not world.group().lapsed_member_ids
    assert world.heartbeat(world.group(), slow) is ErrorCode.NONE


def test_switched_off_it_is_exactly_kafka() -> None:
    world = World(kafka_settings(forgive_slow_member=False))
    group = world.given_stable_group(members=2)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, group.leader_id)
    world.advance(1)
    assert group.state is GroupState.PREPARING_REBALANCE
