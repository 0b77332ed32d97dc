"""A member's session: what keeps it, what ends it, and who learns of the end.

Drives one coordinator in virtual time: `world.advance` moves the clock and fires due purgatory ops
in deadline order. As Kafka: the forgiving of slow members is switched off, see test_forgive.py.
"""

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.delayed import session_slot
from coordinator.classic.events import MembersRemoved, RebalanceBegun, RemovalCause
from coordinator.classic.group_view import SESSION_PAUSED
from protocol.names import ErrorCode, GroupId, GroupState
from tests.world import REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, World

NEW_MEMBER_TIMEOUT_MS = 300_000
SHORT_MS = 6_000  # group.min.session.timeout.ms


def test_a_silent_member_is_removed_and_the_others_have_to_rejoin(world: World) -> None:
    # Given a stable group of two.
    group = world.given_stable_group("g", members=2)
    kept, silent = group.members

    # When one beats just in time and the other stays silent for its whole session.
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert world.heartbeat(group, kept) is ErrorCode.NONE
    written = len(world.log.records)
    world.advance(1)

    # Then the silent one is gone, the group prepares a rebalance, and nothing was written yet.
    assert list(group.members) == [kept]
    assert group.state is GroupState.PREPARING_REBALANCE
    assert len(world.log.records) == written

    # And each side learns it the way clients expect: by the answer to its next heartbeat.
    assert world.heartbeat(group, silent) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(group, kept) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_rebalance_says_whose_heartbeat_expired(world: World) -> None:
    group = world.given_stable_group(members=2)
    silent = next(m for m in group.members if m != group.leader_id)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, group.leader_id)
    world.advance(1)
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.SESSION_EXPIRED
    assert begun.reason == f"removing member {silent} on heartbeat expiration."
    assert begun.trigger_ids == (silent,)


def test_the_last_member_to_expire_leaves_an_empty_group_in_the_next_generation(
    world: World,
) -> None:
    group = world.given_stable_group(members=1)
    world.advance(SESSION_TIMEOUT_MS)
    assert group.state is GroupState.EMPTY
    assert group.generation_id == 2
    world.crash()
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2


def test_a_leader_that_expires_hands_its_role_on(world: World) -> None:
    group = world.given_stable_group(members=2)
    follower = next(m for m in group.members if m != group.leader_id)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, follower)
    world.advance(1)
    assert group.leader_id == follower


@pytest.mark.parametrize("given", ["given_joined", "given_stable_group"])
def test_a_session_starts_with_the_answer_to_the_join_or_the_sync(world: World, given: str) -> None:
    getattr(world, given)(members=1)
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert len(world.group().members) == 1
    world.advance(1)
    assert not world.group().members


def test_a_commit_keeps_a_session_like_a_heartbeat(world: World) -> None:
    group = world.given_stable_group(members=1)
    member_id = group.leader_id
    for _ in range(3):
        world.advance(SESSION_TIMEOUT_MS - 1)
        assert world.commit("g", member_id, 1) is ErrorCode.NONE
    assert member_id in group.members


