"""Each verdict on live verdict: when it is said, where the boundary is, and when it clears."""

import pytest
from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, Removal, WaitEnd
from history.entries import (
    MemberAddedEntry,
    MembersRemovedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
)
from history.entry_values import (
    MemberRemoval,
    MemberWait,
)
from history.lag.model import Reading
from history.lag.window import LagWindow
from history.verdicts.model import (
    CommitRate,
    ObservedGroup,
    ObservedMember,
    Verdict,
    VerdictKind,
    VerdictLimits,
    member_key,
)
from history.verdicts.recent_activity import RecentActivity, RefusedJoin
from tests.history.verdicts.all_steps import find_verdicts

START = 1_700_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
LIMITS = VerdictLimits()
ANN = MemberIdentity("ann-1", None, "ann", "/10.0.0.1")
BOB = MemberIdentity("bob-1", None, "bob", "/10.0.0.2")
CARL = MemberIdentity("carl-1", None, "carl", "/10.0.0.3")


def member(identity: MemberIdentity, *assigned: int, **changes: object) -> ObservedMember:
    facts = ObservedMember(
        identity,
        session_timeout_ms=45 * SECOND,
        rebalance_timeout_ms=5 * MINUTE,
        protocols=("range",),
        topics=frozenset({"t"}),
        assigned=tuple(("t", index) for index in assigned),
    )
    return replace(facts, **changes)  # type: ignore[arg-type]


def group(*members: ObservedMember, at_ms: int = START, **changes: object) -> ObservedGroup:
    facts = ObservedGroup(
        "g",
        at_ms,
        "Stable",
        state_since_ms=START - 60 * MINUTE,
        generation=7,
        protocol_type="consumer",
        protocol="range",
        leader_id=members[0].identity.member_id if members else "",
        members=members,
        partition_counts={"t": 4},
    )
    return replace(facts, **changes)  # type: ignore[arg-type]


def healthy(at_ms: int = START, **changes: object) -> ObservedGroup:
    return group(member(ANN, 0, 1), member(BOB, 2, 3), at_ms=at_ms, **changes)


def kinds(verdicts: list[Verdict]) -> list[VerdictKind]:
    for verdict in verdicts:
        assert verdict.summary
        assert verdict.remedy.endswith(".")
        assert verdict.evidence
    return [verdict.kind for verdict in verdicts]


def inspect(
    past: RecentActivity, facts: ObservedGroup, limits: VerdictLimits = LIMITS
) -> list[VerdictKind]:
    return kinds(find_verdicts(facts, past, limits))


def only_verdict(
    past: RecentActivity, facts: ObservedGroup, limits: VerdictLimits = LIMITS
) -> Verdict:
    (verdict,) = find_verdicts(facts, past, limits)
    return verdict


def window(committed: int, end: int, *, moved_at_ms: int, at_ms: int) -> LagWindow:
    made = LagWindow()
    made.see(Reading("t", 0, committed, moved_at_ms, 0, end), moved_at_ms, 20)
    made.see(Reading("t", 0, committed, moved_at_ms, 0, end), at_ms, 20)
    return made


def test_a_healthy_group_has_no_verdict() -> None:
    assert inspect(RecentActivity(), healthy()) == []
    assert inspect(RecentActivity(), group(state="Empty")) == []


# ------------------------------------------------------------ flapping member


def come_and_go(
    past: RecentActivity, times: int, *, every_ms: int = MINUTE, identity: MemberIdentity = ANN
) -> int:
    """Joins, and then leaves and joins again so many times; when that is over."""
    at_ms = START
    for n in range(times + 1):
        now = identity._replace(member_id=f"{identity.client_id}-{n}")
        past.apply(MemberAddedEntry("g", at_ms, now), LIMITS.window_ms)
        if n < times:
            gone = MembersRemovedEntry(
                "g", at_ms + 1, Removal.LEFT, members=(MemberRemoval(now, "bye"),)
            )
            past.apply(gone, LIMITS.window_ms)
        at_ms += every_ms
    return at_ms


