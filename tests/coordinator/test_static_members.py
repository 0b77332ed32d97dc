"""Static members (KIP-345, KIP-814): they restart without a word, and nobody else may be them."""

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import MemberFenced, RebalanceBegun, StaticMemberReplaced
from coordinator.classic.group import ClassicGroup
from protocol.names import ErrorCode, GroupInstanceId, GroupState, MemberId
from tests.world import RANGE, SESSION_TIMEOUT_MS, World, kafka_settings


def holder(group: ClassicGroup, instance_id: str) -> MemberId:
    return group.static_members[GroupInstanceId(instance_id)]


@pytest.fixture
def group(world: World) -> ClassicGroup:
    """A Stable group of "a", its leader, and "b"."""
    group = world.given_stable_group(instances=["a", "b"])
    assert group.leader_id == holder(group, "a")
    return group


def test_a_new_instance_gets_an_id_that_begins_with_its_name(world: World) -> None:
    world.join("g", instance_id="rack-1")
    assert holder(world.group(), "rack-1").startswith("rack-1-")


@pytest.mark.parametrize("version", [5, 8])
@pytest.mark.parametrize("instance_id", ["a", "b"])
def test_a_restart_changes_the_id_and_nothing_else(
    world: World, group: ClassicGroup, version: int, instance_id: str
) -> None:
    old, old_leader = holder(group, instance_id), group.leader_id
    assignment = group.members[old].assignment
    asked = world.join("g", instance_id=instance_id, version=version)
    new = holder(group, instance_id)
    assert new != old
    assert group.state is GroupState.STABLE
    assert group.generation_id == 1
    assert asked.joined.member_id == new
    assert asked.joined.generation_id == 1
    # Up to version 8 the old leader is named, so that a leader that restarts does not assign.
    assert asked.joined.leader == old_leader
    assert not asked.joined.members
    assert asked.joined.skip_assignment is False
    assert group.leader_id == (new if instance_id == "a" else old_leader)
    assert world.sync("g", new, 1, instance_id=instance_id).synced.assignment == assignment


def test_since_version_9_a_replaced_leader_still_leads_and_skips_the_assignment(
    world: World, group: ClassicGroup
) -> None:
    asked = world.join("g", instance_id="a", version=9)
    assert asked.joined.skip_assignment is True
    assert asked.joined.leader == asked.joined.member_id == holder(group, "a")
    assert {m.member_id for m in asked.joined.members} == set(group.members)


def test_from_version_9_on_a_follower_learns_no_more_than_before(
    world: World, group: ClassicGroup
) -> None:
    asked = world.join("g", instance_id="b", version=9)
    assert asked.joined.skip_assignment is False
    assert asked.joined.leader == holder(group, "a")
    assert not asked.joined.members


def test_the_new_id_is_stored_before_it_is_returned(world: World, group: ClassicGroup) -> None:
    world.storing = False
    asked = world.join("g", instance_id="b")
    assert asked.waits
    world.store()
    new = asked.joined.member_id
    world.crash()
    assert holder(world.group(), "b") == new
    assert world.beat("g", new, 1, "b").error is ErrorCode.NONE


def test_a_restart_with_other_metadata_for_the_same_protocol_disturbs_nobody(
    world: World, group: ClassicGroup
) -> None:
    asked = world.join("g", instance_id="b", protocols=(("range", b"changed"),))
    assert asked.joined.generation_id == 1
    assert group.state is GroupState.STABLE
    assert group.members[holder(group, "b")].protocols == (("range", b"changed"),)
    world.crash()
    restored = world.group()
    assert restored.members[holder(restored, "b")].protocols == (("range", b"changed"),)


def test_a_restart_takes_over_new_timeouts(world: World, group: ClassicGroup) -> None:
    world.join("g", instance_id="b", session_timeout_ms=20_000, rebalance_timeout_ms=30_000)
    member = group.members[holder(group, "b")]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 30_000)


def test_a_restart_that_changes_the_chosen_protocol_begins_a_rebalance(world: World) -> None:
    both = (("range", b""), ("sticky", b""))
    group = world.given_stable_group(instances=["a", "b"], protocols=both)
    assert group.protocol_name == "range"
    asked = world.join("g", instance_id="b", protocols=(("sticky", b""),))
    assert asked.waits
    assert group.state is GroupState.PREPARING_REBALANCE
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.STATIC_MEMBER_CHANGED
    assert begun.reason.startswith("Group's selectedProtocol will change because static member")


def test_a_restart_that_shares_no_protocol_is_refused(world: World, group: ClassicGroup) -> None:
    asked = world.join("g", instance_id="b", protocols=(("sticky", b""),))
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.state is GroupState.STABLE


