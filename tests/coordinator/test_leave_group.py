"""LeaveGroup: one member or many, by id or by instance, and what it means for the others."""

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.delayed import session_slot
from coordinator.classic.events import (
    MembersRemoved,
    PendingMemberRemoved,
    RebalanceBegun,
    RemovalCause,
)
from protocol.names import ErrorCode, GroupState
from tests.world import Asked, World


def codes(asked: Asked) -> list[ErrorCode]:
    assert asked.left.error_code is ErrorCode.NONE
    return [member.error_code for member in asked.left.members]


def test_an_empty_group_id_is_refused(world: World) -> None:
    assert world.leave("", "m").error is ErrorCode.INVALID_GROUP_ID


def test_in_a_group_that_does_not_exist_each_member_is_unknown(world: World) -> None:
    asked = world.leave("g", "a", ("", "i"), ("b", "j"))
    assert codes(asked) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert [(m.member_id, m.group_instance_id) for m in asked.left.members] == [
        ("a", None),
        ("", "i"),
        ("b", "j"),
    ]


@pytest.mark.parametrize("version", range(3))
def test_up_to_version_2_the_members_error_is_the_error_of_the_whole(
    world: World, version: int
) -> None:
    group = world.given_stable_group(members=1)
    assert world.leave("g", "stranger", version=version).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("h", "stranger", version=version).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("g", group.leader_id, version=version).error is ErrorCode.NONE
    assert group.state is GroupState.EMPTY


@pytest.mark.parametrize("given", ["given_joined", "given_stable_group"])
def test_a_member_that_leaves_starts_a_rebalance_for_the_others(world: World, given: str) -> None:
    getattr(world, given)(members=2)
    group = world.group()
    leaving, staying = group.members
    assert codes(world.leave("g", leaving, reason="closing")) == [ErrorCode.NONE]
    assert group.state is GroupState.PREPARING_REBALANCE
    assert world.beat("g", staying, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.beat("g", leaving, 1).error is ErrorCode.UNKNOWN_MEMBER_ID

    (removed,) = world.events_of(MembersRemoved)
    assert removed.cause is RemovalCause.LEFT
    assert removed.removed[0].reason == "closing"
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.MEMBER_LEFT
    assert begun.reason == f"explicit `LeaveGroup` request for ({leaving}) members."


def test_many_members_leave_at_the_price_of_one_rebalance(world: World) -> None:
    group = world.given_stable_group(members=4)
    leaving = list(group.members)[1:]
    begun_before = len(world.events_of(RebalanceBegun))
    assert codes(world.leave("g", *leaving)) == [ErrorCode.NONE] * 3
    assert len(world.events_of(RebalanceBegun)) == begun_before + 1
    assert len(group.members) == 1


def test_a_request_in_which_nobody_may_leave_disturbs_nobody(world: World) -> None:
    group = world.given_stable_group(members=2)
    asked = world.leave("g", "stranger", ("", "i"), ("", None))
    assert codes(asked) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert group.state is GroupState.STABLE


def test_a_request_without_members_is_answered_without_members(world: World) -> None:
    group = world.given_stable_group(members=1)
    assert codes(world.leave("g")) == []
    assert group.state is GroupState.STABLE


def test_a_member_that_is_named_twice_leaves_once(world: World) -> None:
    group = world.given_stable_group(members=1)
    leader = group.leader_id
    assert codes(world.leave("g", leader, leader)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_an_operator_removes_static_members_by_their_instance_alone(world: World) -> None:
    group = world.given_stable_group(instances=["a", "b"])
    a = group.static_members["a"]  # type: ignore[index]
    asked = world.leave("g", ("", "a"))
    assert codes(asked) == [ErrorCode.NONE]
    assert asked.left.members[0].member_id == ""
    assert asked.left.members[0].group_instance_id == "a"
    assert a not in group.members
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.reason == "explicit `LeaveGroup` request for () members."


@pytest.mark.parametrize(
    ("instance_id", "error_code"),
    [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.FENCED_INSTANCE_ID),
        ("c", ErrorCode.UNKNOWN_MEMBER_ID),
        (None, ErrorCode.NONE),
    ],
)
def test_a_member_id_with_an_instance_must_be_its_holder(
    world: World, instance_id: str | None, error_code: ErrorCode
) -> None:
    group = world.given_stable_group(instances=["a", "b"])
    a = group.static_members["a"]  # type: ignore[index]
    assert codes(world.leave("g", (a, instance_id))) == [error_code]
    assert (a in group.members) is (error_code is not ErrorCode.NONE)


def test_an_instance_that_has_just_left_is_unknown_in_the_same_request(world: World) -> None:
    group = world.given_stable_group(instances=["a", "b"])
    a = group.static_members["a"]  # type: ignore[index]
    asked = world.leave("g", ("", "a"), ("", "a"), (a, "a"), (a, None), ("x", "a"))
    assert codes(asked) == [ErrorCode.NONE] + [ErrorCode.UNKNOWN_MEMBER_ID] * 4


def test_an_id_that_was_handed_out_may_leave_and_counts_as_a_member_that_left(
    world: World,
) -> None:
    group = world.given_stable_group(members=1)
    pending = world.join("g").joined.member_id
    assert codes(world.leave("g", pending)) == [ErrorCode.NONE]
    (gone,) = world.events_of(PendingMemberRemoved)
    assert gone.cause is RemovalCause.LEFT
    assert group.state is GroupState.PREPARING_REBALANCE


def test_a_parked_join_of_a_member_that_leaves_is_refused(world: World) -> None:
    group = world.given_stable_group(members=2)
    asked = world.join("g", group.leader_id)
    world.leave("g", group.leader_id)
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert asked.joined.member_id == ""


def test_a_parked_sync_of_a_member_that_leaves_is_refused(world: World) -> None:
    _, follower = world.given_joined(members=2)
    asked = world.sync("g", follower.member_id, 1)
    world.leave("g", follower.member_id)
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_missing_lets_a_rebalance_complete_when_it_leaves(world: World) -> None:
    group = world.given_stable_group(members=2)
    asked = world.join("g", group.leader_id)
    world.leave("g", next(m for m in group.members if m != group.leader_id))
    assert asked.joined.generation_id == 2


def test_the_answer_waits_until_the_empty_group_is_stored(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.storing = False
    asked = world.leave("g", group.leader_id)
    assert group.state is GroupState.EMPTY
    assert asked.waits
    world.store()
    assert codes(asked) == [ErrorCode.NONE]


def test_a_member_that_left_expires_no_more(world: World) -> None:
    group = world.given_stable_group(members=2)
    leaving, staying = group.members
    world.leave("g", leaving)
    assert not world.shard.purgatory.watching(session_slot(group.group_id, leaving))
    assert world.shard.purgatory.watching(session_slot(group.group_id, staying))