def test_a_member_that_comes_and_goes_is_flapping() -> None:
    past = RecentActivity()
    at_ms = come_and_go(past, LIMITS.flapping_returns)
    verdict = only_verdict(past, healthy(at_ms))
    assert verdict.kind is VerdictKind.FLAPPING_MEMBER
    assert verdict.subject == "ann@10.0.0.1"
    assert verdict.evidence["returns"] == 3
    assert verdict.evidence["reasons"] == {"bye": 3}
    assert "group.instance.id" in verdict.remedy
    # It clears when the returns are older than the window.
    assert inspect(past, healthy(at_ms + LIMITS.window_ms)) == []


def test_one_return_less_is_ordinary_life() -> None:
    past = RecentActivity()
    assert inspect(past, healthy(come_and_go(past, LIMITS.flapping_returns - 1))) == []


def test_returns_that_are_far_apart_do_not_add_up() -> None:
    past = RecentActivity()
    at_ms = come_and_go(past, 6, every_ms=LIMITS.window_ms // 2)
    assert inspect(past, healthy(at_ms)) == []


def test_a_rolling_restart_of_members_with_one_client_id_is_no_flapping() -> None:
    """Ten processes of one host and one client id, each replaced once by another."""
    past = RecentActivity()
    for n in range(10):
        identity = ANN._replace(member_id=f"old-{n}")
        past.apply(MemberAddedEntry("g", START - 60 * MINUTE, identity), LIMITS.window_ms)
    for n in range(10):
        at_ms = START + n * 5 * SECOND
        gone = MemberRemoval(ANN._replace(member_id=f"old-{n}"), "closed")
        past.apply(MembersRemovedEntry("g", at_ms, members=(gone,)), LIMITS.window_ms)
        new = ANN._replace(member_id=f"new-{n}")
        past.apply(MemberAddedEntry("g", at_ms + SECOND, new), LIMITS.window_ms)
    assert inspect(past, healthy(START + MINUTE)) == []


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("consumer poll timeout has expired.", "max.poll.interval.ms"),
        (None, "session.timeout.ms"),
    ],
)
def test_the_remedy_depends_on_why_it_left(reason: str | None, setting: str) -> None:
    past = RecentActivity()
    for n in range(4):
        now = ANN._replace(member_id=f"ann-{n}")
        past.apply(MemberAddedEntry("g", START + n, now), LIMITS.window_ms)
        gone = (MemberRemoval(now, reason),)
        removed = MembersRemovedEntry("g", START + n, Removal.SESSION_EXPIRED, members=gone)
        past.apply(removed, LIMITS.window_ms)
    assert setting in only_verdict(past, healthy()).remedy


def test_two_processes_with_one_instance_id() -> None:
    past = RecentActivity()
    identity = MemberIdentity("i-0", "i", "ann", "/10.0.0.1")
    past.apply(MemberAddedEntry("g", START, identity), LIMITS.window_ms)
    for n in range(1, 4):
        other = MemberIdentity(f"i-{n}", "i", "ann", f"/10.0.0.{1 + n % 2}")
        event = StaticMemberReplacedEntry("g", START + n * SECOND, other, f"i-{n - 1}")
        past.apply(event, LIMITS.window_ms)
    verdict = only_verdict(past, healthy(START + 5 * SECOND))
    assert verdict.subject == "i"
    assert "one group.instance.id" in verdict.remedy
    assert verdict.evidence["hosts"] == ["10.0.0.1", "10.0.0.2"]


# ------------------------------------------------------------ rebalance loop


def rebalance(past: RecentActivity, times: int, *, every_ms: int = 10 * SECOND) -> int:
    at_ms = START
    for _ in range(times):
        began = RebalanceBegunEntry("g", at_ms, Cause.SESSION_EXPIRED, ANN, timeout_ms=5 * MINUTE)
        past.apply(began, LIMITS.window_ms)
        at_ms += every_ms
    return at_ms


def behind(at_ms: int, committed: int = 10) -> ObservedGroup:
    lagging = window(committed, 100, moved_at_ms=at_ms - SECOND, at_ms=at_ms)
    return healthy(at_ms, windows={("t", 0): lagging})


