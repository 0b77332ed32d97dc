"""Each verdict on live trouble: when it is said, where the boundary is, and when it clears."""

import pytest
from msgspec.structs import replace

from history.causes import Cause, End, Removal, WaitEnd
from history.entries import (
    Gone,
    MemberAddedEntry,
    MembersRemovedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
    Wait,
    Who,
)
from history.lag.model import Reading
from history.lag.window import Window
from history.verdicts.detect import find_troubles
from history.verdicts.model import (
    CommitRate,
    GroupFacts,
    MemberFacts,
    Trouble,
    TroubleKind,
    TroubleLimits,
)
from history.verdicts.past import Past, Refusal

START = 1_700_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
LIMITS = TroubleLimits()
ANN = Who("ann-1", None, "ann", "/10.0.0.1")
BOB = Who("bob-1", None, "bob", "/10.0.0.2")
CARL = Who("carl-1", None, "carl", "/10.0.0.3")


def member(who: Who, *assigned: int, **changes: object) -> MemberFacts:
    facts = MemberFacts(
        who,
        session_timeout_ms=45 * SECOND,
        rebalance_timeout_ms=5 * MINUTE,
        protocols=("range",),
        topics=frozenset({"t"}),
        assigned=tuple(("t", index) for index in assigned),
    )
    return replace(facts, **changes)  # type: ignore[arg-type]


def group(*members: MemberFacts, at_ms: int = START, **changes: object) -> GroupFacts:
    facts = GroupFacts(
        "g",
        at_ms,
        "Stable",
        state_since_ms=START - 60 * MINUTE,
        generation=7,
        protocol_type="consumer",
        protocol="range",
        leader_id=members[0].who.member_id if members else "",
        members=members,
        partition_counts={"t": 4},
    )
    return replace(facts, **changes)  # type: ignore[arg-type]


def healthy(at_ms: int = START, **changes: object) -> GroupFacts:
    return group(member(ANN, 0, 1), member(BOB, 2, 3), at_ms=at_ms, **changes)


def kinds(troubles: list[Trouble]) -> list[TroubleKind]:
    for trouble in troubles:
        assert trouble.summary
        assert trouble.remedy.endswith(".")
        assert trouble.evidence
    return [trouble.kind for trouble in troubles]


def look(past: Past, facts: GroupFacts, limits: TroubleLimits = LIMITS) -> list[TroubleKind]:
    return kinds(find_troubles(facts, past, limits))


def the_one(past: Past, facts: GroupFacts, limits: TroubleLimits = LIMITS) -> Trouble:
    (trouble,) = find_troubles(facts, past, limits)
    return trouble


def window(committed: int, end: int, *, moved_at_ms: int, at_ms: int) -> Window:
    made = Window()
    made.see(Reading("t", 0, committed, moved_at_ms, 0, end), moved_at_ms, 20)
    made.see(Reading("t", 0, committed, moved_at_ms, 0, end), at_ms, 20)
    return made


def test_a_healthy_group_has_no_verdict() -> None:
    assert look(Past(), healthy()) == []
    assert look(Past(), group(state="Empty")) == []


# ------------------------------------------------------------ flapping member


def come_and_go(past: Past, times: int, *, every_ms: int = MINUTE, who: Who = ANN) -> int:
    """Joins, and then leaves and joins again so many times; when that is over."""
    at_ms = START
    for n in range(times + 1):
        now = who._replace(member_id=f"{who.client_id}-{n}")
        past.apply(MemberAddedEntry("g", at_ms, now), LIMITS.window_ms)
        if n < times:
            gone = MembersRemovedEntry("g", at_ms + 1, Removal.LEFT, members=(Gone(now, "bye"),))
            past.apply(gone, LIMITS.window_ms)
        at_ms += every_ms
    return at_ms


def test_a_member_that_comes_and_goes_is_flapping() -> None:
    past = Past()
    at_ms = come_and_go(past, LIMITS.flapping_returns)
    trouble = the_one(past, healthy(at_ms))
    assert trouble.kind is TroubleKind.FLAPPING_MEMBER
    assert trouble.subject == "ann@10.0.0.1"
    assert trouble.evidence["returns"] == 3
    assert trouble.evidence["reasons"] == {"bye": 3}
    assert "group.instance.id" in trouble.remedy
    # It clears when the returns are older than the window.
    assert look(past, healthy(at_ms + LIMITS.window_ms)) == []


