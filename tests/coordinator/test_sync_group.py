"""SyncGroup: the checks in their order, the leader's assignments, and who gets what."""

import pytest

from coordinator.classic.delayed import sync_slot
from coordinator.classic.events import AssignmentReceived, GroupStabilized
from protocol.names import ErrorCode, GroupState
from tests.world import SESSION_TIMEOUT_MS, World, kafka_settings


def test_an_empty_group_id_is_refused(world: World) -> None:
    assert world.sync("", "m", 1).error is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"), [(None, "range"), ("consumer", None), (None, None)]
)
def test_since_version_5_the_protocol_is_checked_before_anything_else(
    world: World, protocol_type: str | None, protocol_name: str | None
) -> None:
    asked = world.sync(
        "", "m", 1, protocol_type=protocol_type, protocol_name=protocol_name, version=5
    )
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_before_version_5_the_protocol_need_not_be_named(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    asked = world.sync("g", leader.member_id, 1, protocol_type=None, protocol_name=None, version=4)
    assert asked.error is ErrorCode.NONE


def test_in_a_group_that_does_not_exist_or_is_empty_every_member_is_unknown(world: World) -> None:
    assert world.sync("g", "m", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    world.join("g")
    assert world.sync("g", "m", 0).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("given", ["given_joined", "given_stable_group"])
def test_the_claim_is_checked_member_first_then_generation_then_protocol(
    world: World, given: str
) -> None:
    getattr(world, given)(members=1)
    member = world.group().leader_id
    assert world.sync("g", "stranger", 9).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync("g", member, 2, protocol_type="x").error is ErrorCode.ILLEGAL_GENERATION
    assert world.sync("g", member, 0).error is ErrorCode.ILLEGAL_GENERATION
    for wrong in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        asked = world.sync("g", member, 1, **wrong)
        assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_while_a_rebalance_is_prepared_a_sync_is_sent_back_to_join(world: World) -> None:
    group = world.given_stable_group(members=2)
    world.join("g", version=3)
    assert world.sync("g", group.leader_id, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.sync("g", group.leader_id, 2).error is ErrorCode.ILLEGAL_GENERATION


def test_all_members_wait_for_the_leader_and_are_answered_together(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    assert waiting.waits
    first = world.sync(
        "g",
        leader.member_id,
        1,
        assignments={leader.member_id: b"mine", follower.member_id: b"yours"},
    )
    assert (first.synced.assignment, waiting.synced.assignment) == (b"mine", b"yours")
    assert (first.synced.protocol_type, first.synced.protocol_name) == ("consumer", "range")
    assert world.group().state is GroupState.STABLE


def test_the_answers_wait_until_the_assignments_are_stored(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync_all("g", [leader, follower])
    assert all(answer.waits for answer in asked)
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    world.store()
    assert [answer.error for answer in asked] == [ErrorCode.NONE, ErrorCode.NONE]
    assert world.group().state is GroupState.STABLE


def test_a_followers_assignments_are_ignored(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    assert world.sync("g", follower.member_id, 1, assignments={leader.member_id: b"x"}).waits
    assert world.group().state is GroupState.COMPLETING_REBALANCE


def test_members_without_an_assignment_get_none_and_unknown_members_are_ignored(
    world: World,
) -> None:
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    world.sync("g", leader.member_id, 1, assignments={"stranger": b"x", leader.member_id: b"y"})
    assert waiting.error is ErrorCode.NONE
    assert waiting.synced.assignment == b""
    (received,) = world.events_of(AssignmentReceived)
    assert received.without_assignment == (follower.member_id,)
    assert (received.member_count, received.static_member_count) == (2, 0)


def test_a_follower_that_syncs_after_the_leader_is_answered_at_once(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.sync("g", leader.member_id, 1, assignments={follower.member_id: b"yours"})
    late = world.sync("g", follower.member_id, 1)
    assert late.synced.assignment == b"yours"
    assert not world.group().pending_sync_ids


def test_in_stable_every_member_may_sync_again_and_gets_the_same_assignment(world: World) -> None:
    group = world.given_stable_group(members=2)
    for member_id, member in group.members.items():
        for _ in range(2):
            assert world.sync("g", member_id, 1).synced.assignment == member.assignment
    assert group.state is GroupState.STABLE


def test_a_second_sync_of_the_leader_in_stable_changes_nothing(world: World) -> None:
    group = world.given_stable_group(members=1)
    asked = world.sync("g", group.leader_id, 1, assignments={group.leader_id: b"other"})
    assert asked.synced.assignment == b"0"


def test_a_second_sync_takes_the_place_of_the_parked_one_which_is_sent_back(world: World) -> None:
    _, follower = world.given_joined(members=2)
    first = world.sync("g", follower.member_id, 1)
    second = world.sync("g", follower.member_id, 1)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.waits


def test_the_assignments_survive_a_restart(world: World) -> None:
    group = world.given_stable_group(members=2)
    before = {m.member_id: m.assignment for m in group.members.values()}
    world.crash()
    group = world.group()
    assert group.state is GroupState.STABLE
    assert group.generation_id == 1
    for member_id, assignment in before.items():
        assert world.sync("g", member_id, 1).synced.assignment == assignment


def test_assignments_too_large_for_the_log_are_refused_and_the_group_rebalances() -> None:
    world = World(kafka_settings(max_batch_bytes=2_000))
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    asked = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"x" * 2_000})
    assert asked.error is waiting.error is ErrorCode.UNKNOWN_SERVER_ERROR
    group = world.group()
    assert group.state is GroupState.PREPARING_REBALANCE
    assert group.generation_id == 1
    assert not world.group_records()[1:]
    # And the next attempt, which fits, succeeds.
    rejoined = [world.join("g", m) for m in (leader.member_id, follower.member_id)]
    world.sync_all("g", [answer.joined for answer in rejoined])
    assert group.state is GroupState.STABLE
    assert group.generation_id == 2


# ---------------------------------------------------------------- who joins but never syncs


def test_members_that_do_not_sync_are_removed_after_the_rebalance_timeout() -> None:
    world = World(kafka_settings())
    leader, follower = world.given_joined(
        members=2, session_timeout_ms=50_000, rebalance_timeout_ms=20_000
    )
    waiting = world.sync("g", leader.member_id, 1)
    assert waiting.error is ErrorCode.NONE
    world.advance(19_999)
    assert follower.member_id in world.group().members
    world.advance(1)
    assert follower.member_id not in world.group().members
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_leader_that_does_not_sync_is_removed_and_the_others_sent_back() -> None:
    world = World(kafka_settings())
    leader, follower = world.given_joined(
        members=2, session_timeout_ms=50_000, rebalance_timeout_ms=20_000
    )
    waiting = world.sync("g", follower.member_id, 1)
    world.advance(20_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    group = world.group()
    assert list(group.members) == [follower.member_id]
    assert group.leader_id == follower.member_id
    assert leader.member_id not in group.members


def test_a_group_in_which_nobody_syncs_becomes_empty_in_the_next_generation(world: World) -> None:
    world.given_joined(members=1, session_timeout_ms=600_000, rebalance_timeout_ms=20_000)
    world.advance(20_000)
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2


def test_once_all_have_synced_nobody_is_removed_for_it(world: World) -> None:
    group = world.given_stable_group(members=2, session_timeout_ms=600_000)
    assert world.shard.purgatory.watching(sync_slot(group.group_id)) is False
    world.advance(599_000)
    assert group.state is GroupState.STABLE


def test_the_wait_for_syncs_ends_with_the_rebalance_that_follows(world: World) -> None:
    leader, follower = world.given_joined(
        members=2, session_timeout_ms=600_000, rebalance_timeout_ms=20_000
    )
    world.sync("g", leader.member_id, 1)
    world.advance(19_000)
    asked = [
        world.join("g", m.member_id, session_timeout_ms=600_000, rebalance_timeout_ms=20_000)
        for m in (leader, follower)
    ]
    world.sync_all("g", [answer.joined for answer in asked])
    world.advance(100_000)
    assert world.group().state is GroupState.STABLE
    assert world.group().generation_id == 2


def test_a_session_starts_afresh_when_the_sync_is_answered(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    for _ in range(4):
        world.advance(SESSION_TIMEOUT_MS - 1_000)
        world.beat("g", leader.member_id, 1)
    assert waiting.waits, "a parked sync does not expire"
    world.sync("g", leader.member_id, 1)
    assert waiting.error is ErrorCode.NONE
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert follower.member_id in world.group().members
    world.advance(1)
    assert follower.member_id not in world.group().members


def test_the_event_of_a_stable_group_carries_its_assignments(world: World) -> None:
    group = world.given_stable_group(members=2)
    (stabilized,) = world.events_of(GroupStabilized)
    assert stabilized.generation_id == 1
    assert set(stabilized.assignments) == set(stabilized.answered) == set(group.members)