def test_rebalances_without_progress_are_a_loop() -> None:
    past = RecentActivity()
    at_ms = rebalance(past, LIMITS.loop_rebalances)
    assert inspect(past, behind(at_ms)) == []  # one look does not tell whether anything moves
    verdict = only_verdict(past, behind(at_ms))
    assert verdict.kind is VerdictKind.REBALANCE_LOOP
    assert verdict.evidence["causes"] == {"session_expired": 5}
    assert "session.timeout.ms" in verdict.remedy
    # With the first offset that moves it is over.
    assert inspect(past, behind(at_ms + SECOND, committed=11)) == []


def test_fewer_rebalances_and_rebalances_with_progress_are_no_loop() -> None:
    past = RecentActivity()
    at_ms = rebalance(past, LIMITS.loop_rebalances - 1)
    for _ in range(3):
        assert inspect(past, behind(at_ms)) == []
    for n in range(20):  # a rolling restart under load
        rebalance(past, 1)
        assert inspect(past, behind(START + n * SECOND, committed=20 + n)) == []


def test_a_group_with_nothing_to_read_may_rebalance_as_it_likes() -> None:
    past = RecentActivity()
    at_ms = rebalance(past, 30, every_ms=SECOND)
    caught_up = window(100, 100, moved_at_ms=START, at_ms=at_ms)
    for _ in range(3):
        assert inspect(past, healthy(at_ms, windows={("t", 0): caught_up})) == []


# ------------------------------------------------------------ slow joiner


def ended(*waits: MemberWait, members_before: int = 2, at_ms: int = START) -> RebalanceEndedEntry:
    done = Rebalance(
        Cause.MEMBER_JOINED,
        at_ms - 30 * SECOND,
        end=End.STABLE,
        duration_ms=30 * SECOND,
        waited_for=waits,
        members_before=members_before,
        generation_after=7,
    )
    return RebalanceEndedEntry("g", at_ms, done)


@pytest.mark.parametrize(
    ("wait", "is_slow"),
    [
        (MemberWait(ANN, 10 * SECOND, WaitEnd.REJOINED), True),
        (MemberWait(ANN, 10 * SECOND - 1, WaitEnd.REJOINED), False),
        (MemberWait(ANN, None, WaitEnd.DROPPED), True),
        (MemberWait(ANN, None, WaitEnd.EXPIRED), False),  # it was dead, and not slow
        (MemberWait(ANN, None, WaitEnd.LEFT), False),
    ],
)
def test_who_kept_the_others_waiting(wait: MemberWait, *, is_slow: bool) -> None:
    past = RecentActivity()
    past.apply(ended(wait, MemberWait(BOB, 20, WaitEnd.REJOINED)), LIMITS.window_ms)
    found = find_verdicts(healthy(), past, LIMITS)
    assert kinds(found) == ([VerdictKind.SLOW_JOINER] if is_slow else [])
    if is_slow:
        assert found[0].subject == "ann-1"
        assert found[0].evidence["rebalance_timeout_ms"] == 5 * MINUTE
        assert "max.poll.interval.ms" in found[0].remedy
    # The next rebalance without it clears the verdict.
    past.apply(ended(MemberWait(ANN, 20, WaitEnd.REJOINED)), LIMITS.window_ms)
    assert inspect(past, healthy()) == []


def test_a_slow_joiner_is_forgotten_after_the_window_and_alone_it_disturbs_nobody() -> None:
    past = RecentActivity()
    slow = MemberWait(ANN, 20 * SECOND, WaitEnd.REJOINED)
    past.apply(ended(slow), LIMITS.window_ms)
    assert inspect(past, healthy(START + LIMITS.window_ms + 1)) == []
    past.apply(ended(slow, members_before=1), LIMITS.window_ms)
    assert inspect(past, healthy()) == []


# ------------------------------------------------------------ stuck group


def preparing(for_ms: int, *, silent_ms: int = 20 * SECOND) -> ObservedGroup:
    return group(
        member(ANN, silent_ms=silent_ms, assigned=None),
        member(BOB, has_rejoined=True, assigned=None),
        state="PreparingRebalance",
        state_since_ms=START - for_ms,
    )