def test_one_return_less_is_ordinary_life() -> None:
    past = Past()
    assert look(past, healthy(come_and_go(past, LIMITS.flapping_returns - 1))) == []


def test_returns_that_are_far_apart_do_not_add_up() -> None:
    past = Past()
    at_ms = come_and_go(past, 6, every_ms=LIMITS.window_ms // 2)
    assert look(past, healthy(at_ms)) == []


def test_a_rolling_restart_of_alike_members_is_no_flapping() -> None:
    """Ten processes of one host and one client id, each replaced once by another."""
    past = Past()
    for n in range(10):
        who = ANN._replace(member_id=f"old-{n}")
        past.apply(MemberAddedEntry("g", START - 60 * MINUTE, who), LIMITS.window_ms)
    for n in range(10):
        at_ms = START + n * 5 * SECOND
        gone = Gone(ANN._replace(member_id=f"old-{n}"), "closed")
        past.apply(MembersRemovedEntry("g", at_ms, members=(gone,)), LIMITS.window_ms)
        new = ANN._replace(member_id=f"new-{n}")
        past.apply(MemberAddedEntry("g", at_ms + SECOND, new), LIMITS.window_ms)
    assert look(past, healthy(START + MINUTE)) == []


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("consumer poll timeout has expired.", "max.poll.interval.ms"),
        (None, "session.timeout.ms"),
    ],
)
def test_the_remedy_depends_on_why_it_left(reason: str | None, setting: str) -> None:
    past = Past()
    for n in range(4):
        now = ANN._replace(member_id=f"ann-{n}")
        past.apply(MemberAddedEntry("g", START + n, now), LIMITS.window_ms)
        gone = (Gone(now, reason),)
        removed = MembersRemovedEntry("g", START + n, Removal.SESSION_EXPIRED, members=gone)
        past.apply(removed, LIMITS.window_ms)
    assert setting in the_one(past, healthy()).remedy


def test_two_processes_with_one_instance_id() -> None:
    past = Past()
    who = Who("i-0", "i", "ann", "/10.0.0.1")
    past.apply(MemberAddedEntry("g", START, who), LIMITS.window_ms)
    for n in range(1, 4):
        other = Who(f"i-{n}", "i", "ann", f"/10.0.0.{1 + n % 2}")
        event = StaticMemberReplacedEntry("g", START + n * SECOND, other, f"i-{n - 1}")
        past.apply(event, LIMITS.window_ms)
    trouble = the_one(past, healthy(START + 5 * SECOND))
    assert trouble.subject == "i"
    assert "one group.instance.id" in trouble.remedy
    assert trouble.evidence["hosts"] == ["10.0.0.1", "10.0.0.2"]


# ------------------------------------------------------------ rebalance loop


def rebalance(past: Past, times: int, *, every_ms: int = 10 * SECOND) -> int:
    at_ms = START
    for _ in range(times):
        began = RebalanceBegunEntry("g", at_ms, Cause.SESSION_EXPIRED, ANN, timeout_ms=5 * MINUTE)
        past.apply(began, LIMITS.window_ms)
        at_ms += every_ms
    return at_ms


def behind(at_ms: int, committed: int = 10) -> GroupFacts:
    lagging = window(committed, 100, moved_at_ms=at_ms - SECOND, at_ms=at_ms)
    return healthy(at_ms, windows={("t", 0): lagging})


def test_rebalances_without_progress_are_a_loop() -> None:
    past = Past()
    at_ms = rebalance(past, LIMITS.loop_rebalances)
    assert look(past, behind(at_ms)) == []  # one look does not tell whether anything moves
    trouble = the_one(past, behind(at_ms))
    assert trouble.kind is TroubleKind.REBALANCE_LOOP
    assert trouble.evidence["causes"] == {"session_expired": 5}
    assert "session.timeout.ms" in trouble.remedy
    # With the first offset that moves it is over.
    assert look(past, behind(at_ms + SECOND, committed=11)) == []


def test_fewer_rebalances_and_rebalances_with_progress_are_no_loop() -> None:
    past = Past()
    at_ms = rebalance(past, LIMITS.loop_rebalances - 1)
    for _ in range(3):
        assert look(past, behind(at_ms)) == []
    for n in range(20):  # a rolling restart under load
        rebalance(past, 1)
        assert look(past, behind(START + n * SECOND, committed=20 + n)) == []


