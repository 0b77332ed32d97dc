"""Verdict watch on a real coordinator: no verdicts in normal operation.

Ordinary life is rolling restarts, rebalances of both kinds and the simulator's runs in fair
weather; verdicts come from a member that does not come, and groups beyond the limit.
"""

import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from broker.lag.commit_rates import CLIENTS_MAX, CLIENTS_PER_STEP, CommitMeter
from broker.lag.verdict_watch import VerdictWatch
from broker.observe.events import ShellEvent, VerdictCleared, VerdictFound
from coordinator.classic.events import JoinRefused
from coordinator.coordinator import GroupCoordinator
from coordinator.group import CommittedOffset
from coordinator.offsets.events import OffsetsCommitted
from history.entries import GroupEmptiedEntry
from history.verdicts.model import VerdictKind, VerdictLimits
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.join_group import JoinGroupResponse
from protocol.names import (
    ErrorCode,
    GenerationId,
    GroupId,
    GroupState,
    MemberId,
    TopicName,
)
from seams.now import Now
from tests.history.history_world import HistoryWorld, assignment, offers
from tests.simulator.faults import Weather
from tests.simulator.run import Run
from tests.world import Topics

SECOND = 1_000


async def no_pause() -> None:
    return


def at_once(step: Coroutine[Any, Any, None]) -> None:
    """Nothing in it waits, so it is over at once."""
    with pytest.raises(StopIteration):
        step.send(None)


class Watched:
    """A watch that looks when it is told to."""

    def __init__(self, limits: VerdictLimits | None = None, groups_max: int = 100) -> None:
        topics = Topics()
        topics.counts[TopicName("t")] = 4
        self.said: list[ShellEvent] = []
        self.watch = VerdictWatch(topics, limits or VerdictLimits(), groups_max, self.said.append)
        self._turns_heard = 0

    def hear(self, world: HistoryWorld) -> None:
        for turn in world.recorded.turns[self._turns_heard :]:
            for event in turn:
                self.watch.on_entry(event)
        self._turns_heard = len(world.recorded.turns)

    def inspect(self, coordinator: GroupCoordinator, now: Now) -> None:
        """A round: nothing in it waits, so each inspection is over at once."""
        alive = set()
        for group in coordinator.groups():
            alive.add(group.group_id)
            at_once(self.watch.inspect(group, None, now, no_pause))
        at_once(self.watch.end_round(alive, now, no_pause))

    def live(self, world: HistoryWorld, seconds: int) -> None:
        """Let time pass, with an inspection in each second."""
        for _ in range(seconds):
            world.advance(SECOND)
            self.hear(world)
            self.inspect(world.coordinator, world.now)

    @property
    def found(self) -> list[VerdictKind]:
        return [said.verdict.kind for said in self.said if isinstance(said, VerdictFound)]


def beat_all(world: HistoryWorld) -> None:
    group = world.group()
    for member_id in group.members:
        world.heartbeat(group, member_id)


def live_well(watched: Watched, world: HistoryWorld, seconds: int) -> None:
    for at in range(seconds):
        if at % 3 == 0:
            beat_all(world)
        watched.live(world, 1)


def stable_generation(
    world: HistoryWorld, members: list[str], *, newcomers: list[str]
) -> list[str]:
    """All members rejoin and are assigned; the ids of the generation."""
    asked = [world.newcomer(client_id) for client_id in newcomers]
    asked += [world.rejoin(member_id) for member_id in members]
    while asked[0].waits:
        world.advance(100)
    answers: list[JoinGroupResponse] = [answer.joined for answer in asked]
    world.assign(answers)
    assert world.group().state is GroupState.STABLE
    return [answer.member_id for answer in answers]


def test_a_rolling_restart_has_no_verdict() -> None:
    world, watched = HistoryWorld(), Watched()
    members = stable_generation(world, [], newcomers=["a", "b", "c"])
    live_well(watched, world, 700)
    for client_id in ("a", "b", "c"):
        leaving = next(member for member in members if member.startswith(client_id))
        world.leave("g", leaving)
        members = stable_generation(
            world, [member for member in members if member != leaving], newcomers=[]
        )
        live_well(watched, world, 5)
        members = stable_generation(world, members, newcomers=[client_id])
        live_well(watched, world, 20)
    live_well(watched, world, 100)
    assert watched.found == []