def test_a_group_that_waits_for_a_member() -> None:
    past = RecentActivity()
    began = RebalanceBegunEntry(
        "g", START - 20 * SECOND, Cause.MEMBER_JOINED, BOB, timeout_ms=5 * MINUTE
    )
    past.apply(began, LIMITS.window_ms)
    verdict = only_verdict(past, preparing(20 * SECOND))
    assert verdict.kind is VerdictKind.STUCK_GROUP
    assert "ann at 10.0.0.1" in verdict.summary
    assert "bob" not in verdict.summary
    # Until its session ends, which is before the rebalance times out: it sends no heartbeats.
    assert verdict.evidence["until_ms"] == START + 25 * SECOND
    assert "it is probably dead: it is removed when its session expires, in 25 s" in verdict.summary
    assert "session.timeout.ms" in verdict.remedy
    assert "max.poll" not in verdict.remedy
    # One that sends them extends its session: only the rebalance timeout ends the wait.
    alive = only_verdict(past, preparing(20 * SECOND, silent_ms=2 * SECOND))
    assert alive.evidence["until_ms"] == START - 20 * SECOND + 5 * MINUTE
    assert "dead" not in alive.summary
    assert "max.poll.interval.ms" in alive.remedy
    assert "session" not in alive.remedy
    assert inspect(past, preparing(LIMITS.stuck_ms - 1)) == []
    assert inspect(past, preparing(LIMITS.stuck_ms)) == [VerdictKind.STUCK_GROUP]
    assert inspect(past, healthy()) == []


@pytest.mark.parametrize(
    ("protocol_type", "named"),
    [("consumer", "max.poll.records"), ("connect", "herder"), ("sr", "group of type sr")],
)
def test_what_helps_a_stuck_group_depends_on_its_type(protocol_type: str, named: str) -> None:
    waiting = replace(preparing(20 * SECOND, silent_ms=SECOND), protocol_type=protocol_type)
    remedy = only_verdict(RecentActivity(), waiting).remedy
    assert named in remedy
    assert ("max.poll" in remedy) == (protocol_type == "consumer")


def test_of_several_that_are_awaited_the_silent_ones_are_counted() -> None:
    waiting = group(
        member(ANN, silent_ms=30 * SECOND, assigned=None),
        member(BOB, silent_ms=SECOND, assigned=None),
        member(CARL, has_rejoined=True, assigned=None),
        state="PreparingRebalance",
        state_since_ms=START - 20 * SECOND,
    )
    verdict = only_verdict(RecentActivity(), waiting)
    expires = "1 of 2 are probably dead: it is removed when its session expires, in 15 s"
    assert expires in verdict.summary
    assert "session.timeout.ms" in verdict.remedy
    assert "max.poll.interval.ms" in verdict.remedy


def test_a_group_that_waits_for_its_leader_or_for_syncs() -> None:
    completing = {"state": "CompletingRebalance", "state_since_ms": START - MINUTE}
    leader = group(member(ANN, is_to_sync=True), member(BOB, waits_for_sync=True), **completing)
    verdict = only_verdict(RecentActivity(), leader)
    assert "ann at 10.0.0.1 to assign" in verdict.summary
    assert verdict.evidence["until_ms"] == START + 4 * MINUTE
    follower = group(member(ANN, waits_for_sync=True), member(BOB, is_to_sync=True), **completing)
    assert "bob at 10.0.0.2 to fetch" in only_verdict(RecentActivity(), follower).summary


def test_an_empty_group_that_waits_for_more_members_is_not_stuck() -> None:
    complete = group(
        member(ANN, has_rejoined=True, assigned=None),
        state="PreparingRebalance",
        state_since_ms=START - MINUTE,
    )
    assert inspect(RecentActivity(), complete) == []
    awaited = replace(complete, pending_member_ids=("carl-1",))
    assert "1 that were given an id" in only_verdict(RecentActivity(), awaited).summary


# ------------------------------------------------------------ mixed


