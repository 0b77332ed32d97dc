"""Heartbeat: the answer in each state, the checks in their order, and what a beat moves."""

import pytest

from coordinator.classic.events import MemberFenced
from protocol.names import ApiKey, ErrorCode, GroupState
from tests.world import SESSION_TIMEOUT_MS, World


def test_an_empty_group_id_is_refused(world: World) -> None:
    assert world.beat("", "m", 1).error is ErrorCode.INVALID_GROUP_ID


def test_without_a_group_or_in_an_empty_one_every_member_is_unknown(world: World) -> None:
    assert world.beat("g", "m", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    world.join("g")
    assert world.beat("g", "m", 0).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("given", "state", "error_code"),
    [
        ("given_joined", GroupState.COMPLETING_REBALANCE, ErrorCode.NONE),
        ("given_stable_group", GroupState.STABLE, ErrorCode.NONE),
    ],
)
def test_a_heartbeat_of_a_member_in_its_generation_has_no_error(
    world: World, given: str, state: GroupState, error_code: ErrorCode
) -> None:
    getattr(world, given)(members=1)
    assert world.group().state is state
    assert world.heartbeat(world.group(), world.group().leader_id) is error_code


def test_a_heartbeat_in_preparing_rebalance_answers_rebalance_in_progress(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.join("g", version=3)
    assert world.heartbeat(group, group.leader_id) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("generation_id", [-1, 0, 2])
def test_another_generation_is_refused_even_while_a_rebalance_is_prepared(
    world: World, generation_id: int
) -> None:
    group = world.given_stable_group(members=1)
    assert world.beat("g", group.leader_id, generation_id).error is ErrorCode.ILLEGAL_GENERATION
    world.join("g", version=3)
    assert world.beat("g", group.leader_id, generation_id).error is ErrorCode.ILLEGAL_GENERATION


def test_an_unknown_member_is_refused_before_its_generation_is_checked(world: World) -> None:
    world.given_stable_group(members=1)
    assert world.beat("g", "stranger", 99).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_must_still_hold_its_instance(world: World) -> None:
    group = world.given_stable_group(instances=["a"])
    old = group.leader_id
    world.join("g", instance_id="a")
    assert world.beat("g", old, 1, "a").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.beat("g", old, 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("g", old, 1, "b").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("g", group.leader_id, 1, "a").error is ErrorCode.NONE
    assert world.beat("g", group.leader_id, 1).error is ErrorCode.NONE
    (fenced,) = world.events_of(MemberFenced)
    assert (fenced.member_id, fenced.current_member_id) == (old, group.leader_id)
    assert fenced.api_key is ApiKey.HEARTBEAT


def test_a_beat_moves_the_deadline_and_parks_nothing(world: World) -> None:
    group = world.given_stable_group(members=1)
    waiting = world.shard.purgatory.delayed
    world.advance(1_000)
    before = len(world.events)
    world.heartbeat(group, group.leader_id)
    member = group.members[group.leader_id]
    assert member.session_deadline_ms == world.now.mono_ms + SESSION_TIMEOUT_MS
    assert world.shard.purgatory.delayed == waiting
    assert len(world.events) == before


def test_a_beat_that_is_refused_moves_nothing(world: World) -> None:
    group = world.given_stable_group(members=1)
    deadline_ms = group.members[group.leader_id].session_deadline_ms
    world.advance(1_000)
    world.beat("g", group.leader_id, 7)
    assert group.members[group.leader_id].session_deadline_ms == deadline_ms


def test_a_beat_waits_for_what_it_would_give_away(world: World) -> None:
    # The group is Empty in memory, but a crash could still bring its member back.
    group = world.given_stable_group(members=1)
    member_id = group.leader_id
    world.storing = False
    world.leave("g", member_id)
    asked = world.beat("g", member_id, 1)
    assert asked.waits
    world.store()
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_beat_does_not_wait_for_the_offsets_of_its_group(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.storing = False
    waiting = world.committing("g", group.leader_id, 1)
    assert world.heartbeat(group, group.leader_id) is ErrorCode.NONE
    assert waiting.waits
