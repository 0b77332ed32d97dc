"""Causes: each rebalance has one named cause, the right one, and a trigger; in virtual time.

Drives the real coordinator. What several things brought about is named by what began it, with two
exceptions: a rebalance that lasted until its timeout, and the first one after a restart that cut
another off.
"""

from collections.abc import Callable

import pytest

from coordinator.member_identity import MemberIdentity
from coordinator.settings import GroupSettings
from history import ownership
from history.causes import Cause, End, Removal, WaitEnd
from history.entries import (
    AssignmentReceivedEntry,
    AssignmentRefusedEntry,
    LapseForgivenEntry,
    MemberFencedEntry,
    MemberLapsedEntry,
    MembersRemovedEntry,
    RebalanceEndedEntry,
)
from history.entry_values import TopicPartitionCounts
from history.recording import attribution as history_causes
from protocol.names import ErrorCode, GroupState, MemberId, TopicName
from tests.history.history_world import HistoryWorld, offers

SESSION_MS = 10_000


def finish(world: HistoryWorld, *member_ids: str) -> None:
    """These rejoin, and all that wait get their assignment."""
    for member_id in member_ids:
        world.rejoin(member_id)
    group = world.group()
    assert group.state is GroupState.COMPLETING_REBALANCE, group.state
    answers = [
        token.answers[-1]
        for token in world.tokens
        if token.answers and getattr(token.answers[-1], "generation_id", 0) == group.generation_id
    ]
    world.assign([answer for answer in answers if getattr(answer, "leader", "")])  # type: ignore[misc]
    assert world.group().state is GroupState.STABLE


def test_the_first_member_of_a_group(world: HistoryWorld) -> None:
    (only,) = world.consumers(1)
    last = world.last
    assert (last.cause, last.end) == (Cause.MEMBER_JOINED, End.STABLE)
    assert last.trigger == MemberIdentity(only, None, "client", "/127.0.0.1")
    assert (last.generation_before, last.generation_after) == (0, 1)
    assert (last.members_before, last.members_after) == (0, 1)
    assert last.duration_ms == world.settings.group_initial_rebalance_delay_ms
    assert last.waited_for == ()
    assert (last.partitions_moved, last.unowned_partition_seconds) == (0, 0.0)


