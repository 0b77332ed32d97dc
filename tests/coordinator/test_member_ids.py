"""Member ids are handed out first (KIP-394): who waits for whom, and until when."""

import pytest

from coordinator.classic.events import MemberIdAssigned, PendingMemberRemoved, RemovalCause
from protocol.names import ErrorCode, GroupState
from tests.world import SESSION_TIMEOUT_MS, World


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_member_gets_its_id_and_joins_with_it(world: World, version: int) -> None:
    refused = world.join("g", version=version, client_id="me")
    assert refused.error is ErrorCode.MEMBER_ID_REQUIRED
    assert refused.joined.member_id == "me-1"
    assert refused.joined.generation_id == -1
    group = world.group()
    assert group.state is GroupState.EMPTY
    assert not group.members
    (handed_out,) = group.pending_member_ids
    assert handed_out == "me-1"

    asked = world.join("g", str(b"me-1", "ascii"), version=version)  # as if it was read
    assert asked.waits
    assert list(group.members) == ["me-1"]
    assert group.members[handed_out].member_id is handed_out, "its text is kept once"
    assert not group.pending_member_ids
    world.advance(3_000)
    assert asked.joined.member_id == "me-1"


def test_the_id_is_no_member_yet_so_it_may_neither_beat_nor_sync(world: World) -> None:
    world.given_stable_group()
    pending = world.join("g").joined.member_id
    assert world.beat("g", pending, 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync("g", pending, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_is_not_used_within_its_session_is_forgotten(world: World) -> None:
    member_id = world.join("g").joined.member_id
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert member_id in world.group().pending_member_ids
    world.advance(1)
    assert member_id not in world.group().pending_member_ids
    (gone,) = world.events_of(PendingMemberRemoved)
    assert gone.cause is RemovalCause.SESSION_EXPIRED
    assert world.join("g", member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_ids_own_timer_ends_when_it_becomes_a_member(world: World) -> None:
    member_id = world.join("g").joined.member_id
    asked = world.join("g", member_id)
    world.advance(3_000)
    assert world.sync("g", member_id, asked.joined.generation_id).error is ErrorCode.NONE
    world.advance(SESSION_TIMEOUT_MS - 3_001)
    assert member_id in world.group().members


def test_an_id_that_is_out_delays_a_rebalance_until_it_joins(world: World) -> None:
    group = world.given_stable_group(members=1)
    pending = world.join("g").joined.member_id
    first = world.join("g", group.leader_id)
    assert first.waits

    second = world.join("g", pending)
    assert first.joined.generation_id == 2
    assert second.joined.generation_id == 2


def test_an_id_that_is_out_delays_a_rebalance_until_it_expires(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.join("g")
    asked = world.join("g", group.leader_id)
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert asked.waits
    world.advance(1)
    assert asked.joined.generation_id == 2


def test_an_id_that_is_out_delays_a_rebalance_until_it_leaves(world: World) -> None:
    group = world.given_stable_group(members=1)
    pending = world.join("g").joined.member_id
    asked = world.join("g", group.leader_id)
    left = world.leave("g", pending)
    assert left.left.members[0].error_code is ErrorCode.NONE
    assert asked.joined.generation_id == 2


def test_the_rebalance_timeout_does_not_wait_for_ids_that_are_out(world: World) -> None:
    group = world.given_stable_group(members=1, rebalance_timeout_ms=5_000)
    pending = world.join("g", session_timeout_ms=600_000).joined.member_id
    asked = world.join("g", group.leader_id, rebalance_timeout_ms=5_000)
    world.advance(4_999)
    assert asked.waits
    world.advance(1)
    assert asked.joined.generation_id == 2
    assert pending in group.pending_member_ids


def test_static_members_are_never_asked_to_come_back_with_an_id(world: World) -> None:
    asked = world.join("g", instance_id="i")
    assert asked.waits
    assert list(world.group().members) == ["i-1"]


def test_an_id_that_was_handed_out_does_not_belong_to_a_static_member(world: World) -> None:
    member_id = world.join("g").joined.member_id
    asked = world.join("g", member_id, instance_id="i")
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert asked.joined.member_id == ""
    assert member_id in world.group().pending_member_ids


def test_ids_are_not_stored_so_a_restart_forgets_them(world: World) -> None:
    member_id = world.join("g").joined.member_id
    world.crash()
    assert world.join("g", member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_event_says_who_was_given_which_id_and_in_which_state(world: World) -> None:
    world.given_stable_group()
    world.join("g", client_id="me")
    assigned = world.events_of(MemberIdAssigned)[-1]
    assert (assigned.client_id, assigned.state) == ("me", GroupState.STABLE)


def test_an_id_that_expires_in_the_initial_delay_completes_the_join_at_once(world: World) -> None:
    # Kafka asks here whether all have joined, and forgets that the delay is not over.
    world.join("g", session_timeout_ms=6_000)
    world.advance(5_000)
    asked = world.join("g", version=3)
    world.advance(999)
    assert asked.waits
    world.advance(1)
    assert asked.joined.generation_id == 1
