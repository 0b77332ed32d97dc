"""JoinGroup: what is refused, in which order, and what each state makes of a join."""

from sys import intern

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import MemberAdded, RebalanceBegun
from protocol.names import NO_GENERATION, ErrorCode, GroupState
from tests.world import RANGE, SESSION_TIMEOUT_MS, World, kafka_settings

BOTH = (("range", b"r"), ("roundrobin", b"rr"))


def test_an_empty_group_id_is_refused_and_the_member_id_echoed(world: World) -> None:
    asked = world.join("", "m-1")
    assert asked.error is ErrorCode.INVALID_GROUP_ID
    assert asked.joined.member_id == "m-1"


@pytest.mark.parametrize("session_timeout_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_timeout_outside_the_limits_is_refused_and_the_member_id_echoed(
    world: World, session_timeout_ms: int
) -> None:
    asked = world.join("g", "m-1", session_timeout_ms=session_timeout_ms)
    assert asked.error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert asked.joined.member_id == "m-1"
    assert not world.has_group()


@pytest.mark.parametrize("session_timeout_ms", [6_000, 1_800_000])
def test_a_session_timeout_at_its_limit_is_taken(world: World, session_timeout_ms: int) -> None:
    asked = world.join("g", session_timeout_ms=session_timeout_ms)
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED


def test_static_members_are_held_to_the_session_limits_too(world: World) -> None:
    asked = world.join("g", instance_id="i", session_timeout_ms=1)
    assert asked.error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_id_in_a_group_that_does_not_exist_is_unknown_and_creates_nothing(world: World) -> None:
    asked = world.join("g", "m-1")
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert asked.joined.member_id == "m-1"
    assert not world.has_group()
    assert world.log.records == []


def test_a_join_without_an_id_creates_the_group_durably(world: World) -> None:
    world.join("g")
    assert world.group().state is GroupState.EMPTY
    assert len(world.group_records()) == 1

    world.crash()
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 0


def test_even_a_refused_join_creates_the_group(world: World) -> None:
    asked = world.join("g", protocols=())
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert asked.joined.member_id == ""
    assert world.group().state is GroupState.EMPTY