def test_members_that_subscribe_differently_for_long() -> None:
    mixed = group(member(ANN, 0, 1), member(BOB, 2, 3, topics=frozenset({"t", "u"})))
    past = RecentActivity()
    assert inspect(past, mixed) == []  # a rollout has just begun
    assert inspect(past, replace(mixed, at_ms=START + LIMITS.grace_ms - 1)) == []
    later = replace(mixed, at_ms=START + LIMITS.grace_ms)
    verdict = only_verdict(past, later)
    assert verdict.kind is VerdictKind.MIXED_SUBSCRIPTIONS
    assert "t + u" in verdict.summary
    assert inspect(past, healthy(START + LIMITS.grace_ms)) == []
    assert inspect(past, replace(mixed, at_ms=START + 2 * LIMITS.grace_ms)) == []  # again


def test_eager_and_cooperative_members_in_one_group() -> None:
    both = ("cooperative-sticky", "range")
    mixed = group(member(ANN, 0, 1), member(BOB, 2, 3, protocols=both))
    past = RecentActivity()
    assert inspect(past, mixed) == []
    verdict = only_verdict(past, replace(mixed, at_ms=START + LIMITS.grace_ms))
    assert verdict.kind is VerdictKind.MIXED_PROTOCOLS
    assert "two rollouts" in verdict.remedy
    # That all offer both is no verdict: so far the rollout has come.
    assert inspect(past, group(member(ANN, 0, 1, protocols=both), mixed.members[1])) == []


def test_a_client_that_has_no_assignor_in_common() -> None:
    past = RecentActivity()
    identity = MemberIdentity("", None, "carl", "/10.0.0.3")
    for n in range(3):
        past.refuse(RefusedJoin(START + n * SECOND, identity, ("roundrobin",), ("range",)))
    verdict = only_verdict(past, healthy(START + 3 * SECOND))
    assert (verdict.kind, verdict.subject) == (VerdictKind.MIXED_PROTOCOLS, "carl@10.0.0.3")
    assert "carl at 10.0.0.3 was refused 3 times: it offers roundrobin" in verdict.summary
    assert verdict.evidence["supported"] == ["range"]
    # It has not tried again for a while: that is over.
    assert inspect(past, healthy(START + 2 * SECOND + LIMITS.grace_ms)) == []
    assert inspect(past, healthy(START + 3 * SECOND + LIMITS.window_ms)) == []
    assert past.refusals == {}


# ------------------------------------------------------------ commit storm


@pytest.mark.parametrize(("rate", "is_storm"), [(99.9, False), (100.0, True), (5_000.0, True)])
def test_a_client_that_commits_all_the_time(rate: float, *, is_storm: bool) -> None:
    rates = (CommitRate("ann-1", rate, 3, rate * 300, "ann", "/10.0.0.1"),)
    found = find_verdicts(healthy(commit_rates=rates), RecentActivity(), LIMITS)
    assert kinds(found) == ([VerdictKind.COMMIT_STORM] if is_storm else [])
    if is_storm:
        assert found[0].evidence["partitions"] == 3
        assert "auto.commit.interval.ms" in found[0].remedy


# ------------------------------------------------------------ no progress


def standing_still(for_ms: int, **changes: object) -> ObservedGroup:
    still = window(10, 100, moved_at_ms=START - for_ms, at_ms=START)
    return healthy(windows={("t", 0): still}, still_since_ms=START - for_ms, **changes)


def test_a_member_that_beats_and_gets_nowhere() -> None:
    assert inspect(RecentActivity(), standing_still(LIMITS.no_progress_ms - 1)) == []
    verdict = only_verdict(RecentActivity(), standing_still(LIMITS.no_progress_ms))
    assert verdict.kind is VerdictKind.NO_PROGRESS
    assert verdict.subject == "ann-1"
    assert verdict.evidence["lag"] == 90
    assert verdict.evidence["still_commits"] is False
    assert "commits nothing on t-0" in verdict.summary


def test_a_member_that_commits_the_same_offset_again_and_again() -> None:
    facts = standing_still(LIMITS.no_progress_ms)
    for ago_ms in (20 * SECOND, 10 * SECOND, 1):
        facts.windows["t", 0].see(Reading("t", 0, 10, START - ago_ms, 0, 100), START, 20)
    verdict = only_verdict(RecentActivity(), facts)
    assert verdict.evidence["still_commits"] is True
    assert "record at the committed offset" in verdict.remedy


