"""Stored assignments: the leader's on their way to the disk, and what may happen meanwhile."""

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import (
    AssignmentDropped,
    AssignmentRefused,
    GroupStabilized,
    RebalanceBegun,
)
from protocol.names import ErrorCode, GroupState
from seams.now import Now
from tests.world import SESSION_TIMEOUT_MS, World, kafka_settings


def test_a_join_before_the_leaders_sync_sends_the_waiting_syncs_back(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    waiting = world.sync("g", follower.member_id, 1)
    newcomer = world.join("g", version=3)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert newcomer.waits

    late = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"x"})
    assert late.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_join_while_the_assignments_are_stored_wins_over_them(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync_all("g", [leader, follower])
    newcomer = world.join("g", version=3)
    assert world.group().state is GroupState.PREPARING_REBALANCE

    world.store()
    assert [answer.error for answer in asked] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert world.group().state is GroupState.PREPARING_REBALANCE
    assert all(not m.assignment for m in world.group().members.values())
    assert len(world.events_of(AssignmentDropped)) == 1
    assert not world.events_of(GroupStabilized)

    again = [world.join("g", m.member_id) for m in (leader, follower)]
    world.store()
    assert [a.joined.generation_id for a in (*again, newcomer)] == [2, 2, 2]


def test_assignments_stored_too_late_do_not_apply_to_the_next_generation(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    first = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"old"})
    again = world.join("g", leader.member_id, protocols=(("range", b"new"),))
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    assert world.group().generation_id == 2

    world.store()
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert again.joined.generation_id == 2
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    assert world.group().members[leader.member_id].assignment == b""


def test_a_member_that_leaves_while_the_assignments_are_stored_starts_a_rebalance(
    world: World,
) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"x"})
    left = world.leave("g", follower.member_id)
    world.store()
    assert asked.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert left.left.error_code is ErrorCode.NONE
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_heartbeats_and_joins_are_served_while_the_assignments_are_stored(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    world.sync_all("g", [leader, follower])
    beat = world.beat("g", follower.member_id, 1)
    again = world.join("g", follower.member_id)
    assert beat.waits
    world.store()
    assert beat.error is ErrorCode.NONE
    assert again.joined.generation_id == 1


def test_a_second_sync_of_the_leader_before_the_first_is_stored_is_the_one_that_is_answered(
    world: World,
) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    first = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    second = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"b"})
    world.store()
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.error is ErrorCode.NONE
    stored = second.synced.assignment
    world.crash()
    assert world.sync("g", leader.member_id, 1).synced.assignment == stored


# --- a disk that stalls: Kafka's OperationTimeout of offsets.commit.timeout.ms -------------------


TIMEOUT_MS = 5_000


def test_assignments_that_are_not_stored_in_time_are_refused_to_all_who_wait(
    world: World,
) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    early = world.sync("g", follower.member_id, 1)
    world.advance(1_000)
    first = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    world.advance(TIMEOUT_MS - 1)
    assert early.waits
    assert first.waits
    assert world.group().state is GroupState.COMPLETING_REBALANCE

    world.advance(1)
    for asked in (early, first):
        assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert asked.synced.assignment == b""
        assert asked.synced.protocol_name is None
    assert world.group().state is GroupState.PREPARING_REBALANCE
    (refused,) = world.events_of(AssignmentRefused)
    assert (refused.leader_id, refused.generation_id) == (leader.member_id, 1)
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.ASSIGNMENT_NOT_STORED
    assert begun.reason == (
        "Error COORDINATOR_NOT_AVAILABLE when storing group assignmentduring SyncGroup "
        f"(member: {leader.member_id})."
    )

    # What is stored after that is handed out to nobody, and the members rejoin.
    world.store()
    assert not world.events_of(GroupStabilized)
    world.storing = True
    rejoining = [world.join("g", m.member_id) for m in (leader, follower)]
    again = [answer.joined for answer in rejoining]
    assert [answer.generation_id for answer in again] == [2, 2]
    answers = world.sync_all("g", again)
    assert [answer.error for answer in answers] == [ErrorCode.NONE] * 2
    assert world.group().state is GroupState.STABLE