def test_a_group_with_nothing_to_read_may_rebalance_as_it_likes() -> None:
    past = Past()
    at_ms = rebalance(past, 30, every_ms=SECOND)
    caught_up = window(100, 100, moved_at_ms=START, at_ms=at_ms)
    for _ in range(3):
        assert look(past, healthy(at_ms, windows={("t", 0): caught_up})) == []


# ------------------------------------------------------------ slow joiner


def ended(*waits: Wait, members_before: int = 2, at_ms: int = START) -> RebalanceEndedEntry:
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
        (Wait(ANN, 10 * SECOND, WaitEnd.REJOINED), True),
        (Wait(ANN, 10 * SECOND - 1, WaitEnd.REJOINED), False),
        (Wait(ANN, None, WaitEnd.DROPPED), True),
        (Wait(ANN, None, WaitEnd.EXPIRED), False),  # it was dead, and not slow
        (Wait(ANN, None, WaitEnd.LEFT), False),
    ],
)
def test_who_kept_the_others_waiting(wait: Wait, *, is_slow: bool) -> None:
    past = Past()
    past.apply(ended(wait, Wait(BOB, 20, WaitEnd.REJOINED)), LIMITS.window_ms)
    found = find_troubles(healthy(), past, LIMITS)
    assert kinds(found) == ([TroubleKind.SLOW_JOINER] if is_slow else [])
    if is_slow:
        assert found[0].subject == "ann-1"
        assert found[0].evidence["rebalance_timeout_ms"] == 5 * MINUTE
        assert "max.poll.interval.ms" in found[0].remedy
    # The next rebalance without it clears the verdict.
    past.apply(ended(Wait(ANN, 20, WaitEnd.REJOINED)), LIMITS.window_ms)
    assert look(past, healthy()) == []


def test_a_slow_joiner_is_forgotten_after_the_window_and_alone_it_disturbs_nobody() -> None:
    past = Past()
    slow = Wait(ANN, 20 * SECOND, WaitEnd.REJOINED)
    past.apply(ended(slow), LIMITS.window_ms)
    assert look(past, healthy(START + LIMITS.window_ms + 1)) == []
    past.apply(ended(slow, members_before=1), LIMITS.window_ms)
    assert look(past, healthy()) == []


# ------------------------------------------------------------ stuck group


def preparing(for_ms: int, *, silent_ms: int = 20 * SECOND) -> GroupFacts:
    return group(
        member(ANN, silent_ms=silent_ms, assigned=None),
        member(BOB, has_rejoined=True, assigned=None),
        state="PreparingRebalance",
        state_since_ms=START - for_ms,
    )


def test_a_group_that_waits_for_a_member() -> None:
    past = Past()
    began = RebalanceBegunEntry(
        "g", START - 20 * SECOND, Cause.MEMBER_JOINED, BOB, timeout_ms=5 * MINUTE
    )
    past.apply(began, LIMITS.window_ms)
    trouble = the_one(past, preparing(20 * SECOND))
    assert trouble.kind is TroubleKind.STUCK_GROUP
    assert "ann at 10.0.0.1" in trouble.summary
    assert "bob" not in trouble.summary
    # Until its session ends, which is before the rebalance times out: it sends no heartbeats.
    assert trouble.evidence["until_ms"] == START + 25 * SECOND
    assert "it is probably dead: it is removed when its session expires, in 25 s" in trouble.summary
    assert "session.timeout.ms" in trouble.remedy
    assert "max.poll" not in trouble.remedy
    # One that sends them extends its session: only the rebalance timeout ends the wait.
    alive = the_one(past, preparing(20 * SECOND, silent_ms=2 * SECOND))
    assert alive.evidence["until_ms"] == START - 20 * SECOND + 5 * MINUTE
    assert "dead" not in alive.summary
    assert "max.poll.interval.ms" in alive.remedy
    assert "session" not in alive.remedy
    assert look(past, preparing(LIMITS.stuck_ms - 1)) == []
    assert look(past, preparing(LIMITS.stuck_ms)) == [TroubleKind.STUCK_GROUP]
    assert look(past, healthy()) == []


@pytest.mark.parametrize(
    ("protocol_type", "named"),
    [("consumer", "max.poll.records"), ("connect", "herder"), ("sr", "group of type sr")],
)
def test_what_helps_a_stuck_group_depends_on_its_type(protocol_type: str, named: str) -> None:
    waiting = replace(preparing(20 * SECOND, silent_ms=SECOND), protocol_type=protocol_type)
    remedy = the_one(Past(), waiting).remedy
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
    trouble = the_one(Past(), waiting)
    expires = "1 of 2 are probably dead: it is removed when its session expires, in 15 s"
    assert expires in trouble.summary
    assert "session.timeout.ms" in trouble.remedy
    assert "max.poll.interval.ms" in trouble.remedy