def test_no_progress_needs_lag_and_heartbeats_and_a_stable_group() -> None:
    still = standing_still(10 * MINUTE)
    caught_up = window(100, 100, moved_at_ms=START - 10 * MINUTE, at_ms=START)
    assert inspect(RecentActivity(), replace(still, windows={("t", 0): caught_up})) == []
    silent = member(ANN, 0, 1, silent_ms=45 * SECOND)
    assert inspect(RecentActivity(), replace(still, members=(silent, still.members[1]))) == []
    assert inspect(RecentActivity(), replace(still, state_since_ms=START - MINUTE)) == []


def test_a_member_that_commits_once_an_hour_is_given_two() -> None:
    slow = LagWindow()
    for n in range(3):
        at_ms = START + n * 60 * MINUTE
        slow.see(Reading("t", 0, 10 + n, at_ms, 0, 100), at_ms, 20)
    now_ms = START + 3 * 60 * MINUTE
    still = {"windows": {("t", 0): slow}, "still_since_ms": slow.moved_at_ms}
    assert inspect(RecentActivity(), healthy(now_ms, **still)) == []
    later = healthy(now_ms + 60 * MINUTE, **still)
    assert inspect(RecentActivity(), later) == [VerdictKind.NO_PROGRESS]


# ------------------------------------------------------------ wrong assignments


def test_a_partition_with_two_owners() -> None:
    verdict = only_verdict(RecentActivity(), group(member(ANN, 0, 1, 2), member(BOB, 2, 3)))
    assert verdict.kind is VerdictKind.TWO_OWNERS
    assert verdict.evidence["partitions"] == {"t-2": ["ann at 10.0.0.1", "bob at 10.0.0.2"]}
    assert verdict.evidence["leader"] is not None


def test_partitions_that_nobody_reads() -> None:
    past = RecentActivity()
    facts = group(member(ANN, 0), member(BOB, 2, 3))
    just_now = replace(facts, state_since_ms=START - LIMITS.grace_ms + 1)
    assert inspect(past, just_now) == []  # perhaps the first half of a cooperative rebalance
    verdict = only_verdict(past, replace(facts, state_since_ms=START - LIMITS.grace_ms))
    assert verdict.kind is VerdictKind.ORPHAN_PARTITIONS
    assert verdict.evidence["partitions"] == ["t-1"]
    assert inspect(past, healthy(generation=8)) == []


def test_new_partitions_may_stay_unnoticed_for_a_while() -> None:
    past = RecentActivity()
    assert inspect(past, healthy()) == []
    grown = healthy(START + SECOND, partition_counts={"t": 5})
    assert inspect(past, grown) == []
    assert inspect(past, replace(grown, at_ms=START + 10 * MINUTE)) == []
    much_later = replace(grown, at_ms=START + 12 * MINUTE)
    verdict = only_verdict(past, much_later)
    assert verdict.evidence["partitions"] == ["t-4"]
    assert "metadata.max.age.ms" in verdict.remedy


def test_a_member_with_far_more_than_its_share() -> None:
    ten = {"partition_counts": {"t": 10}}
    fair = group(member(ANN, *range(5)), member(BOB, *range(5, 10)), **ten)
    assert inspect(RecentActivity(), fair) == []
    uneven = group(member(ANN, *range(9)), member(BOB, 9), **ten)
    assert inspect(RecentActivity(), uneven) == []  # 9 of a share of 5: below twice
    skewed = group(member(ANN, *range(10)), member(BOB), **ten)
    verdict = only_verdict(RecentActivity(), skewed)
    assert verdict.kind is VerdictKind.SKEWED_ASSIGNMENT
    assert (verdict.evidence["partitions"], verdict.evidence["fair"]) == (10, 5)
    assert "cooperative-sticky" in verdict.remedy
    # More members than partitions: some have none, and that is no problem.
    small = group(member(ANN, 0), member(BOB), partition_counts={"t": 1})
    assert inspect(RecentActivity(), small) == []