def test_stored_a_moment_before_they_are_handed_out(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync_all("g", [leader, follower])
    world.advance(TIMEOUT_MS - 1)
    world.store()
    assert [answer.error for answer in asked] == [ErrorCode.NONE] * 2
    assert world.group().state is GroupState.STABLE
    # And nothing more comes of the deadline.
    world.advance(1)
    assert not world.events_of(AssignmentRefused)
    assert world.group().state is GroupState.STABLE


def test_only_those_of_an_older_sync_are_refused(world: World) -> None:
    """Two groups of one partition, a while apart."""
    first, second = (world.given_joined(name, members=1)[0] for name in ("g", "h"))
    world.storing = False
    asked = world.sync("g", first.member_id, 1, assignments={first.member_id: b"a"})
    world.advance(2_000)
    later = world.sync("h", second.member_id, 1, assignments={second.member_id: b"b"})
    world.advance(3_000)
    assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert later.waits
    world.store()
    assert later.synced.assignment == b"b"
    assert world.group("h").state is GroupState.STABLE
    assert world.group("g").state is GroupState.PREPARING_REBALANCE


def test_a_member_that_was_refused_has_its_whole_session_to_come_back(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    world.advance(TIMEOUT_MS + SESSION_TIMEOUT_MS - 1)
    assert list(world.group().members) == [leader.member_id]


def test_a_rebalance_that_began_meanwhile_is_not_begun_again(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    world.sync_all("g", [leader, follower])
    world.join("g", version=3)
    begun = len(world.events_of(RebalanceBegun))
    world.advance(TIMEOUT_MS)
    assert len(world.events_of(RebalanceBegun)) == begun
    assert not world.events_of(AssignmentRefused)


def test_the_leader_whose_first_sync_was_given_up_is_refused_in_its_second(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    world.advance(TIMEOUT_MS - 1)
    second = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"b"})
    assert second.waits
    world.advance(1)  # the record is as old as the first one
    assert second.error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_full_log_does_not_keep_the_refusal(world: World) -> None:
    leader, follower = world.given_joined(members=2)
    world.storing = False
    asked = world.sync_all("g", [leader, follower])
    world.log.full = True
    world.advance(TIMEOUT_MS)
    assert [answer.error for answer in asked] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    # The rebalance can only go on once there is room.
    assert world.join("g", leader.member_id).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.full = False
    world.storing = True
    world.step()
    again = [world.join("g", m.member_id) for m in (leader, follower)]
    assert [answer.joined.generation_id for answer in again] == [2, 2]


def test_the_time_of_a_sync_is_that_of_a_commit() -> None:
    world = World(kafka_settings(offsets_commit_timeout_ms=50))
    (leader,) = world.given_joined(members=1)
    world.storing = False
    asked = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    world.advance(49)
    assert asked.waits
    world.advance(1)
    assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_what_was_refused_and_stored_after_all_is_what_a_restart_finds(world: World) -> None:
    """As in Kafka: the log says what it says, until the next generation is written over it."""
    (leader,) = world.given_joined(members=1)
    world.storing = False
    asked = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    world.advance(TIMEOUT_MS)
    assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.store()
    world.crash()
    world.storing = True
    assert world.group().state is GroupState.STABLE
    assert world.sync("g", leader.member_id, 1).synced.assignment == b"a"


def test_a_shard_that_is_closed_forgets_what_it_waited_for(world: World) -> None:
    (leader,) = world.given_joined(members=1)
    world.storing = False
    asked = world.sync("g", leader.member_id, 1, assignments={leader.member_id: b"a"})
    shard = world.shard
    shard.close(world.now)
    assert asked.error is ErrorCode.NOT_COORDINATOR
    shard.tick(Now(world.now.mono_ms + TIMEOUT_MS, world.now.wall_ms + TIMEOUT_MS))
    assert not world.events_of(AssignmentRefused)
