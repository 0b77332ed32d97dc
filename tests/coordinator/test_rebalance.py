"""A rebalance from begin to end: who is waited for, who is dropped, who leads, what is chosen."""

import pytest

from coordinator.classic.decide.complete_join import REJOIN_WAIT_MS_MIN
from coordinator.classic.decide.protocol_choice import choose_protocol
from coordinator.classic.events import (
    GenerationBegun,
    GroupEmptied,
    LeaderChanged,
    MembersRemoved,
    NoMemberRejoined,
    RebalanceBegun,
    RemovalCause,
)
from protocol.names import ErrorCode, GroupState
from tests.world import REBALANCE_TIMEOUT_MS, World, kafka_settings


def test_it_completes_as_soon_as_the_last_member_has_rejoined(world: World) -> None:
    group = world.given_stable_group(members=3)
    asked = [world.join("g", member_id) for member_id in list(group.members)[:2]]
    assert all(answer.waits for answer in asked)
    last = world.join("g", list(group.members)[2])
    assert [answer.joined.generation_id for answer in (*asked, last)] == [2, 2, 2]
    assert group.state is GroupState.COMPLETING_REBALANCE


def test_members_that_do_not_rejoin_in_time_are_dropped() -> None:
    world = World(kafka_settings(group_max_session_timeout_ms=REBALANCE_TIMEOUT_MS * 10))
    group = world.given_stable_group(members=3, session_timeout_ms=REBALANCE_TIMEOUT_MS * 2)
    absent = next(m for m in group.members if m != group.leader_id)
    asked = [world.join("g", m) for m in group.members if m != absent]
    world.advance(REBALANCE_TIMEOUT_MS - 1)
    assert all(answer.waits for answer in asked)
    world.advance(1)
    assert [answer.joined.generation_id for answer in asked] == [2, 2]
    assert absent not in group.members
    (removed,) = world.events_of(MembersRemoved)
    assert removed.cause is RemovalCause.DID_NOT_REJOIN
    assert [removal.member.member_id for removal in removed.removed] == [absent]
    assert world.beat("g", absent, 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_it_waits_for_the_longest_rebalance_timeout_of_all_members(world: World) -> None:
    first = world.join("g", version=3, rebalance_timeout_ms=20_000, session_timeout_ms=200_000)
    world.join("g", version=3, rebalance_timeout_ms=90_000, session_timeout_ms=200_000)
    world.advance(6_000)
    world.sync_all("g", [first.joined])
    again = world.join(
        "g", first.joined.member_id, rebalance_timeout_ms=20_000, session_timeout_ms=200_000
    )
    world.advance(89_999)
    assert again.waits
    world.advance(1)
    assert again.joined.generation_id == 2


def test_a_leader_that_does_not_rejoin_loses_its_role() -> None:
    world = World(kafka_settings())
    group = world.given_stable_group(members=2, session_timeout_ms=REBALANCE_TIMEOUT_MS * 2)
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    world.join("g", version=3, session_timeout_ms=REBALANCE_TIMEOUT_MS * 2)
    asked = world.join("g", follower, session_timeout_ms=REBALANCE_TIMEOUT_MS * 2)
    world.advance(REBALANCE_TIMEOUT_MS)
    assert leader not in group.members
    assert group.leader_id == asked.joined.leader != leader


def test_a_static_leader_that_does_not_rejoin_stays_a_member_but_does_not_lead(
    world: World,
) -> None:
    group = world.given_stable_group(
        instances=["a", "b"], session_timeout_ms=REBALANCE_TIMEOUT_MS * 2
    )
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    world.join(
        "g",
        follower,
        instance_id=group.members[follower].group_instance_id,
        protocols=(("range", b"new"),),
        session_timeout_ms=REBALANCE_TIMEOUT_MS * 2,
    )
    world.advance(REBALANCE_TIMEOUT_MS)
    assert group.generation_id == 2
    assert set(group.members) == {leader, follower}
    assert group.leader_id == follower
    (changed,) = world.events_of(LeaderChanged)
    assert changed.old_leader.member_id == leader
    assert changed.new_leader.member_id == follower
    begun = world.events_of(GenerationBegun)[-1]
    assert [name.member_id for name in begun.absent] == [leader]


def test_absent_static_members_are_in_the_leaders_list(world: World) -> None:
    group = world.given_stable_group(
        instances=["a", "b"], session_timeout_ms=REBALANCE_TIMEOUT_MS * 2
    )
    asked = world.join("g", group.leader_id, session_timeout_ms=REBALANCE_TIMEOUT_MS * 2)
    world.advance(REBALANCE_TIMEOUT_MS)
    assert {m.group_instance_id for m in asked.joined.members} == {"a", "b"}


def test_static_members_without_a_rebalance_timeout_are_waited_for_a_second_each_time(
    world: World,
) -> None:
    """A timeout of 0 was a rebalance that ended and began again as fast as the clock could tick."""
    waits_ms = 30_000
    group = world.given_stable_group(instances=["a", "b"], session_timeout_ms=waits_ms)
    for instance_id in ("a", "b"):
        back = world.join(
            "g", instance_id=instance_id, session_timeout_ms=waits_ms, rebalance_timeout_ms=0
        )
        assert back.error is ErrorCode.NONE
    newcomer = world.join("g", version=3, rebalance_timeout_ms=0)
    world.leave("g", next(m for m in group.members if group.members[m].is_new))
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.state is GroupState.PREPARING_REBALANCE
    world.advance(waits_ms - 1)
    assert 2 <= len(world.events_of(NoMemberRejoined)) <= waits_ms // REJOIN_WAIT_MS_MIN + 1

    # One that comes back waits for the rest of that second, no longer.
    back = world.join("g", instance_id="a", session_timeout_ms=waits_ms, rebalance_timeout_ms=0)
    world.advance(REJOIN_WAIT_MS_MIN)
    assert back.joined.generation_id == 2


def test_if_nobody_rejoins_the_static_ones_are_waited_for_again(world: World) -> None:
    group = world.given_stable_group(
        instances=["a", "b"], session_timeout_ms=REBALANCE_TIMEOUT_MS * 3
    )
    newcomer = world.join("g", version=3)
    world.leave("g", next(m for m in group.members if group.members[m].is_new))
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.state is GroupState.PREPARING_REBALANCE
    world.advance(REBALANCE_TIMEOUT_MS)
    assert len(world.events_of(NoMemberRejoined)) == 1
    assert group.generation_id == 1

    a, b = group.static_members.values()
    first = world.join("g", a, instance_id="a")
    assert first.waits
    second = world.join("g", b, instance_id="b")
    assert first.joined.generation_id == second.joined.generation_id == 2


def test_static_members_that_never_rejoin_end_with_their_sessions(world: World) -> None:
    group = world.given_stable_group(
        instances=["a", "b"], session_timeout_ms=REBALANCE_TIMEOUT_MS + 5_000
    )
    world.join("g", version=3)
    world.leave("g", next(m for m in group.members if group.members[m].is_new))
    world.advance(REBALANCE_TIMEOUT_MS + 5_000)
    assert group.state is GroupState.EMPTY
    assert not group.members


def test_parked_syncs_are_sent_back_when_a_new_rebalance_begins(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    parked = world.sync("g", follower.member_id, 1)
    assert parked.waits
    world.join("g", version=3)
    assert parked.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert parked.synced.assignment == b""
    assert world.sync("g", leader.member_id, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_lost_all_its_members_is_empty_in_a_new_generation(world: World) -> None:
    group = world.given_stable_group(members=2)
    world.leave("g", *group.members)
    assert group.state is GroupState.EMPTY
    assert group.generation_id == 2
    assert group.protocol_name is None
    assert group.protocol_type == "consumer"
    assert group.leader_id == ""
    assert len(world.events_of(GroupEmptied)) == 1

    world.crash()
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2
    assert world.group().protocol_type == "consumer"


def test_the_event_names_the_cause_the_trigger_and_who_is_waited_for(world: World) -> None:
    group = world.given_stable_group(members=2)
    follower = next(m for m in group.members if m != group.leader_id)
    world.leave("g", group.leader_id, reason="done")
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.from_state is GroupState.STABLE
    assert begun.old_generation_id == 1
    assert begun.rebalance_timeout_ms == REBALANCE_TIMEOUT_MS
    assert [name.member_id for name in begun.waiting_for] == [follower]


def test_the_event_says_how_long_each_member_was_kept_waiting(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    world.join("g", leader)
    world.advance(700)
    world.join("g", follower)
    begun = world.events_of(GenerationBegun)[-1]
    members = [member.member_id for member in begun.joined]
    waits = dict(zip(members, begun.waited_ms, strict=True))
    assert waits == {leader: 700, follower: 0}


def test_metadata_of_other_protocol_types_is_not_parsed(world: World) -> None:
    noise = bytes(range(256))
    answers = world.given_joined(
        members=2, protocol_type="connect", protocols=(("sessioned", noise),)
    )
    assert [m.metadata for m in answers[0].members] == [noise, noise]
    asked = world.sync_all("g", answers)
    assert [answer.synced.protocol_type for answer in asked] == ["connect", "connect"]
    assert world.group().subscribed_topics is None


# ---------------------------------------------------------------- the choice of a protocol


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        (["a"], "a"),
        (["ab"], "a"),
        (["ab", "ba", "ba"], "b"),
        (["ab", "b"], "b"),
        (["xab", "ybc", "zb"], "b"),
        (["cab", "abc", "bca", "acb"], "a"),
    ],
)
def test_the_most_votes_win_among_what_all_offer(offers: list[str], chosen: str) -> None:
    assert choose_protocol([tuple((name, b"") for name in names) for names in offers]) == chosen


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ("range", "roundrobin", "range"),
        ("range", "sticky", "sticky"),
        ("range", "cooperative-sticky", "range"),
        ("sticky", "cooperative-sticky", "sticky"),
    ],
)
def test_a_tie_goes_to_the_one_that_a_java_hash_map_names_first(
    first: str, second: str, chosen: str
) -> None:
    protocols = ((first, b""), (second, b""))
    assert choose_protocol([protocols, protocols[::-1]]) == chosen
    assert choose_protocol([protocols[::-1], protocols]) == chosen


def test_a_name_that_a_member_offers_twice_counts_once(world: World) -> None:
    twice = (("range", b"1"), ("range", b"2"))
    group = world.given_stable_group(members=2, protocols=twice)
    assert group.protocol_counts == {"range": 2}
    assert group.protocol_name == "range"