def test_a_group_that_waits_for_its_leader_or_for_syncs() -> None:
    completing = {"state": "CompletingRebalance", "state_since_ms": START - MINUTE}
    leader = group(member(ANN, is_to_sync=True), member(BOB, waits_for_sync=True), **completing)
    trouble = the_one(Past(), leader)
    assert "ann at 10.0.0.1 to assign" in trouble.summary
    assert trouble.evidence["until_ms"] == START + 4 * MINUTE
    follower = group(member(ANN, waits_for_sync=True), member(BOB, is_to_sync=True), **completing)
    assert "bob at 10.0.0.2 to fetch" in the_one(Past(), follower).summary


def test_an_empty_group_that_waits_for_more_members_is_not_stuck() -> None:
    everybody = group(
        member(ANN, has_rejoined=True, assigned=None),
        state="PreparingRebalance",
        state_since_ms=START - MINUTE,
    )
    assert look(Past(), everybody) == []
    awaited = replace(everybody, pending_member_ids=("carl-1",))
    assert "1 that were given an id" in the_one(Past(), awaited).summary


# ------------------------------------------------------------ mixed


def test_members_that_subscribe_differently_for_long() -> None:
    mixed = group(member(ANN, 0, 1), member(BOB, 2, 3, topics=frozenset({"t", "u"})))
    past = Past()
    assert look(past, mixed) == []  # a rollout has just begun
    assert look(past, replace(mixed, at_ms=START + LIMITS.settle_ms - 1)) == []
    later = replace(mixed, at_ms=START + LIMITS.settle_ms)
    trouble = the_one(past, later)
    assert trouble.kind is TroubleKind.MIXED_SUBSCRIPTIONS
    assert "t + u" in trouble.summary
    assert look(past, healthy(START + LIMITS.settle_ms)) == []
    assert look(past, replace(mixed, at_ms=START + 2 * LIMITS.settle_ms)) == []  # anew


def test_eager_and_cooperative_members_in_one_group() -> None:
    both = ("cooperative-sticky", "range")
    mixed = group(member(ANN, 0, 1), member(BOB, 2, 3, protocols=both))
    past = Past()
    assert look(past, mixed) == []
    trouble = the_one(past, replace(mixed, at_ms=START + LIMITS.settle_ms))
    assert trouble.kind is TroubleKind.MIXED_PROTOCOLS
    assert "two rollouts" in trouble.remedy
    # That all offer both is no trouble: so far the rollout has come.
    assert look(past, group(member(ANN, 0, 1, protocols=both), mixed.members[1])) == []


def test_a_client_that_has_no_assignor_in_common() -> None:
    past = Past()
    who = Who("", None, "carl", "/10.0.0.3")
    for n in range(3):
        past.refuse(Refusal(START + n * SECOND, who, ("roundrobin",), ("range",)))
    trouble = the_one(past, healthy(START + 3 * SECOND))
    assert (trouble.kind, trouble.subject) == (TroubleKind.MIXED_PROTOCOLS, "carl@10.0.0.3")
    assert "carl at 10.0.0.3 was refused 3 times: it offers roundrobin" in trouble.summary
    assert trouble.evidence["supported"] == ["range"]
    # It has not tried again for a while: that is over.
    assert look(past, healthy(START + 2 * SECOND + LIMITS.settle_ms)) == []
    assert look(past, healthy(START + 3 * SECOND + LIMITS.window_ms)) == []
    assert past.refusals == {}


# ------------------------------------------------------------ commit storm


@pytest.mark.parametrize(("rate", "is_storm"), [(99.9, False), (100.0, True), (5_000.0, True)])
def test_a_client_that_commits_all_the_time(rate: float, *, is_storm: bool) -> None:
    rates = (CommitRate("ann-1", rate, 3, rate * 300, "ann", "/10.0.0.1"),)
    found = find_troubles(healthy(commit_rates=rates), Past(), LIMITS)
    assert kinds(found) == ([TroubleKind.COMMIT_STORM] if is_storm else [])
    if is_storm:
        assert found[0].evidence["partitions"] == 3
        assert "auto.commit.interval.ms" in found[0].remedy