def test_a_commit_that_is_sent_back_to_sync_does_not_keep_the_session(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    world.advance(SESSION_TIMEOUT_MS - 1)
    error_code = world.commit("g", leader.member_id, 1)
    assert error_code is ErrorCode.REBALANCE_IN_PROGRESS
    world.advance(1)
    assert not world.group().members


def test_a_parked_join_does_not_expire(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    asked = world.join("g", leader)
    for _ in range(5):
        world.advance(SESSION_TIMEOUT_MS - 1_000)
        world.heartbeat(group, follower)
    assert asked.waits
    assert group.members[leader].session_deadline_ms == SESSION_PAUSED

    # Its session starts afresh with the answer.
    world.join("g", follower)
    assert asked.joined.generation_id == 2
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert leader in group.members
    world.advance(1)
    assert leader not in group.members


def test_a_beat_while_the_session_is_paused_leaves_it_paused(world: World) -> None:
    group = world.given_stable_group(members=2)
    world.join("g", group.leader_id)
    follower = next(m for m in group.members if m != group.leader_id)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, follower)
    world.advance(1)
    assert world.heartbeat(group, group.leader_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.members[group.leader_id].session_deadline_ms == SESSION_PAUSED


def test_answers_to_the_joins_of_new_members_need_no_new_timers(world: World) -> None:
    """5,000 of them would be filed again in the turn that answers all."""
    first = world.join("g", world.join("g").joined.member_id)
    second = world.join("g", world.join("g").joined.member_id)
    slots = [session_slot(GroupId("g"), member_id) for member_id in world.group().members]
    before = [world.shard.purgatory.deadline_of(slot) for slot in slots]
    world.advance(2 * world.settings.group_initial_rebalance_delay_ms)
    assert not first.waits
    assert not second.waits
    assert [world.shard.purgatory.deadline_of(slot) for slot in slots] == before
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert len(world.group().members) == 2
    world.advance(1)
    assert not world.group().members


def test_a_session_that_ends_with_the_sync_phase_ends_before_it(world: World) -> None:
    """As in Kafka, which files the sessions first: one silent client does not cost the others
    their membership. In version 0 of JoinGroup both timeouts are always the same."""
    leader = world.join("g", version=0)
    silent = world.join("g", version=0)
    world.advance(2 * world.settings.group_initial_rebalance_delay_ms)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.beat("g", leader.joined.member_id, 1)
    world.advance(1)
    assert silent.joined.member_id not in world.group().members
    assert world.events_of(MembersRemoved)[-1].cause is RemovalCause.SESSION_EXPIRED
    assert leader.joined.member_id in world.group().members


def test_a_new_member_that_joins_again_with_a_shorter_session_has_that_session(
    world: World,
) -> None:
    world.given_stable_group(members=1)
    member_id = world.join("g").joined.member_id
    world.join("g", member_id)
    world.join("g", member_id, session_timeout_ms=SHORT_MS)
    world.join("g", world.group().leader_id)
    assert member_id in world.group().members
    world.advance(SHORT_MS - 1)
    assert member_id in world.group().members
    world.advance(1)
    assert member_id not in world.group().members


def test_a_new_member_whose_join_is_parked_is_given_up_after_five_minutes(world: World) -> None:
    group = world.given_stable_group(
        members=1, session_timeout_ms=600_000, rebalance_timeout_ms=900_000
    )
    asked = world.join("g", version=3)
    world.advance(NEW_MEMBER_TIMEOUT_MS - 1)
    assert asked.waits
    world.advance(1)
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert asked.joined.member_id == ""
    assert list(group.members) == [group.leader_id]
    removed = world.events_of(MembersRemoved)[-1]
    assert removed.cause is RemovalCause.NEW_MEMBER_TIMED_OUT


def test_a_new_member_is_not_held_to_its_session_while_its_first_join_is_parked(
    world: World,
) -> None:
    world.given_stable_group(members=1, session_timeout_ms=600_000)
    asked = world.join("g", version=3)
    world.advance(REBALANCE_TIMEOUT_MS - 1)
    assert asked.waits


def test_a_member_that_leaves_lets_a_new_one_in_at_once(world: World) -> None:
    group = world.given_stable_group(
        members=1, session_timeout_ms=600_000, rebalance_timeout_ms=900_000
    )
    world.join("g", version=3, rebalance_timeout_ms=900_000)
    world.leave("g", group.leader_id)
    assert group.state is GroupState.COMPLETING_REBALANCE


def test_a_member_that_expires_while_a_rebalance_is_prepared_may_complete_it(
    world: World,
) -> None:
    group = world.given_stable_group(members=2)
    asked = world.join("g", group.leader_id)
    world.advance(SESSION_TIMEOUT_MS)
    assert asked.joined.generation_id == 2
    assert list(group.members) == [group.leader_id]


def test_a_shorter_session_counts_from_the_answer_to_the_join_that_asked_for_it(
    world: World,
) -> None:
    group = world.given_stable_group(members=1, session_timeout_ms=600_000)
    asked = world.join("g", group.leader_id, session_timeout_ms=6_000)
    assert asked.joined.generation_id == 2
    world.advance(5_999)
    assert group.members
    world.advance(1)
    assert not group.members


def test_after_a_restart_every_member_has_a_full_session(world: World) -> None:
    world.given_stable_group(members=2)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.crash()
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert len(world.group().members) == 2
    world.advance(1)
    assert world.group().state is GroupState.EMPTY


@pytest.mark.parametrize("kind", ["join", "sync", "partitions", "session"])
def test_whatever_groups_are_called_every_member_expires(world: World, kind: str) -> None:
    """A group that is named like a slot, and another that is named like its member."""
    member_id = world.given_stable_group(kind, members=1).leader_id
    world.advance(SESSION_TIMEOUT_MS // 2)
    world.given_stable_group(member_id, members=1)
    world.advance(2 * SESSION_TIMEOUT_MS)
    assert world.group(kind).state is GroupState.EMPTY
    assert world.group(member_id).state is GroupState.EMPTY