def test_a_cooperative_rebalance_has_no_verdict() -> None:
    world, watched = HistoryWorld(), Watched()
    asked = [world.join("g", version=3, client_id="a", protocols=offers("t"))]
    while asked[0].waits:
        world.advance(100)
    first = asked[0].joined
    everything = {first.member_id: assignment(t=[0, 1, 2, 3])}
    world.sync("g", first.member_id, first.generation_id, assignments=everything)
    live_well(watched, world, 5)

    # Another one comes: in the first half nobody has what is to be moved.
    second = world.join("g", version=3, client_id="b", protocols=offers("t"))
    again = world.rejoin(first.member_id, protocols=offers("t", owned=[0, 1, 2, 3]))
    answers = (again.joined, second.joined)
    shares = {answers[0].member_id: assignment(t=[0, 1]), answers[1].member_id: assignment(t=[])}
    for answer in reversed(answers):
        given = shares if answer.member_id == answer.leader else None
        world.sync("g", answer.member_id, answer.generation_id, assignments=given)
    live_well(watched, world, 3)

    asked = [
        world.rejoin(answers[0].member_id, protocols=offers("t", owned=[0, 1])),
        world.rejoin(answers[1].member_id),
    ]
    answers = (asked[0].joined, asked[1].joined)
    shares[answers[1].member_id] = assignment(t=[2, 3])
    for answer in reversed(answers):
        given = shares if answer.member_id == answer.leader else None
        world.sync("g", answer.member_id, answer.generation_id, assignments=given)
    assert world.group().state is GroupState.STABLE
    live_well(watched, world, 120)
    assert watched.found == []


@pytest.mark.parametrize("seed", range(8))
def test_a_simulation_without_faults_has_no_verdict(seed: int) -> None:
    run, watched = Run(seed), Watched()
    run.mischief = 0.0
    run.operator.start()
    node = run.operator.node
    assert node is not None
    node.history.subscribe(watched.watch.on_entry)
    for group_id in ("red", "green"):
        for n in range(4):
            run._add_member(GroupId(group_id), is_static=n % 2 == 0)
    run.operator.begin(Weather((), 0))

    def inspect() -> None:
        watched.inspect(node.coordinator, node.now)
        run.sim.after(SECOND, inspect)

    run.sim.after(SECOND, inspect)
    run.sim.run(until=lambda: run.sim.now_ms > 60 * SECOND)
    assert watched.found == []


def test_a_verdict_on_a_missing_member_begins_and_is_cleared() -> None:
    world, watched = HistoryWorld(), Watched()
    members = stable_generation(world, [], newcomers=["a", "b"])
    watched.live(world, 1)
    first = world.rejoin(members[0], protocols=offers("t", "u"))  # so the group rebalances

    for _ in range(16):
        world.heartbeat(world.group(), members[1])
        watched.live(world, 1)
    assert watched.found == [VerdictKind.STUCK_GROUP]
    (standing,) = watched.watch.active("g")
    assert standing.verdict.evidence["waiting_total"] == 1
    assert watched.watch.counts()["stuck_group"] == 1

    answer = world.rejoin(members[1]).joined
    watched.live(world, 1)
    cleared = [said for said in watched.said if isinstance(said, VerdictCleared)]
    assert [event.verdict.kind for event in cleared] == [VerdictKind.STUCK_GROUP]
    assert cleared[0].lasted_ms >= SECOND
    assert answer.generation_id == 2
    # And once the assignments are out it is known who was slow.
    world.assign([first.joined, answer])
    watched.live(world, 1)
    assert VerdictKind.SLOW_JOINER in watched.found


def test_a_join_without_a_common_assignor_is_an_event() -> None:
    world, watched = HistoryWorld(), Watched()
    stable_generation(world, [], newcomers=["a", "b"])
    asked = world.join("g", version=3, client_id="c", protocols=[("roundrobin", b"")])
    assert asked.joined.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (event,) = world.events_of(JoinRefused)
    assert (event.client_id, event.offered, event.supported) == ("c", ("roundrobin",), ("range",))
    watched.watch.join_refused(event)
    watched.live(world, 1)
    assert watched.found == [VerdictKind.MIXED_PROTOCOLS]