def test_the_old_id_is_fenced_everywhere(world: World, group: ClassicGroup) -> None:
    old = holder(group, "b")
    world.join("g", instance_id="b")
    assert world.beat("g", old, 1, "b").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.sync("g", old, 1, instance_id="b").error is ErrorCode.FENCED_INSTANCE_ID
    asked = world.join("g", old, instance_id="b")
    assert asked.error is ErrorCode.FENCED_INSTANCE_ID
    assert asked.joined.member_id == old
    left = world.leave("g", (old, "b"))
    assert left.left.members[0].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert len(world.events_of(MemberFenced)) == 4


def test_an_instance_that_nobody_holds_is_unknown(world: World, group: ClassicGroup) -> None:
    member_id = holder(group, "b")
    assert world.beat("g", member_id, 1, "c").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join("g", member_id, instance_id="c").error is ErrorCode.UNKNOWN_MEMBER_ID
    sync = world.sync("g", member_id, 1, instance_id="c")
    assert sync.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_join_of_the_old_id_is_fenced(world: World, group: ClassicGroup) -> None:
    first = world.join("g", holder(group, "a"), instance_id="a")
    old = holder(group, "a")
    assert first.waits
    second = world.join("g", instance_id="a")
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    assert first.joined.member_id == old
    assert second.waits
    third = world.join("g", holder(group, "b"), instance_id="b")
    assert second.joined.generation_id == third.joined.generation_id == 2


def test_a_parked_sync_of_the_old_id_is_fenced_and_the_group_rebalances(world: World) -> None:
    world.given_joined(instances=["a", "b"])
    group = world.group()
    waiting = world.sync("g", holder(group, "b"), 1, instance_id="b")
    asked = world.join("g", instance_id="b")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert waiting.synced.assignment == b""
    assert asked.waits
    assert group.state is GroupState.PREPARING_REBALANCE
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.reason.startswith("Updating metadata for static member b-")


def test_a_restart_while_a_rebalance_is_prepared_counts_as_joined(
    world: World, group: ClassicGroup
) -> None:
    first = world.join("g", group.leader_id, instance_id="a")
    second = world.join("g", instance_id="b")
    assert first.joined.generation_id == second.joined.generation_id == 2


def test_a_restart_during_the_initial_delay_does_not_end_it(world: World) -> None:
    first = world.join("g", instance_id="a")
    second = world.join("g", instance_id="a")
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    assert second.waits
    world.advance(3_000)
    assert second.joined.generation_id == 1


def test_a_static_member_that_stays_away_expires_like_any_other(
    world: World, group: ClassicGroup
) -> None:
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, holder(group, "a"))
    world.advance(1)
    assert list(group.static_members) == ["a"]
    assert group.state is GroupState.PREPARING_REBALANCE


def test_the_session_of_a_restarted_member_starts_with_its_return(
    world: World, group: ClassicGroup
) -> None:
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.heartbeat(group, holder(group, "a"))
    world.join("g", instance_id="b")
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert "b" in group.static_members


def test_two_processes_with_one_instance_id_fence_each_other(
    world: World, group: ClassicGroup
) -> None:
    first = world.join("g", instance_id="b")
    second = world.join("g", instance_id="b")
    assert world.beat("g", first.joined.member_id, 1, "b").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.beat("g", second.joined.member_id, 1, "b").error is ErrorCode.NONE


def test_an_instance_id_is_only_known_in_its_own_group(world: World, group: ClassicGroup) -> None:
    asked = world.join("h", instance_id="b")
    assert asked.waits
    assert world.group("h").members.keys().isdisjoint(group.members)


def test_the_event_says_who_came_back_and_whether_anybody_was_disturbed(
    world: World, group: ClassicGroup
) -> None:
    old = holder(group, "b")
    world.join("g", instance_id="b", reason="deploy")
    (replaced,) = world.events_of(StaticMemberReplaced)
    assert replaced.old_member_id == old
    assert replaced.member.member_id == holder(group, "b")
    assert replaced.without_rebalance
    assert not replaced.was_leader
    assert replaced.reason == "deploy"


def test_a_return_that_cannot_be_stored_does_not_happen() -> None:
    world = World(kafka_settings(max_batch_bytes=4_000))
    group = world.given_stable_group(instances=["a", "b"], protocols=(("range", b"x" * 500),))
    old = holder(group, "b")
    asked = world.join("g", instance_id="b", protocols=(("range", b"x" * 4_000),))
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert asked.joined.member_id == ""
    assert asked.joined.generation_id == 1
    assert asked.joined.leader == group.leader_id
    assert holder(group, "b") == old
    assert world.beat("g", old, 1, "b").error is ErrorCode.NONE


def test_a_dynamic_and_a_static_member_live_together(world: World) -> None:
    group = world.given_stable_group(instances=["a", None])
    world.join("g", instance_id="a")
    assert group.state is GroupState.STABLE
    assert len(group.members) == 2
    assert world.join("g", version=3, protocols=RANGE).waits