# ------------------------------------------------------------ no progress


def standing_still(for_ms: int, **changes: object) -> GroupFacts:
    still = window(10, 100, moved_at_ms=START - for_ms, at_ms=START)
    return healthy(windows={("t", 0): still}, still_since_ms=START - for_ms, **changes)


def test_a_member_that_beats_and_gets_nowhere() -> None:
    assert look(Past(), standing_still(LIMITS.no_progress_ms - 1)) == []
    trouble = the_one(Past(), standing_still(LIMITS.no_progress_ms))
    assert trouble.kind is TroubleKind.NO_PROGRESS
    assert trouble.subject == "ann-1"
    assert trouble.evidence["lag"] == 90
    assert trouble.evidence["still_commits"] is False
    assert "commits nothing on t-0" in trouble.summary


def test_a_member_that_commits_the_same_offset_again_and_again() -> None:
    facts = standing_still(LIMITS.no_progress_ms)
    for ago_ms in (20 * SECOND, 10 * SECOND, 1):
        facts.windows["t", 0].see(Reading("t", 0, 10, START - ago_ms, 0, 100), START, 20)
    trouble = the_one(Past(), facts)
    assert trouble.evidence["still_commits"] is True
    assert "record at the committed offset" in trouble.remedy


def test_without_lag_or_heartbeats_or_a_settled_group_it_is_no_such_trouble() -> None:
    still = standing_still(10 * MINUTE)
    caught_up = window(100, 100, moved_at_ms=START - 10 * MINUTE, at_ms=START)
    assert look(Past(), replace(still, windows={("t", 0): caught_up})) == []
    silent = member(ANN, 0, 1, silent_ms=45 * SECOND)
    assert look(Past(), replace(still, members=(silent, still.members[1]))) == []
    assert look(Past(), replace(still, state_since_ms=START - MINUTE)) == []


def test_a_member_that_commits_once_an_hour_is_given_two() -> None:
    slow = Window()
    for n in range(3):
        at_ms = START + n * 60 * MINUTE
        slow.see(Reading("t", 0, 10 + n, at_ms, 0, 100), at_ms, 20)
    now_ms = START + 3 * 60 * MINUTE
    still = {"windows": {("t", 0): slow}, "still_since_ms": slow.moved_at_ms}
    assert look(Past(), healthy(now_ms, **still)) == []
    later = healthy(now_ms + 60 * MINUTE, **still)
    assert look(Past(), later) == [TroubleKind.NO_PROGRESS]


# ------------------------------------------------------------ wrong assignments


def test_a_partition_with_two_owners() -> None:
    trouble = the_one(Past(), group(member(ANN, 0, 1, 2), member(BOB, 2, 3)))
    assert trouble.kind is TroubleKind.TWO_OWNERS
    assert trouble.evidence["partitions"] == {"t-2": ["ann at 10.0.0.1", "bob at 10.0.0.2"]}
    assert trouble.evidence["leader"] is not None


def test_partitions_that_nobody_reads() -> None:
    past = Past()
    facts = group(member(ANN, 0), member(BOB, 2, 3))
    just_now = replace(facts, state_since_ms=START - LIMITS.settle_ms + 1)
    assert look(past, just_now) == []  # perhaps the first half of a cooperative rebalance
    trouble = the_one(past, replace(facts, state_since_ms=START - LIMITS.settle_ms))
    assert trouble.kind is TroubleKind.ORPHAN_PARTITIONS
    assert trouble.evidence["partitions"] == ["t-1"]
    assert look(past, healthy(generation=8)) == []


def test_new_partitions_may_stay_unnoticed_for_a_while() -> None:
    past = Past()
    assert look(past, healthy()) == []
    grown = healthy(START + SECOND, partition_counts={"t": 5})
    assert look(past, grown) == []
    assert look(past, replace(grown, at_ms=START + 10 * MINUTE)) == []
    much_later = replace(grown, at_ms=START + 12 * MINUTE)
    trouble = the_one(past, much_later)
    assert trouble.evidence["partitions"] == ["t-4"]
    assert "metadata.max.age.ms" in trouble.remedy