def test_a_group_that_is_gone_has_no_verdict_and_no_activity() -> None:
    world, watched = HistoryWorld(), Watched(VerdictLimits(stuck_ms=SECOND))
    members = stable_generation(world, [], newcomers=["a", "b"])
    world.rejoin(members[0], protocols=offers("t", "u"))
    watched.live(world, 2)
    assert watched.found == [VerdictKind.STUCK_GROUP]
    at_once(watched.watch.end_round(set(), world.now, no_pause))
    assert list(watched.watch.active()) == []
    assert watched.watch.groups_watched == 0
    assert isinstance(watched.said[-1], VerdictCleared)


def test_after_a_quiet_window_a_group_is_not_inspected_any_more() -> None:
    limits = VerdictLimits(window_ms=10 * SECOND)
    world, watched = HistoryWorld(), Watched(limits)
    stable_generation(world, [], newcomers=["a", "b"])
    live_well(watched, world, 9)
    assert watched.watch.groups_watched == 1
    live_well(watched, world, 5)
    assert watched.watch.groups_watched == 0


def test_no_more_groups_are_remembered_than_allowed() -> None:
    watched = Watched(groups_max=3)
    for n in range(5):
        watched.watch.on_entry(GroupEmptiedEntry(f"g{n}", 1))
    assert (watched.watch.groups_watched, watched.watch.forgotten) == (3, 2)


# ------------------------------------------------------------ the commit meter


def committed(member_id: str, client_id: str = "ann", partitions: int = 2) -> OffsetsCommitted:
    offsets = {n: CommittedOffset(n, metadata="mm") for n in range(partitions)}
    return OffsetsCommitted(
        GroupId("g"),
        0,
        GenerationId(1),
        MemberId(member_id),
        client_id,
        "/10.0.0.1",
        [(TopicName("orders"), offsets)],
    )


def end_interval(meter: CommitMeter, now_ms: int, least_per_second: float) -> int:
    """The number of its steps."""
    return sum(1 for _ in meter.end_interval(now_ms, least_per_second))


def test_rates_are_of_whole_intervals() -> None:
    meter = CommitMeter()
    meter(committed("m"))
    end_interval(meter, 10_000, 1)
    assert meter.rates_of("g") == []  # of the first interval nobody knows the length
    for _ in range(500):
        meter(committed("m"))
    meter(committed("rare"))
    end_interval(meter, 12_000, 100)
    (rate,) = meter.rates_of("g")
    assert (rate.client, rate.commits_per_second, rate.partitions) == ("m", 250.0, 2)
    assert rate.bytes_per_second == 250 * (2 * (52 + 1 + 6 + 2) + 61)
    assert meter.busy == 1
    end_interval(meter, 14_000, 100)
    assert meter.rates_of("g") == []


def test_who_commits_without_being_a_member_is_named_by_its_client_id() -> None:
    meter = CommitMeter()
    end_interval(meter, 1_000, 1)
    for _ in range(2):
        meter(committed("", "tool"))
    end_interval(meter, 1_500, 1)
    assert [rate.client for rate in meter.rates_of("g")] == ["tool"]


def test_one_commit_in_an_interval_is_no_storm() -> None:
    meter = CommitMeter()
    end_interval(meter, 1_000, 1)
    meter(committed("m"))
    end_interval(meter, 1_500, 1)
    assert meter.rates_of("g") == []
    assert meter.busy == 0


def test_many_clients_take_steps_in_which_the_next_interval_runs() -> None:
    meter = CommitMeter()
    end_interval(meter, 1_000, 1)
    for member in (0, 1, 2) * CLIENTS_PER_STEP:
        meter(committed(f"m{member}"))
    for number in range(2 * CLIENTS_PER_STEP):
        meter(committed(f"rare-{number}"))
    steps = meter.end_interval(2_000, CLIENTS_PER_STEP)
    next(steps)
    assert meter.rates_of("g") == []
    for _ in range(CLIENTS_PER_STEP):
        meter(committed("late"))
    assert sum(1 for _ in steps) == 2
    assert {rate.client for rate in meter.rates_of("g")} == {"m0", "m1", "m2"}
    end_interval(meter, 3_000, CLIENTS_PER_STEP)
    assert {rate.client for rate in meter.rates_of("g")} == {"late"}


def test_clients_are_bounded() -> None:
    meter = CommitMeter()
    for n in range(CLIENTS_MAX + 10):
        meter(committed(f"m{n}"))
    assert len(meter._counts) == CLIENTS_MAX


