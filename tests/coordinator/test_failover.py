"""Failover: a coordinator dies, and another process continues from the log; what clients see.

First the five steps of a rebalance at which it may die, then what a load restores and what not. A
crash loses what was not stored, and everything in memory; clients send again what was not answered.
"""

import pytest

from coordinator.classic.generation_record import GENERATION_BEGUN
from coordinator.classic.group import ClassicGroup
from coordinator.records import record_type
from coordinator.restore import apply_record
from protocol.names import ErrorCode, GenerationId, GroupId, GroupState, MemberId
from storage.api import StoredRecord
from tests.world import SESSION_TIMEOUT_MS, Asked, World, kafka_settings


def rejoin_all(world: World, *members: str, instance_ids: bool = False) -> list[Asked]:
    return [world.join("g", member_id) for member_id in members]


def finish_rebalance(world: World, asked: list[Asked]) -> None:
    """What clients do after their joins were answered."""
    world.sync_all("g", [answer.joined for answer in asked])
    assert world.group().state is GroupState.STABLE


def check_commits(world: World, expected: int) -> None:
    assert world.group().offsets["t"][0].committed_offset == expected  # type: ignore[index]


# ---------------------------------------------------------------- five steps of a rebalance


def test_step_1_the_rebalance_has_begun_and_nobody_knows(world: World) -> None:
    group = world.given_stable_group(members=2)
    first, second = group.members
    world.commit("g", first, 1, offsets={0: 7})
    world.leave("g", second)  # answered: two is gone for itself
    world.crash()

    # The old generation stands, and a member that is silent in it expires.
    assert world.beat("g", first, 1).error is ErrorCode.NONE
    check_commits(world, 7)
    world.advance(SESSION_TIMEOUT_MS - 1)
    assert world.beat("g", first, 1).error is ErrorCode.NONE
    world.advance(1)
    assert world.beat("g", first, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    finish_rebalance(world, rejoin_all(world, first))
    assert world.group().generation_id == 2
    check_commits(world, 7)


def test_step_2_some_members_have_heard_of_the_rebalance(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader, follower = group.members
    world.join("g", version=3)
    assert world.beat("g", leader, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    world.crash()

    # One joins again with its id, as it was told; the other one goes on until it hears of it.
    assert world.beat("g", follower, 1).error is ErrorCode.NONE
    first = world.join("g", leader, protocols=(("range", b"changed"),))
    assert world.beat("g", follower, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    finish_rebalance(world, [first, world.join("g", follower)])
    assert world.group().generation_id == 2


def test_step_3_some_joins_have_arrived(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    parked = world.join("g", leader)
    world.crash()
    assert parked.waits, "its connection broke: there never is an answer"

    again = world.join("g", leader)
    assert world.beat("g", follower, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    finish_rebalance(world, [again, world.join("g", follower)])
    assert world.group().generation_id == 2


def test_step_4_the_generation_is_stored_and_nobody_was_answered(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader = group.leader_id
    follower = next(m for m in group.members if m != leader)
    world.storing = False
    asked = [world.join("g", leader), world.join("g", follower)]
    assert all(answer.waits for answer in asked)
    world.log.store()  # and the process dies before it hears of it
    world.storing = True
    world.crash()

    group = world.group()
    assert group.state is GroupState.COMPLETING_REBALANCE
    assert group.generation_id == 2
    # Their joins, sent again, are answered at once: the generation goes on.
    again = [world.join("g", leader), world.join("g", follower)]
    assert [answer.joined.generation_id for answer in again] == [2, 2]
    assert {m.member_id for m in again[0].joined.members} == {leader, follower}
    finish_rebalance(world, again)
    assert group.generation_id == 2


def test_step_4_the_generation_was_not_stored_so_it_never_was(world: World) -> None:
    group = world.given_stable_group(members=2)
    leader, follower = group.members
    world.storing = False
    asked = [world.join("g", leader), world.join("g", follower)]
    world.storing = True
    world.crash()
    assert all(answer.waits for answer in asked)
    assert world.group().generation_id == 1
    finish_rebalance(world, rejoin_all(world, leader, follower))
    assert world.group().generation_id == 2


def test_step_5_members_know_the_generation_and_sync_with_the_next_process(
    world: World,
) -> None:
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    world.crash()
    assert waiting.waits

    assert world.beat("g", leader.member_id, 1).error is ErrorCode.NONE
    assert world.commit("g", leader.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    asked = world.sync_all("g", [leader, follower])
    assert [answer.error for answer in asked] == [ErrorCode.NONE] * 2
    assert world.group().state is GroupState.STABLE
    assert world.group().generation_id == 1


def test_step_5_the_assignments_are_stored_and_nobody_was_answered(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    world.sync_all("g", [leader, follower])
    world.log.store()
    world.storing = True
    world.crash()
    assert world.group().state is GroupState.STABLE
    for n, answer in enumerate([leader, follower]):
        assert world.sync("g", answer.member_id, 1).synced.assignment == b"%d" % n


# ---------------------------------------------------------------- what is never done


@pytest.mark.parametrize("offered", [b"small", b"x" * 5_000])
def test_no_generation_is_used_twice_even_if_its_members_were_not_stored(offered: bytes) -> None:
    # With the large subscription the record of the generation keeps its number only.
    world = World(kafka_settings(max_batch_bytes=8_000))
    offer = (("range", b"s"), ("unused", offered))
    world.given_stable_group(members=1)
    world.leave("g", world.group().leader_id)
    world.given_joined(members=2, protocols=offer)
    used = world.group().generation_id
    world.crash()
    world.advance(60_000 + SESSION_TIMEOUT_MS)
    for _ in range(2):
        answers = world.given_joined(members=1)
        assert answers[0].generation_id > used
        used = answers[0].generation_id
        world.leave("g", answers[0].member_id)
        world.crash()


def test_nothing_loads_as_stable_without_assignments(world: World) -> None:
    world.given_joined(members=2)
    world.crash()
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    world.advance(59_000)
    world.crash()
    assert world.group().state in (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)


def test_a_log_at_rest_holds_no_record_of_ours_once_it_is_compacted(world: World) -> None:
    world.given_stable_group("a", members=2)
    world.given_stable_group("b", members=1)
    world.leave("b", world.group("b").leader_id)
    newest = {record.key: record.value for record in world.log.records}
    ours = [key for key in newest if record_type(key) == GENERATION_BEGUN]
    assert len(ours) == 2
    assert all(newest[key] is None for key in ours)


def test_to_a_kafka_the_group_stands_in_the_last_generation_with_assignments(
    world: World,
) -> None:
    group = world.given_stable_group(members=2)
    rejoin_all(world, *group.members)
    assert group.state is GroupState.COMPLETING_REBALANCE
    groups: dict[GroupId, ClassicGroup] = {}
    for record in world.log.records:
        if record_type(record.key) != GENERATION_BEGUN:  # what a Kafka skips
            apply_record(groups, record)
    seen = groups[GroupId("g")]
    assert seen.state is GroupState.STABLE
    assert seen.generation_id == 1
    assert all(member.assignment for member in seen.members.values())


# ---------------------------------------------------------------- what a load restores


def test_a_member_that_offers_more_than_was_stored_rebalances_when_it_joins_again(
    world: World,
) -> None:
    # Kafka's record keeps the metadata of the chosen protocol only.
    both = (("range", b""), ("sticky", b""))
    group = world.given_stable_group(members=2, protocols=both)
    follower = next(m for m in group.members if m != group.leader_id)
    world.crash()
    assert world.beat("g", follower, 1).error is ErrorCode.NONE
    assert world.join("g", follower, protocols=both).waits
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_generation_that_had_begun_is_restored_with_all_that_its_members_offer(
    world: World,
) -> None:
    both = (("range", b"r"), ("sticky", b"s"))
    answers = world.given_joined(members=2, protocols=both, instances=["a", None])
    before = world.group()
    world.crash()
    after = world.group()
    assert after is not before
    for name in (
        "state",
        "generation_id",
        "newest_generation_id",
        "protocol_type",
        "protocol_name",
        "leader_id",
        "static_members",
        "pending_sync_ids",
        "protocol_counts",
        "subscribed_topics",
        "state_since_ms",
        "generation_recorded",
    ):
        assert getattr(after, name) == getattr(before, name), name
    assert list(after.members) == list(before.members)
    for member_id, member in after.members.items():
        assert member.protocols == before.members[member_id].protocols
        assert member.session_timeout_ms == SESSION_TIMEOUT_MS
    synced = world.sync_all("g", answers)
    assert all(answer.error is ErrorCode.NONE for answer in synced)


def test_members_that_do_not_sync_after_a_restart_are_removed_as_ever(world: World) -> None:
    world.given_joined(members=1, session_timeout_ms=600_000, rebalance_timeout_ms=20_000)
    world.crash()
    world.advance(19_999)
    assert world.group().members
    world.advance(1)
    assert world.group().state is GroupState.EMPTY


def test_switched_off_a_generation_is_stored_with_its_assignments_as_in_kafka() -> None:
    world = World(kafka_settings(generation_records=False))
    leader, _ = world.given_joined(members=2)
    assert not [r for r in world.log.records if record_type(r.key) == GENERATION_BEGUN]
    world.crash()
    assert world.group().state is GroupState.EMPTY
    assert world.sync("g", leader.member_id, 1).error is ErrorCode.UNKNOWN_MEMBER_ID

    world.given_stable_group("h", members=1)
    assert not [r for r in world.log.records if record_type(r.key) == GENERATION_BEGUN]


def test_an_older_record_of_a_generation_is_ignored(world: World) -> None:
    # As after a log that was compacted in an order of its own.
    world.given_stable_group(members=1)
    begun = [r for r in world.log.records if record_type(r.key) == GENERATION_BEGUN and r.value]
    late = StoredRecord(world.log.end_position, 0, begun[0].key, begun[0].value)
    world.log.records.append(late)
    world.log.store()
    world.crash()
    assert world.group().state is GroupState.STABLE
    assert world.group().generation_id == 1


def test_a_generation_of_a_version_that_nobody_knows_fails_the_load(world: World) -> None:
    world.given_joined(members=1)
    (begun,) = [r for r in world.log.records if record_type(r.key) == GENERATION_BEGUN]
    assert begun.value is not None
    for value in (b"\x00\x09" + begun.value[2:], begun.value[:9], b""):
        with pytest.raises(Exception, match="record type 29283"):
            apply_record({}, StoredRecord(0, 0, begun.key, value))


def test_a_deleted_group_leaves_no_generation_behind(world: World) -> None:
    leader = world.given_joined(members=1)[0]
    world.leave("g", leader.member_id)
    assert world.group().state is GroupState.EMPTY
    world.crash()
    world.advance(world.settings.offsets_retention_check_interval_ms)
    assert not world.has_group()
    world.crash()
    assert not world.has_group()


def test_a_coordinator_that_dies_over_and_over_loses_no_acknowledged_commit(world: World) -> None:
    group = world.given_stable_group(members=1)
    member_id, generation_id = MemberId(group.leader_id), GenerationId(1)
    for offset in range(1, 20):
        world.storing = offset % 3 != 0
        asked = world.committing("g", member_id, generation_id, offsets={0: offset})
        acknowledged = not asked.waits
        world.crash()
        kept = world.group().offsets["t"][0].committed_offset  # type: ignore[index]
        assert kept == (offset if acknowledged else offset - 1)
        assert world.beat("g", member_id, generation_id).error is ErrorCode.NONE