def test_a_member_with_far_more_than_its_share() -> None:
    ten = {"partition_counts": {"t": 10}}
    fair = group(member(ANN, *range(5)), member(BOB, *range(5, 10)), **ten)
    assert look(Past(), fair) == []
    uneven = group(member(ANN, *range(9)), member(BOB, 9), **ten)
    assert look(Past(), uneven) == []  # 9 of a share of 5: below twice
    skewed = group(member(ANN, *range(10)), member(BOB), **ten)
    trouble = the_one(Past(), skewed)
    assert trouble.kind is TroubleKind.SKEWED_ASSIGNMENT
    assert (trouble.evidence["partitions"], trouble.evidence["fair"]) == (10, 5)
    assert "cooperative-sticky" in trouble.remedy
    # More members than partitions: somebody has none, and that is nobody's fault.
    one = group(member(ANN, 0), member(BOB), partition_counts={"t": 1})
    assert look(Past(), one) == []


def test_partitions_that_were_moved_for_nothing() -> None:
    past = Past()
    assert look(past, healthy()) == []
    shuffled = group(member(ANN, 2, 1), member(BOB, 0, 3), generation=8)
    trouble = the_one(past, shuffled)
    assert trouble.kind is TroubleKind.NEEDLESS_MOVES
    assert trouble.evidence["partitions"] == ["t-0", "t-2"]
    assert look(past, replace(shuffled, generation=9)) == []


def test_moves_for_a_reason_are_not_needless() -> None:
    past = Past()
    lopsided = group(member(ANN, 0, 1, 2, 3), member(BOB), state_since_ms=START - SECOND)
    assert look(past, lopsided) == []
    assert look(past, healthy(generation=8)) == []  # spread better
    carl = Who("carl-1", None, "carl", "/10.0.0.3")
    came = group(member(ANN, 0), member(BOB, 1), member(carl, 2, 3), generation=9)
    assert look(past, came) == []


def test_the_halves_of_a_cooperative_rebalance_are_ordinary() -> None:
    past = Past()
    settling = {"state_since_ms": START - SECOND, "protocol": "cooperative-sticky"}
    assert look(past, group(member(ANN, 0, 1, 2, 3), **settling)) == []
    first = group(member(ANN, 0, 1), member(BOB), generation=8, **settling)
    assert look(past, first) == []
    second = group(member(ANN, 0, 1), member(BOB, 2, 3), generation=9, **settling)
    assert look(past, second) == []


def test_groups_whose_bytes_are_no_consumers_are_let_be() -> None:
    opaque = group(
        member(ANN, topics=None, assigned=None),
        member(BOB, topics=None, assigned=None),
        protocol_type="connect",
        partition_counts={},
    )
    assert look(Past(), opaque) == []


# ------------------------------------------------------------ assignors that hand out copies


def faust(*members: MemberFacts, **changes: object) -> GroupFacts:
    """Both have the standby of the other one's table partitions; only `t` is committed."""
    windows = {("t", index): window(5, 5, moved_at_ms=START, at_ms=START) for index in range(4)}
    return group(*members, protocol="faust", windows=windows, **changes)


def with_table(who: Who, *assigned: int) -> MemberFacts:
    plain = member(who, *assigned)
    assert plain.assigned is not None
    table = tuple(("app-table-changelog", index) for index in range(4))
    return replace(plain, assigned=(*plain.assigned, *table))


def test_standbys_of_faust_are_no_second_owners() -> None:
    assert look(Past(), faust(with_table(ANN, 0, 1), with_table(BOB, 2, 3))) == []


def test_a_custom_assignor_that_gives_what_is_read_to_two_is_found_all_the_same() -> None:
    both = faust(with_table(ANN, 0, 1), with_table(BOB, 1, 2, 3))
    trouble = the_one(Past(), both)
    assert trouble.kind is TroubleKind.TWO_OWNERS
    assert trouble.evidence["partitions_total"] == 1


def test_with_kafkas_own_assignors_everything_counts() -> None:
    both = replace(faust(with_table(ANN, 0, 1), with_table(BOB, 2, 3)), protocol="range")
    assert TroubleKind.TWO_OWNERS in look(Past(), both)


def test_standbys_are_no_skew() -> None:
    spread = [("app-table-changelog", index) for index in range(20)]
    heavy = replace(member(ANN, 0, 1), assigned=(("t", 0), ("t", 1), *spread))
    others = member(BOB, 2), member(CARL, 3)
    assert look(Past(), faust(heavy, *others)) == []
    assert TroubleKind.SKEWED_ASSIGNMENT in look(
        Past(), replace(faust(heavy, *others), protocol="range")
    )