def test_no_commit_is_kept_until_the_interval_ends() -> None:
    meter = CommitMeter()
    event = committed("m")
    before = sys.getrefcount(event), sys.getrefcount(event.offsets)
    meter(event)
    assert (sys.getrefcount(event), sys.getrefcount(event.offsets)) == before


# ------------------------------------------------------------ namesakes


def generation_one(world: HistoryWorld, shares: Sequence[list[int]]) -> list[str]:
    """A group whose first generation has these partitions, member by member."""
    asked = [world.newcomer(f"client-{n}") for n in range(len(shares))]
    while asked[0].waits:
        world.advance(100)
    answers = [answer.joined for answer in asked]
    given = {
        answer.member_id: assignment(t=share) for answer, share in zip(answers, shares, strict=True)
    }
    for answer in sorted(answers, key=lambda joined: joined.member_id == joined.leader):
        leads = answer.member_id == answer.leader
        world.sync(
            "g", answer.member_id, answer.generation_id, assignments=given if leads else None
        )
    assert world.group().generation_id == 1
    return [answer.member_id for answer in answers]


@pytest.mark.parametrize("is_verdict_shown", [True, False], ids=["shown", "not shown"])
def test_a_group_does_not_inherit_the_verdict_of_its_namesake(is_verdict_shown: bool) -> None:
    world, watched = HistoryWorld(), Watched()
    members = generation_one(world, [[0, 1], [1, 2, 3]])
    watched.hear(world)
    watched.inspect(world.coordinator, world.now)
    assert watched.found == [VerdictKind.TWO_OWNERS]

    # It is deleted, and created again, between two rounds.
    for member_id in members:
        world.leave("g", member_id)
    world.ask(DeleteGroupsRequest([GroupId("g")]), version=2)
    generation_one(world, [[0, 1], [2, 3]])
    if is_verdict_shown:
        watched.hear(world)
    watched.inspect(world.coordinator, world.now)
    assert list(watched.watch.active()) == []
    assert [type(said) for said in watched.said] == [VerdictFound, VerdictCleared]


def test_what_a_member_of_a_deleted_group_did_is_not_held_against_its_namesake() -> None:
    world, watched = HistoryWorld(), Watched(VerdictLimits(flapping_returns=2))
    for _ in range(2):
        for _ in range(2):
            (member_id,) = generation_one_or_more(world)
            world.leave("g", member_id)
        world.ask(DeleteGroupsRequest([GroupId("g")]), version=2)
        watched.hear(world)
    generation_one_or_more(world)
    watched.hear(world)
    watched.inspect(world.coordinator, world.now)
    assert watched.found == []


def generation_one_or_more(world: HistoryWorld) -> list[str]:
    asked = world.newcomer("same")
    while asked.waits:
        world.advance(100)
    world.assign([asked.joined])
    return [asked.joined.member_id]


# ------------------------------------------------------------ between two looks


def test_a_group_that_became_stable_is_not_shown_as_stuck() -> None:
    world, watched = HistoryWorld(), Watched()
    members = stable_generation(world, [], newcomers=["a", "b"])
    watched.watch.group_of = lambda _: world.group()
    world.newcomer("c")
    world.rejoin(members[0])
    for _ in range(16):
        world.heartbeat(world.group(), members[0])
        world.heartbeat(world.group(), members[1])
        watched.live(world, 1)
    (stuck,) = watched.watch.active("g")
    assert stuck.verdict.kind is VerdictKind.STUCK_GROUP
    assert list(watched.watch.active()) == [stuck]

    # The last one comes; nobody has inspected the group since.
    world.rejoin(members[1])
    assert world.group().state is not GroupState.PREPARING_REBALANCE
    assert list(watched.watch.active("g")) == []
    assert list(watched.watch.active()) == []


def test_a_verdict_on_an_assignment_is_not_shown_beside_the_next_one() -> None:
    world, watched = HistoryWorld(), Watched()
    watched.watch.group_of = lambda _: world.group()
    members = generation_one(world, [[0, 1], [1, 2, 3]])
    watched.hear(world)
    watched.inspect(world.coordinator, world.now)
    (found,) = watched.watch.active("g")
    assert found.verdict.kind is VerdictKind.TWO_OWNERS
    stable_generation(world, members, newcomers=["c"])
    assert list(watched.watch.active("g")) == []
