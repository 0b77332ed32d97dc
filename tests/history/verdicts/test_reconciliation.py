"""Verdicts on consumer groups: when each is said, where its boundary is, and what it names."""

from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.consumer_entries import (
    GroupEpochBumpedEntry,
    RevocationEndedEntry,
    TargetAssignmentRefusedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import Rebalance, RebalanceBegunEntry, RebalanceEndedEntry
from history.entry_values import MemberWait
from history.lag.model import Reading
from history.lag.window import LagWindow
from history.verdicts.model import (
    ObservedGroup,
    ObservedMember,
    Verdict,
    VerdictKind,
    VerdictLimits,
)
from history.verdicts.recent_activity import RecentActivity
from tests.history.verdicts.all_steps import find_verdicts

START = 1_700_000_000_000
SECOND = 1_000
LIMITS = VerdictLimits()
ANN = MemberIdentity("ann-1", None, "ann", "/10.0.0.1")
BOB = MemberIdentity("bob-1", None, "bob", "/10.0.0.2")


def member(identity: MemberIdentity, *assigned: int, **changes: object) -> ObservedMember:
    known = ObservedMember(
        identity,
        session_timeout_ms=45 * SECOND,
        rebalance_timeout_ms=300 * SECOND,
        topics=frozenset({"t"}),
        assigned=tuple(("t", index) for index in assigned),
        member_epoch=7,
    )
    return replace(known, **changes)  # type: ignore[arg-type]


def group(*members: ObservedMember, at_ms: int = START, **changes: object) -> ObservedGroup:
    known = ObservedGroup(
        "g",
        at_ms,
        "Stable",
        START - 3_600 * SECOND,
        7,
        "consumer",
        members=members,
        partition_counts={"t": 4},
        group_type="consumer",
    )
    return replace(known, **changes)  # type: ignore[arg-type]


def found(observed: ObservedGroup, activity: RecentActivity | None = None) -> list[Verdict]:
    verdicts = find_verdicts(observed, activity or RecentActivity(), LIMITS)
    for verdict in verdicts:
        assert verdict.remedy.endswith(".")
        assert "leader" not in verdict.remedy
        assert "partition.assignment.strategy" not in verdict.remedy
    return verdicts


def revoking(ms: int) -> ObservedGroup:
    ann = member(ANN, 0, 1, 2, 3, is_reconciled=False, revoking=(("t", 3),), revoking_ms=ms)
    bob = member(BOB, is_reconciled=False, unreleased=(("t", 3),))
    return group(ann, bob, state="Reconciling", state_since_ms=START - ms)


def test_a_member_has_some_time_to_give_partitions_back() -> None:
    assert found(revoking(LIMITS.stuck_ms - 1)) == []
    (verdict,) = found(revoking(LIMITS.stuck_ms))
    assert (verdict.kind, verdict.subject) == (VerdictKind.UNREVOKED_PARTITIONS, "ann-1")
    assert verdict.summary == (
        "ann at 10.0.0.1 has not given back t-3 for 15 s; bob at 10.0.0.2 waits for them; last "
        "heard 0 ms ago, removed in 4 min 45 s unless it does"
    )
    assert verdict.evidence["waiting_total"] == 1


def unreconciled(ms: int) -> ObservedGroup:
    ann, bob = member(ANN, 0, 1), member(BOB, 2, 3, is_reconciled=False, silent_ms=ms)
    return group(ann, bob, state="Reconciling", state_since_ms=START - ms)


def test_a_group_has_some_time_to_reach_its_target() -> None:
    assert found(unreconciled(LIMITS.stuck_ms - 1)) == []
    (verdict,) = found(unreconciled(LIMITS.stuck_ms))
    assert verdict.kind is VerdictKind.STUCK_GROUP
    assert verdict.summary == (
        "Reconciling for 15 s: 1 of 2 members have not reached group epoch 7: bob at 10.0.0.2; "
        "last heard 15 s ago"
    )


def test_a_group_in_which_partitions_move_is_not_stuck() -> None:
    activity = RecentActivity()
    activity.apply(RevocationEndedEntry("g", START - SECOND), LIMITS.window_ms)
    assert found(unreconciled(LIMITS.stuck_ms), activity) == []
    later = replace(unreconciled(LIMITS.stuck_ms), at_ms=START + LIMITS.stuck_ms)
    assert [verdict.kind for verdict in found(later, activity)] == [VerdictKind.STUCK_GROUP]


def test_an_assignor_that_fails_is_named() -> None:
    activity = RecentActivity()
    activity.apply(TargetAssignmentRefusedEntry("g", START, 7, "mine", "KeyError"), 600_000)
    stuck = group(member(ANN), state="Assigning", state_since_ms=START - LIMITS.stuck_ms)
    (verdict,) = found(stuck, activity)
    assert verdict.summary == (
        "Assigning for 15 s: there is no target assignment for group epoch 7: the assignor mine "
        "failed (KeyError)"
    )
    assert "group.consumer.assignors" in verdict.remedy
    activity.apply(TargetAssignmentUpdatedEntry("g", START, 7, "uniform"), 600_000)
    (verdict,) = found(stuck, activity)
    assert "failed" not in verdict.summary
    assert "group.consumer.assignment.interval.ms" in verdict.remedy


def test_epochs_without_progress_are_a_loop_even_in_one_rebalance() -> None:
    window = LagWindow()
    window.see(Reading("t", 0, 10, START, 0, 50), START, 20)
    looping = group(member(ANN, 0, 1, 2, 3), windows={("t", 0): window})
    activity = RecentActivity()
    assert found(looping, activity) == []
    activity.apply(RebalanceBegunEntry("g", START, group_type="consumer"), LIMITS.window_ms)
    for number in range(LIMITS.loop_rebalances):
        bumped = GroupEpochBumpedEntry("g", START, 8 + number, (Cause.REBALANCE_TIMEOUT,), (ANN,))
        activity.apply(bumped, LIMITS.window_ms)
    found(looping, activity)
    kinds = {verdict.kind: verdict for verdict in found(looping, activity)}
    loop = kinds[VerdictKind.REBALANCE_LOOP]
    assert loop.summary.startswith("5 group epochs within 0 ms and no offset advanced")
    assert "most common cause: rebalance_timeout; 5 of them triggered by ann" in loop.summary
    assert "onPartitionsRevoked" in loop.remedy


def test_a_member_that_gave_back_late_is_a_slow_joiner() -> None:
    activity = RecentActivity()
    slow = MemberWait(ANN, 30_000, WaitEnd.REVOKED, START, 12_000, 2)
    quick = MemberWait(BOB, 30_000, WaitEnd.REVOKED, START, 40, 1)
    rebalance = Rebalance(
        Cause.MEMBER_JOINED,
        START - 40_000,
        end=End.STABLE,
        duration_ms=40_000,
        members_before=2,
        members_after=3,
        waited_for=(slow, quick),
        group_type="consumer",
    )
    activity.apply(RebalanceEndedEntry("g", START, rebalance), LIMITS.window_ms)
    (verdict,) = found(group(member(ANN, 0, 1), member(BOB, 2, 3)), activity)
    assert (verdict.kind, verdict.subject) == (VerdictKind.SLOW_JOINER, "ann-1")
    assert "gave back 2 partitions 12 s after it was told to" in verdict.summary


def test_remedies_for_assignments_name_the_server_side_assignor() -> None:
    (skewed,) = found(group(member(ANN, 0, 1, 2, 3), member(BOB)))
    assert skewed.kind is VerdictKind.SKEWED_ASSIGNMENT
    assert "uniform" in skewed.remedy
    (orphan,) = found(group(member(ANN, 0), member(BOB, 1, 2)))
    assert orphan.kind is VerdictKind.ORPHAN_PARTITIONS
    assert "group.remote.assignor" in orphan.remedy


def test_partitions_that_moved_for_nothing_name_the_epoch() -> None:
    activity = RecentActivity()
    assert found(group(member(ANN, 0, 1), member(BOB, 2, 3)), activity) == []
    (moved,) = found(group(member(ANN, 1, 2), member(BOB, 0, 3), generation=8), activity)
    assert moved.kind is VerdictKind.NEEDLESS_MOVES
    assert "in group epoch 8" in moved.summary
    assert "group.remote.assignor=uniform" in moved.remedy


def test_each_member_that_keeps_partitions_names_those_that_wait_for_its_own() -> None:
    def awaited(n: int) -> tuple[tuple[str, int], ...]:
        return (("t", 2 * n), ("t", 2 * n + 1))

    stuck = [
        member(MemberIdentity(f"old-{n}"), revoking=awaited(n), revoking_ms=LIMITS.stuck_ms)
        for n in range(450)
    ]
    waiting = [member(MemberIdentity(f"new-{n}"), unreleased=awaited(n)) for n in range(450)]
    verdicts = found(group(*stuck, *waiting, state="Reconciling"))
    assert [verdict.subject for verdict in verdicts] == [f"old-{n}" for n in range(450)]
    for n, verdict in enumerate(verdicts):
        assert verdict.evidence["waiting_total"] == 1
        assert f"; new-{n} waits for them;" in verdict.summary