@pytest.mark.parametrize(("protocol_type", "protocols"), [("consumer", ()), ("", RANGE), ("", ())])
def test_an_empty_group_wants_a_protocol_type_and_a_protocol(
    world: World, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    asked = world.join("g", protocol_type=protocol_type, protocols=protocols, version=3)
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_takes_another_protocol_type_than_it_had(world: World) -> None:
    group = world.given_stable_group(members=1)
    world.leave("g", *group.members)
    assert group.state is GroupState.EMPTY

    asked = world.join("g", protocol_type="connect", version=3)
    world.advance(3_000)
    assert asked.joined.protocol_type == "connect"


@pytest.mark.parametrize(
    ("protocol_type", "protocols", "error_code"),
    [
        ("connect", RANGE, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", (("sticky", b""),), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", (), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", (("sticky", b""), *RANGE), ErrorCode.MEMBER_ID_REQUIRED),
    ],
)
def test_a_group_with_members_wants_its_type_and_a_protocol_that_all_offer(
    world: World,
    protocol_type: str,
    protocols: tuple[tuple[str, bytes], ...],
    error_code: ErrorCode,
) -> None:
    world.given_stable_group(members=2)
    asked = world.join("g", protocol_type=protocol_type, protocols=protocols)
    assert asked.error is error_code


def test_a_known_member_with_the_wrong_protocol_keeps_its_id_in_the_refusal(world: World) -> None:
    group = world.given_stable_group(members=1)
    asked = world.join("g", group.leader_id, protocol_type="connect")
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert asked.joined.member_id == group.leader_id
    assert group.state is GroupState.STABLE


def test_a_member_may_not_leave_the_last_common_protocol_behind(world: World) -> None:
    group = world.given_stable_group(members=2)
    asked = world.join("g", group.leader_id, protocols=(("sticky", b""),))
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("state", ["Empty", "CompletingRebalance", "Stable", "PreparingRebalance"])
def test_an_id_that_is_no_member_is_unknown_in_every_state(world: World, state: str) -> None:
    _given(world, state)
    asked = world.join("g", "stranger")
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert asked.joined.member_id == "stranger"
    assert asked.joined.generation_id == NO_GENERATION


@pytest.mark.parametrize("version", range(10))
def test_a_refusal_without_a_protocol_says_null_only_where_the_version_can(
    world: World, version: int
) -> None:
    asked = world.join("g", "stranger", version=version)
    assert asked.joined.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", range(4))
def test_old_versions_join_in_one_step(world: World, version: int) -> None:
    asked = world.join("g", version=version)
    assert asked.waits
    assert len(world.group().members) == 1
    world.advance(3_000)
    assert asked.joined.generation_id == 1


def test_version_0_uses_the_session_timeout_for_the_rebalance(world: World) -> None:
    world.join("g", version=0, rebalance_timeout_ms=-1)
    (member,) = world.group().members.values()
    assert member.rebalance_timeout_ms == SESSION_TIMEOUT_MS


def test_the_member_is_described_as_the_client_described_itself(world: World) -> None:
    world.join("g", version=3, client_id="me")
    (member,) = world.group().members.values()
    assert member.member_id == "me-1"
    assert (member.client_id, member.client_host) == ("me", "/127.0.0.1")


def test_what_members_have_in_common_is_kept_once_and_not_interned(world: World) -> None:
    """Python 3.12 never frees what is interned, and a client may choose a new id for each join."""
    equal = [b"payments-of-two".decode() for _ in range(4)]
    for client_id, protocol_type in (equal[:2], equal[2:]):
        world.join("g", version=3, client_id=client_id, protocol_type=protocol_type)
    first, second = world.group().members.values()
    assert first.client_id is second.client_id
    fresh = b"payments-of-two".decode()
    assert intern(fresh) is fresh


@pytest.mark.parametrize("client_id", ["", "é😀", "x" * 255, "x" * 256])
def test_any_client_id_is_kept_as_it_is(world: World, client_id: str) -> None:
    world.join("g", version=3, client_id=client_id)
    (member,) = world.group().members.values()
    assert member.client_id == client_id


# ---------------------------------------------------------------- members that join again


def test_in_preparing_rebalance_a_member_is_parked_with_what_it_offers_now(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader, follower = group.members
    world.join("g", leader)
    asked = world.join("g", follower, protocols=(("range", b"new"),), session_timeout_ms=20_000)
    assert asked.joined.error_code is ErrorCode.NONE
    assert group.members[follower].protocols == (("range", b"new"),)
    assert group.members[follower].session_timeout_ms == 20_000


def test_in_completing_rebalance_the_same_offer_gets_the_same_answer_again(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    again = world.join("g", leader.member_id)
    assert again.joined == leader

    again = world.join("g", follower.member_id)
    assert again.joined == follower
    assert not again.joined.members
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    assert world.group().generation_id == 1


def test_in_completing_rebalance_another_offer_begins_another_rebalance(world: World) -> None:
    leader, _ = world.given_joined(members=2)
    asked = world.join("g", leader.member_id, protocols=(("range", b"new"),))
    assert asked.waits
    assert world.group().state is GroupState.PREPARING_REBALANCE
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.METADATA_CHANGED
    assert begun.reason == (
        f"Updating metadata for member {leader.member_id} during CompletingRebalance; "
        "client reason: not provided"
    )


def test_in_stable_the_leader_always_begins_a_rebalance(world: World) -> None:
    group = world.given_stable_group(members=2)
    asked = world.join("g", group.leader_id, reason="new partitions")
    assert asked.waits
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.LEADER_REJOINED
    assert begun.reason == (
        f"Leader {group.leader_id} re-joining group during Stable; client reason: new partitions"
    )
    assert [name.member_id for name in begun.waiting_for] == [
        member_id for member_id in group.members if member_id != group.leader_id
    ]


def test_in_stable_a_follower_with_the_same_offer_is_answered_at_once(world: World) -> None:
    group = world.given_stable_group(members=2)
    follower = next(m for m in group.members if m != group.leader_id)
    asked = world.join("g", follower)
    assert asked.joined.generation_id == 1
    assert asked.joined.leader == group.leader_id
    assert asked.joined.member_id == follower
    assert not asked.joined.members
    assert asked.joined.skip_assignment is False
    assert group.state is GroupState.STABLE


@pytest.mark.parametrize(
    "protocols",
    [
        (("range", b"new"),),
        (("range", b"subscription"), ("sticky", b"")),
        (("sticky", b""), ("range", b"subscription")),
    ],
)
def test_in_stable_a_follower_with_another_offer_begins_a_rebalance(
    world: World, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    group = world.given_stable_group(members=2)
    follower = next(m for m in group.members if m != group.leader_id)
    assert world.join("g", follower, protocols=protocols).waits
    assert group.state is GroupState.PREPARING_REBALANCE


def test_the_order_of_protocols_is_part_of_the_offer(world: World) -> None:
    group = world.given_stable_group(members=2, protocols=BOTH)
    follower = next(m for m in group.members if m != group.leader_id)
    assert world.join("g", follower, protocols=BOTH[::-1]).waits


def test_a_second_join_takes_the_place_of_the_parked_one_which_is_sent_back(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    first = world.join("g", leader)
    second = world.join("g", leader)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.waits
    assert group.awaiting_join_count == 1


def test_a_new_member_in_stable_begins_a_rebalance_in_kafkas_words(world: World) -> None:
    world.given_stable_group(members=1)
    world.join("g", version=3)
    begun = world.events_of(RebalanceBegun)[-1]
    added = world.events_of(MemberAdded)[-1]
    assert begun.cause is RebalanceCause.MEMBER_JOINED
    assert begun.reason == (
        f"Adding new member {added.member.member_id} with group instance id null; "
        "client reason: not provided"
    )


def test_the_leaders_answer_lists_all_members_with_the_metadata_of_the_chosen_protocol() -> None:
    world = World(kafka_settings(group_initial_rebalance_delay_ms=1_000))
    first = world.join("g", version=3, protocols=BOTH)
    second = world.join("g", version=3, protocols=(("roundrobin", b"other"),))
    world.advance(2_000)
    assert first.joined.protocol_name == "roundrobin"
    assert [(m.member_id, m.metadata) for m in first.joined.members] == [
        (first.joined.member_id, b"rr"),
        (second.joined.member_id, b"other"),
    ]
    assert second.joined.leader == first.joined.member_id
    assert not second.joined.members


def _given(world: World, state: str) -> None:
    match state:
        case "Empty":
            world.join("g")
        case "CompletingRebalance":
            world.given_joined()
        case "Stable":
            world.given_stable_group()
        case "PreparingRebalance":
            world.join("g", version=3)
    assert world.group().state == state