def test_partitions_that_were_moved_for_nothing() -> None:
    past = RecentActivity()
    assert inspect(past, healthy()) == []
    shuffled = group(member(ANN, 2, 1), member(BOB, 0, 3), generation=8)
    verdict = only_verdict(past, shuffled)
    assert verdict.kind is VerdictKind.NEEDLESS_MOVES
    assert verdict.evidence["partitions"] == ["t-0", "t-2"]
    assert inspect(past, replace(shuffled, generation=9)) == []


def test_moves_for_a_reason_are_not_needless() -> None:
    past = RecentActivity()
    lopsided = group(member(ANN, 0, 1, 2, 3), member(BOB), state_since_ms=START - SECOND)
    assert inspect(past, lopsided) == []
    assert inspect(past, healthy(generation=8)) == []  # spread better
    carl = MemberIdentity("carl-1", None, "carl", "/10.0.0.3")
    came = group(member(ANN, 0), member(BOB, 1), member(carl, 2, 3), generation=9)
    assert inspect(past, came) == []


def test_the_halves_of_a_cooperative_rebalance_are_ordinary() -> None:
    past = RecentActivity()
    new_generation = {"state_since_ms": START - SECOND, "protocol": "cooperative-sticky"}
    assert inspect(past, group(member(ANN, 0, 1, 2, 3), **new_generation)) == []
    first = group(member(ANN, 0, 1), member(BOB), generation=8, **new_generation)
    assert inspect(past, first) == []
    second = group(member(ANN, 0, 1), member(BOB, 2, 3), generation=9, **new_generation)
    assert inspect(past, second) == []


def test_groups_whose_bytes_are_no_consumers_are_let_be() -> None:
    opaque = group(
        member(ANN, topics=None, assigned=None),
        member(BOB, topics=None, assigned=None),
        protocol_type="connect",
        partition_counts={},
    )
    assert inspect(RecentActivity(), opaque) == []


# ------------------------------------------------------------ assignors that hand out copies


def faust(*members: ObservedMember, **changes: object) -> ObservedGroup:
    """Both have the standby of the other one's table partitions; only `t` is committed."""
    windows = {("t", index): window(5, 5, moved_at_ms=START, at_ms=START) for index in range(4)}
    return group(*members, protocol="faust", windows=windows, **changes)


def with_table(identity: MemberIdentity, *assigned: int) -> ObservedMember:
    plain = member(identity, *assigned)
    assert plain.assigned is not None
    table = tuple(("app-table-changelog", index) for index in range(4))
    return replace(plain, assigned=(*plain.assigned, *table))


def test_standbys_of_faust_are_no_second_owners() -> None:
    assert inspect(RecentActivity(), faust(with_table(ANN, 0, 1), with_table(BOB, 2, 3))) == []


def test_a_custom_assignor_that_gives_what_is_read_to_two_is_found_all_the_same() -> None:
    both = faust(with_table(ANN, 0, 1), with_table(BOB, 1, 2, 3))
    verdict = only_verdict(RecentActivity(), both)
    assert verdict.kind is VerdictKind.TWO_OWNERS
    assert verdict.evidence["partitions_total"] == 1


def test_with_kafkas_own_assignors_everything_counts() -> None:
    both = replace(faust(with_table(ANN, 0, 1), with_table(BOB, 2, 3)), protocol="range")
    assert VerdictKind.TWO_OWNERS in inspect(RecentActivity(), both)


def test_standbys_are_no_skew() -> None:
    spread = [("app-table-changelog", index) for index in range(20)]
    heavy = replace(member(ANN, 0, 1), assigned=(("t", 0), ("t", 1), *spread))
    others = member(BOB, 2), member(CARL, 3)
    assert inspect(RecentActivity(), faust(heavy, *others)) == []
    assert VerdictKind.SKEWED_ASSIGNMENT in inspect(
        RecentActivity(), replace(faust(heavy, *others), protocol="range")
    )


def test_members_of_one_client_and_host_share_their_key() -> None:
    """It is kept for each of them: of 10,000 it would be 600 kB."""
    first, second = (MemberIdentity(f"ann-{n}", None, "ann", "/10.0.0.1") for n in range(2))
    assert member_key(first) == "ann@10.0.0.1"
    assert member_key(first) is member_key(second)
