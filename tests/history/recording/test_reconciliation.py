"""Rebalances of consumer groups on real turns: what the history has of proper consumers."""

import pytest

from history.causes import Cause, End, WaitEnd
from history.consumer_entries import (
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RevocationRequestedEntry,
)
from history.entries import RebalanceEndedEntry
from protocol.names import GroupState, TopicName
from tests.consumer_client import ConsumerClient, until_stable
from tests.history.history_world import HistoryWorld


@pytest.fixture
def world() -> HistoryWorld:
    world = HistoryWorld()
    world.given_topics(t=4)
    return world


def given_two(world: HistoryWorld) -> tuple[ConsumerClient, ConsumerClient]:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    world.advance(10_000)
    b.join()
    until_stable(a, b)
    return a, b


def test_a_second_member_takes_partitions_over(world: HistoryWorld) -> None:
    given_two(world)
    rebalance, first = world.rebalances()
    assert (first.cause, first.members_after, first.duration_ms) == (Cause.MEMBER_JOINED, 1, 0)
    assert (rebalance.end, rebalance.cause) == (End.STABLE, Cause.MEMBER_JOINED)
    assert rebalance.trigger is not None
    assert rebalance.trigger.client_id == "b"
    assert (rebalance.generation_before, rebalance.generation_after) == (2, 3)
    assert rebalance.partitions_moved == 2
    (wait,) = rebalance.waited_for
    assert (wait.member.member_id, wait.end, wait.partitions) == ("a", WaitEnd.REVOKED, 2)
    assert {joined.member.member_id for joined in rebalance.joined} == {"a", "b"}
    assert {move.to_member for move in rebalance.moves} == {"b"}
    assert {move.topic for move in rebalance.moves} == {"t"}


def test_each_step_of_a_handover_has_an_entry(world: HistoryWorld) -> None:
    given_two(world)
    (requested,) = [e for e in world.history if isinstance(e, RevocationRequestedEntry)]
    assert (requested.member_epoch, requested.target_epoch) == (2, 3)
    *_, assigned = [e for e in world.history if isinstance(e, PartitionsAssignedEntry)]
    assert assigned.member.member_id == "b"
    assert {handover.from_member for handover in assigned.handed_over} == {"a"}


def test_a_member_that_leaves_gives_its_partitions_to_the_others(world: HistoryWorld) -> None:
    a, b = given_two(world)
    b.leave()
    until_stable(a)
    rebalance = world.last
    assert (rebalance.cause, rebalance.end) == (Cause.MEMBER_LEFT, End.STABLE)
    assert (rebalance.members_before, rebalance.members_after) == (2, 1)
    assert rebalance.partitions_moved == 2
    assert rebalance.unowned_partition_seconds == 10.0  # two, until a's next heartbeat


def test_a_silent_member_expires_with_the_time_since_it_was_heard(world: HistoryWorld) -> None:
    a, _ = given_two(world)
    for _ in range(10):
        world.advance(5_000)
        a.beat()
    until_stable(a)
    rebalance = world.last
    assert (rebalance.cause, rebalance.end) == (Cause.SESSION_EXPIRED, End.STABLE)
    assert (rebalance.silent_ms, rebalance.session_timeout_ms) == (45_000, 45_000)
    assert rebalance.unowned_partition_seconds == 2 * 45


def test_new_partitions_are_a_cause_with_their_topic(world: HistoryWorld) -> None:
    a, b = given_two(world)
    world.given_topics(t=6)
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    until_stable(a, b)
    rebalance = world.last
    assert (rebalance.cause, rebalance.end) == (Cause.PARTITIONS_CHANGED, End.STABLE)
    assert [topic.topic for topic in rebalance.topics] == ["t"]
    assert rebalance.partitions_moved == 0
    *_, bumped = [e for e in world.history if isinstance(e, GroupEpochBumpedEntry)]
    assert bumped.topics == ("t",)


def test_heartbeats_of_a_stable_group_bring_no_entries(world: HistoryWorld) -> None:
    a, b = given_two(world)
    recorded = len(world.history)
    for _ in range(3):
        world.advance(5_000)
        a.beat()
        b.beat()
    assert len(world.history) == recorded


def test_a_crash_in_a_rebalance_does_not_end_it(world: HistoryWorld) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    world.advance(10_000)
    b.join()
    a.beat()
    assert world.consumer_group().state is GroupState.RECONCILING
    world.crash()
    until_stable(a, b)
    rebalance, _loaded, _ = world.rebalances()
    assert (rebalance.end, rebalance.generation_after) == (End.STABLE, 3)
    assert (
        sum(isinstance(entry, RebalanceEndedEntry) for entry in world.history) == 1
    )  # since the crash