def test_a_member_joins_and_the_others_are_waited_for(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.advance(1_000)
    world.newcomer("third")
    world.advance(700)
    world.rejoin(ids[0])
    world.advance(300)
    finish(world, ids[1])
    last = world.last
    assert last.cause is Cause.MEMBER_JOINED
    assert last.trigger is not None
    assert last.trigger.client_id == "third"
    waits = {wait.member.member_id: (wait.join_delay_ms, wait.end) for wait in last.waited_for}
    assert waits == {ids[0]: (700, WaitEnd.REJOINED), ids[1]: (1_000, WaitEnd.REJOINED)}
    assert (last.members_before, last.members_after, last.duration_ms) == (2, 3, 1_000)
    assert [joined.join_delay_ms for joined in last.joined] == [1_000, 700, 0]


@pytest.mark.parametrize(("reason", "expected"), [("shutting down", "shutting down"), (None, "")])
def test_a_member_leaves(world: HistoryWorld, reason: str | None, expected: str) -> None:
    ids = world.consumers(2)
    world.leave("g", ids[1], reason=reason)
    finish(world, ids[0])
    last = world.last
    assert last.cause is Cause.MEMBER_LEFT
    assert last.trigger is not None
    assert last.trigger.member_id == ids[1]
    assert last.client_reason == expected
    assert (last.members_before, last.members_after) == (2, 1)


def test_a_session_expires(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.advance(SESSION_MS - 1)
    assert world.heartbeat(world.group(), ids[0]) is ErrorCode.NONE
    world.advance(1)
    finish(world, ids[0])
    last = world.last
    assert last.cause is Cause.SESSION_EXPIRED
    assert last.trigger is not None
    assert last.trigger.member_id == ids[1]
    # Its two partitions were read by nobody since its last sign of life; the others' were given
    # up and taken back in the same instant.
    assert last.unowned_partition_seconds == 2 * SESSION_MS / 1000
    assert last.partitions_moved == 2


def test_a_member_that_does_not_rejoin_names_the_rebalance_that_had_to_wait_for_it(
    world: HistoryWorld,
) -> None:
    ids = world.consumers(2)
    world.newcomer("third")
    world.rejoin(ids[0])
    for _ in range(5):  # it is alive, and does not rejoin
        world.advance(6_000)
        world.heartbeat(world.group(), ids[1])
    finish(world)
    last = world.last
    assert last.cause is Cause.REBALANCE_TIMEOUT
    assert last.began_by is Cause.MEMBER_JOINED
    assert last.trigger is not None
    assert last.trigger.member_id == ids[1]
    (wait,) = [wait for wait in last.waited_for if wait.member.member_id == ids[1]]
    assert wait.end is WaitEnd.DROPPED
    assert last.also[0].cause is Cause.MEMBER_JOINED
    assert last.also[0].member is not None
    assert last.also[0].member.client_id == "third"
    assert last.duration_ms == 30_000
    assert (last.members_before, last.members_after) == (2, 2)


def test_a_member_that_does_not_sync(world: HistoryWorld) -> None:
    answers = world.given_joined(members=2, protocols=offers("t"), rebalance_timeout_ms=30_000)
    world.assign(answers, late=[answers[1].member_id])
    for _ in range(5):
        world.advance(6_000)
        for answer in answers:
            world.heartbeat(world.group(), answer.member_id)
    finish(world, answers[0].member_id)
    last, before = world.rebalances()
    assert last.cause is Cause.SYNC_TIMEOUT
    assert last.trigger is not None
    assert last.trigger.member_id == answers[1].member_id
    assert before.end is End.STABLE
    assert before.duration_ms == 6_000  # until the assignments were handed out
    assert (last.members_before, last.members_after) == (2, 1)


@pytest.mark.parametrize("changing", [0, 1])
def test_a_member_subscribes_to_something_else_the_leader_too(
    world: HistoryWorld, changing: int
) -> None:
    ids = world.consumers(2)
    world.rejoin(ids[changing], protocols=offers("t", "u"), reason="subscribing to u")
    finish(world, ids[1 - changing])
    assert world.last.cause is Cause.SUBSCRIPTION_CHANGED
    assert world.last.trigger is not None
    assert world.last.trigger.member_id == ids[changing]
    assert world.last.client_reason == "subscribing to u"


def test_the_leader_rejoins_for_reasons_of_its_own(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.rejoin(ids[0], reason="enforced by its user")
    finish(world, ids[1])
    assert world.last.cause is Cause.LEADER_REJOINED
    assert world.last.client_reason == "enforced by its user"


def test_a_member_that_asks_again_for_what_stands_begins_nothing(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.rejoin(ids[1])
    assert len(world.rebalances()) == 1


def test_partitions_changed_and_the_leader_noticed(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.advance(5)
    world.recorded.recorder.topics_changed([TopicPartitionCounts("other")], world.now)
    world.rejoin(ids[0])
    finish(world, ids[1])
    assert world.last.cause is Cause.LEADER_REJOINED  # that topic was none of its business
    world.advance(5)
    world.recorded.recorder.topics_changed([TopicPartitionCounts("t")], world.now)
    world.advance(3_000)
    world.rejoin(ids[0])
    finish(world, ids[1])
    assert world.last.cause is Cause.PARTITIONS_CHANGED
    world.advance(5)
    world.rejoin(ids[0])
    finish(world, ids[1])
    assert world.last.cause is Cause.LEADER_REJOINED  # the change had its rebalance


def test_partitions_changed_and_the_coordinator_says_so() -> None:
    world = HistoryWorld(
        GroupSettings(offsets_topic_num_partitions=1, rebalance_on_partition_change=True)
    )
    ids = world.consumers(2)
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    world.advance(world.settings.partition_change_delay_ms)
    finish(world, *ids)
    assert world.last.cause is Cause.PARTITIONS_CHANGED
    assert world.last.trigger is None


def test_a_static_member_is_replaced_and_nobody_else_notices(world: HistoryWorld) -> None:
    world.consumers(2, instances=["a", "b"])
    generation = world.group().generation_id
    world.join("g", instance_id="b", protocols=offers("t"))
    last = world.last
    assert (last.cause, last.end) == (Cause.STATIC_MEMBER_REPLACED, End.KEPT)
    assert (last.generation_before, last.generation_after) == (generation, generation)
    assert last.trigger is not None
    assert last.trigger.group_instance_id == "b"
    assert (last.duration_ms, last.partitions_moved) == (0, 0)


def test_a_static_member_is_replaced_before_it_fetched_its_assignment(world: HistoryWorld) -> None:
    answers = world.given_joined(members=2, instances=["a", "b"], protocols=offers("t"))
    late = next(answer.member_id for answer in answers if not answer.members)
    world.assign(answers, late=[late])
    assert world.last.end is End.RUNNING
    instance_id = world.group().members[MemberId(late)].group_instance_id

    world.join("g", instance_id=instance_id, protocols=offers("t"))

    kept, formed = world.rebalances()[:2]
    assert (kept.cause, kept.end) == (Cause.STATIC_MEMBER_REPLACED, End.KEPT)
    assert (formed.cause, formed.end) == (Cause.MEMBER_JOINED, End.STABLE)
    assert world.recorded.index.running(world.group().group_id) is None


def test_a_static_member_is_replaced_by_one_with_another_protocol(world: HistoryWorld) -> None:
    both = [*offers("t"), ("roundrobin", offers("t")[0][1])]
    answers = world.given_joined(
        members=2, instances=["a", "b"], protocols=both, rebalance_timeout_ms=30_000
    )
    world.assign(answers)
    world.advance(4_000)
    world.join("g", instance_id="b", protocols=[("roundrobin", offers("t")[0][1])])
    last = world.last
    assert (last.cause, last.end) == (Cause.STATIC_MEMBER_REPLACED, End.RUNNING)
    assert (last.generation_after, last.duration_ms) == (None, None)
    assert [wait.member.group_instance_id for wait in last.waited_for] == ["a"]


def test_a_restart_that_nobody_has_to_notice(world: HistoryWorld) -> None:
    world.consumers(2)
    world.crash()
    last = world.last
    assert (last.cause, last.end) == (Cause.COORDINATOR_MOVED, End.KEPT)
    assert last.generation_before == last.generation_after == 1
    assert (last.members_before, last.members_after) == (2, 2)
    world.advance(1_000)
    world.newcomer("third")
    assert world.last.cause is Cause.MEMBER_JOINED  # no fault of the restart


def test_a_leader_that_rejoins_because_of_a_restart(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.crash()
    world.advance(300)
    world.rejoin(ids[0], reason="cached metadata has changed")
    finish(world, ids[1])
    assert (world.last.cause, world.last.began_by) == (
        Cause.COORDINATOR_MOVED,
        Cause.LEADER_REJOINED,
    )
    world.rejoin(ids[0])
    assert world.last.cause is Cause.LEADER_REJOINED


def test_of_a_loaded_group_only_the_chosen_protocol_is_known(world: HistoryWorld) -> None:
    both = [*offers("t"), ("roundrobin", offers("t")[0][1])]
    answers = world.given_joined(members=1, protocols=both, rebalance_timeout_ms=30_000)
    world.assign(answers)
    world.crash()
    world.advance(20_000 - 10_001)
    world.heartbeat(world.group(), answers[0].member_id)
    world.advance(5_000)
    world.rejoin(answers[0].member_id, protocols=both)
    assert world.last.cause is Cause.LEADER_REJOINED


def test_a_restart_in_the_middle_of_a_rebalance(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.newcomer("third")
    assert world.last.end is End.RUNNING
    world.crash()
    moved, cut_off, _ = world.rebalances()
    assert (cut_off.cause, cut_off.end) == (Cause.MEMBER_JOINED, End.INTERRUPTED)
    assert cut_off.generation_before == cut_off.generation_after == 1
    assert {wait.end for wait in cut_off.waited_for} == {WaitEnd.INTERRUPTED}
    assert (moved.cause, moved.end) == (Cause.COORDINATOR_MOVED, End.KEPT)
    world.advance(500)
    world.newcomer("third")
    finish(world, *ids)
    assert (world.last.cause, world.last.began_by) == (
        Cause.COORDINATOR_MOVED,
        Cause.MEMBER_JOINED,
    )
    world.newcomer("fourth")
    assert world.last.cause is Cause.MEMBER_JOINED  # the one after it is its own


def test_long_after_such_a_restart_a_rebalance_is_its_own(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.newcomer("third")
    world.crash()
    for _ in range(20):
        world.advance(6_000)
        for member_id in ids:
            world.heartbeat(world.group(), member_id)
    world.newcomer("fourth")
    assert world.last.cause is Cause.MEMBER_JOINED


def test_a_restart_between_the_joins_and_the_assignment_goes_on_where_it_was(
    world: HistoryWorld,
) -> None:
    answers = world.given_joined(members=2, protocols=offers("t"), rebalance_timeout_ms=30_000)
    world.crash()
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    world.advance(250)
    world.assign(answers)
    running = [rebalance for rebalance in world.rebalances() if rebalance.end is not End.KEPT]
    assert len(running) == 1
    assert (running[0].cause, running[0].end) == (Cause.MEMBER_JOINED, End.STABLE)
    assert running[0].duration_ms == 6_250


@pytest.mark.parametrize("by", ["instance", "reason", "another client"])
def test_an_operator_removes_a_member(world: HistoryWorld, by: str) -> None:
    instances = ["a", "b"] if by == "instance" else []
    ids = world.consumers(2, instances=instances)
    if by == "instance":
        world.leave("g", ("", "b"))
    elif by == "reason":
        world.leave("g", ids[1], reason="member was removed by an admin: it is stuck")
    else:
        world.leaving_as("an-admin", ids[1])
    last = world.last
    assert last.cause is Cause.OPERATOR
    assert last.trigger is not None
    assert last.trigger.member_id in ids
    removed = [event for event in world.history if isinstance(event, MembersRemovedEntry)]
    assert [event.cause for event in removed] == [Removal.OPERATOR]
    if by == "another client":
        assert last.trigger.client_id == "an-admin"


def test_the_last_member_leaves(world: HistoryWorld) -> None:
    (only,) = world.consumers(1)
    world.leave("g", only)
    last = world.last
    assert (last.cause, last.end) == (Cause.MEMBER_LEFT, End.EMPTY)
    assert (last.generation_before, last.generation_after) == (1, 2)
    assert (last.members_before, last.members_after) == (1, 0)


# ---------------------------------------------------------------- several things at once


def test_what_else_happens_in_a_running_rebalance_is_recorded_beside_its_cause(
    world: HistoryWorld,
) -> None:
    ids = world.consumers(3)
    world.newcomer("fourth")
    world.leave("g", ids[2])
    world.newcomer("fifth")
    world.rejoin(ids[0])
    world.advance(SESSION_MS)  # the one that is left says nothing
    finish(world)
    last = world.last
    assert last.cause is Cause.MEMBER_JOINED
    assert last.trigger is not None
    assert last.trigger.client_id == "fourth"
    assert [change.cause for change in last.also] == [
        Cause.MEMBER_LEFT,
        Cause.MEMBER_JOINED,
        Cause.SESSION_EXPIRED,
    ]
    ends = {wait.member.member_id: wait.end for wait in last.waited_for}
    assert ends == {
        ids[0]: WaitEnd.REJOINED,
        ids[1]: WaitEnd.EXPIRED,
        ids[2]: WaitEnd.LEFT,
    }


def test_a_rebalance_that_begins_again_is_two(world: HistoryWorld) -> None:
    ids = world.consumers(2)
    world.newcomer("third")
    for member_id in ids:
        world.rejoin(member_id)
    assert world.group().state is GroupState.COMPLETING_REBALANCE
    world.advance(100)
    world.newcomer("fourth")
    second, first, _ = world.rebalances()
    assert (first.end, first.generation_before, first.generation_after) == (End.OVERTAKEN, 1, 2)
    assert (second.end, second.generation_before) == (End.RUNNING, 2)
    assert first.duration_ms == 100
    assert first.unowned_partition_seconds == 0.4  # all four, since both gave theirs up


def test_a_member_replaced_while_it_is_waited_for(world: HistoryWorld) -> None:
    world.consumers(2, instances=["a", "b"])
    world.newcomer("third")
    world.advance(400)
    world.join("g", instance_id="b", protocols=offers("t"), rebalance_timeout_ms=30_000)
    last = world.last
    waits = {wait.member.group_instance_id: wait for wait in last.waited_for}
    assert waits["b"].end is WaitEnd.REPLACED
    assert waits["b"].join_delay_ms == 400
    assert waits["a"].end is WaitEnd.WAITING
    assert [change.cause for change in last.also] == [Cause.STATIC_MEMBER_REPLACED]


def test_a_group_that_is_not_a_consumers_has_causes_but_no_partitions(world: HistoryWorld) -> None:
    world.given_stable_group(protocol_type="connect")
    last = world.last
    assert last.cause is Cause.MEMBER_JOINED
    assert (last.partitions_moved, last.unowned_partition_seconds) == (None, None)


def test_a_consumer_whose_assignment_cannot_be_read(world: HistoryWorld) -> None:
    world.given_stable_group()  # assigned b"0" and b"1"
    last = world.last
    assert (last.end, last.partitions_moved) == (End.STABLE, None)


# ---------------------------------------------------------------- and what is no rebalance


def test_an_assignment_that_is_too_large_is_refused_and_not_recorded_as_assigned() -> None:
    world = HistoryWorld(GroupSettings(offsets_topic_num_partitions=1, max_batch_bytes=2_000))
    (answer,) = world.given_joined(members=1, protocols=offers("t"), rebalance_timeout_ms=30_000)
    large = {answer.member_id: b"x" * 3_000}
    world.sync("g", answer.member_id, answer.generation_id, assignments=large)
    kinds = [type(event) for event in world.history]
    assert AssignmentRefusedEntry in kinds
    assert AssignmentReceivedEntry not in kinds
    last, before = world.rebalances()
    assert (last.cause, last.end) == (Cause.ASSIGNMENT_NOT_STORED, End.RUNNING)
    assert "UNKNOWN_SERVER_ERROR" in last.reason
    assert (before.end, before.generation_after) == (End.OVERTAKEN, 1)


def test_an_assignment_that_the_disk_did_not_take_in_time_is_no_fault_of_the_leaders() -> None:
    settings = GroupSettings(offsets_topic_num_partitions=1, offsets_commit_timeout_ms=50)
    world = HistoryWorld(settings)
    answers = world.given_joined(members=2, protocols=offers("t"), rebalance_timeout_ms=30_000)
    world.storing = False
    world.sync_all("g", answers)
    world.advance(50)
    last, before = world.rebalances()
    assert (last.cause, last.end) == (Cause.ASSIGNMENT_NOT_STORED, End.RUNNING)
    assert "COORDINATOR_NOT_AVAILABLE" in last.reason
    assert (before.end, before.generation_after) == (End.OVERTAKEN, 1)


def test_a_slow_member_that_is_forgiven_is_recorded() -> None:
    world = HistoryWorld(GroupSettings(offsets_topic_num_partitions=1))
    ids = world.consumers(2)
    world.advance(SESSION_MS - 1)
    world.heartbeat(world.group(), ids[0])
    world.advance(1_000)
    assert world.heartbeat(world.group(), ids[1]) is ErrorCode.NONE
    assert [type(event) for event in world.history[-2:]] == [MemberLapsedEntry, LapseForgivenEntry]
    assert len(world.rebalances()) == 1


def test_a_process_that_was_replaced_is_recorded_as_fenced(world: HistoryWorld) -> None:
    ids = world.consumers(2, instances=["a", "b"])
    world.join("g", instance_id="b", protocols=offers("t"))
    asked = world.beat("g", ids[1], 1, "b")
    assert asked.error is ErrorCode.FENCED_INSTANCE_ID
    fenced = world.history[-1]
    assert isinstance(fenced, MemberFencedEntry)
    assert (fenced.group_instance_id, fenced.member_id) == ("b", ids[1])


def test_what_the_group_forgets_the_history_ends() -> None:
    """A rebalance that ran in a group that nobody knows after a start is over then."""
    world = HistoryWorld()
    world.newcomer("only")
    assert world.last.end is End.RUNNING
    world.recorded.recorder._rebalances.clear()
    (ended,) = world.recorded.recorder.close_interrupted(lambda _: False, world.now)
    assert isinstance(ended, RebalanceEndedEntry)
    assert ended.rebalance.end is End.INTERRUPTED
    assert world.recorded.index.running("g") is None


# ------------------------------------------------------------ what is read of a JoinGroup


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all subscriptions that the history reads from now on; none is kept yet."""
    ownership._kept_owned.cache_clear()
    sizes: list[int] = []

    def counted(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
        def counting(subscription: bytes) -> object:
            sizes.append(len(subscription))
            return read(subscription)

        return counting

    for module, name in (
        (history_causes, "read_subscription_topics"),
        (ownership, "read_subscription"),
    ):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    return sizes


def many(count: int, *topics: str) -> list[tuple[str, bytes]]:
    ((first, subscription),) = offers(*topics)
    return [(first, subscription), *((f"other-{n}", subscription) for n in range(count - 1))]


@pytest.mark.pure
def test_of_a_join_only_the_groups_protocol_is_read_and_each_member_once(
    world: HistoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = world.consumers(2)
    sizes = reads(monkeypatch)
    for member_id in ids:
        for _ in range(5):
            world.rejoin(member_id, protocols=many(60, "t", "u"))
    assert 0 < len(sizes) <= 4  # the first one's topics before and after, and what each owns
    assert world.rebalances()[0].cause is Cause.SUBSCRIPTION_CHANGED


@pytest.mark.pure
def test_nothing_is_read_of_a_join_with_the_same_bytes(
    world: HistoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, _ = world.consumers(2)
    sizes = reads(monkeypatch)
    world.rejoin(leader, protocols=offers("t"))
    assert len(sizes) == 1  # what it owns, for the rebalance that began by it
    world.rejoin(leader, protocols=offers("t"))
    assert len(sizes) == 1  # it is kept
    assert world.rebalances()[0].cause is Cause.LEADER_REJOINED


@pytest.mark.pure
def test_nothing_is_read_of_a_subscription_beyond_the_limit(
    world: HistoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = world.consumers(2)
    sizes = reads(monkeypatch)
    topics = ["t", *(f"{n:05}" * 30 for n in range(1_000))]
    for member_id in ids:
        world.rejoin(member_id, protocols=many(3, *topics))
    assert sizes == []
    assert world.rebalances()[0].unowned_partition_seconds is None
