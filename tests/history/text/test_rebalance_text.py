"""Rebalance text: what people and programs read of a rebalance, and of a group that waits."""

import pytest
from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, WaitEnd
from history.entries import Rebalance
from history.entry_values import (
    AlsoCaused,
    MemberWait,
)
from history.text.rebalance_json import rebalance_json
from history.text.rebalance_text import NAMED_MAX, format_rebalance, format_wait
from history.waiting import AwaitedMember, GroupWait, WaitReason
from seams.text import duration, instant

AT = 1_700_000_000_000
SLOW = MemberIdentity("slow-1", None, "slow", "/10.0.0.7")
FAST = MemberIdentity("fast-1", "i-1", "fast", "/10.0.0.8")
SLOW_NAME = "slow (slow-1) at 10.0.0.7"
DROPPED = "did not rejoin before the rebalance timeout, and was dropped"
REJOINED = "fast (i-1) at 10.0.0.8 rejoined after 40 ms"
LONG = Rebalance(
    Cause.REBALANCE_TIMEOUT,
    AT,
    SLOW,
    began_by=Cause.MEMBER_JOINED,
    end=End.STABLE,
    duration_ms=300_000,
    waited_for=(MemberWait(FAST, 40, WaitEnd.REJOINED), MemberWait(SLOW, None, WaitEnd.DROPPED)),
    also=(
        AlsoCaused(Cause.MEMBER_JOINED, MemberIdentity("new-1", None, "new", ""), AT),
        AlsoCaused(Cause.MEMBER_LEFT, MemberIdentity("x"), AT + 5),
    ),
    generation_before=7,
    generation_after=8,
    members_before=2,
    members_after=2,
    partitions_moved=1,
    unowned_partition_seconds=600.25,
)


def test_the_story_of_a_rebalance_that_ran_into_its_timeout() -> None:
    expected = [
        "2023-11-14T22:13:20.000Z  generation 7 -> 8, members 2, took 5 min",
        f"  Cause: rebalance_timeout. {SLOW_NAME} {DROPPED}.",
        "  It began because: new (new-1) joined the group.",
        "  Meanwhile: a client (x) left the group.",
        f"  Waited for 2 members: {SLOW_NAME} was dropped at the rebalance timeout; {REJOINED}.",
        "  Cost: 1 partition moved; 600.25 partition-seconds without an owner.",
    ]
    assert format_rebalance(LONG) == expected


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("trigger", [SLOW, None])
@pytest.mark.parametrize("end", End)
def test_every_cause_and_every_end_has_words(
    cause: Cause, trigger: MemberIdentity | None, end: End
) -> None:
    lines = format_rebalance(
        Rebalance(cause, AT, trigger, end=end, generation_before=1, generation_after=1)
    )
    assert f"Cause: {cause}. " in lines[1]
    assert "{" not in "".join(lines)


def test_a_crowd_is_counted() -> None:
    waits = tuple(
        MemberWait(MemberIdentity(f"m-{n}"), n, WaitEnd.REJOINED) for n in range(NAMED_MAX + 3)
    )
    (line,) = [
        text for text in format_rebalance(replace(LONG, waited_for=waits)) if "Waited" in text
    ]
    assert "m-7" in line  # the slowest is named
    assert line.endswith("; and 3 more.")


def test_exactly_these_fields_are_shown() -> None:
    assert list(rebalance_json(LONG)) == [
        "cause",
        "trigger",
        "began_at",
        "duration_ms",
        "waited_for",
        "generation_before",
        "generation_after",
        "members_before",
        "members_after",
        "partitions_moved",
        "unowned_partition_seconds",
        "with_trigger",
        "replaced",
        "note",
        "topics_changed",
        "moves",
        "standby_tasks",
        "assigned",
        "protocol_type",
        "away_ms",
        "stopped",
        "group_type",
        "assignor",
        "reached_target",
    ]
    assert rebalance_json(LONG)["trigger"] == {
        "member_id": "slow-1",
        "group_instance_id": None,
        "client_id": "slow",
        "host": "/10.0.0.7",
        "principal": None,
    }
    assert rebalance_json(LONG)["waited_for"] == [
        {
            "member_id": "fast-1",
            "client_id": "fast",
            "join_delay_ms": 40,
            "how_it_ended": "rejoined",
            "waited_ms": None,
            "partitions": None,
        },
        {
            "member_id": "slow-1",
            "client_id": "slow",
            "join_delay_ms": None,
            "how_it_ended": "dropped",
            "waited_ms": None,
            "partitions": None,
        },
    ]


def test_of_one_that_runs_no_end_is_shown() -> None:
    running = Rebalance(Cause.COORDINATOR_MOVED, AT, generation_before=3, generation_after=4)
    plain = rebalance_json(running)
    assert (plain["duration_ms"], plain["generation_after"], plain["members_after"]) == (None,) * 3
    assert set(plain["trigger"].values()) == {None}  # type: ignore[attr-defined]


def test_a_stuck_group_says_for_whom_and_until_when() -> None:
    waiting = GroupWait(
        "PreparingRebalance",
        WaitReason.JOINS,
        AT,
        AT + 60_000,
        (AwaitedMember(SLOW, AT + 9_000), AwaitedMember(FAST)),
        joined=3,
        assigned_ids=1,
    )
    lines = format_wait(waiting, AT + 1_000)
    assert lines[0] == (
        "PreparingRebalance for 1.0 s: waits for 2 members to rejoin, "
        "until 2023-11-14T22:14:20.000Z at the latest (in 59 s)."
    )
    assert lines[1] == "  - slow (slow-1) at 10.0.0.7; gone in 8.0 s if it stays silent"
    assert lines[2] == "  - fast (i-1) at 10.0.0.8"
    assert "one id handed out" in lines[3]
    assert "dropped" in lines[4]


@pytest.mark.parametrize("waits_for", WaitReason)
def test_every_kind_of_waiting_has_words_and_an_end(waits_for: WaitReason) -> None:
    lines = format_wait(GroupWait("Stable", waits_for, AT, None), AT)
    assert len(lines) == 2
    assert "{" not in "".join(lines)


def test_times() -> None:
    assert instant(AT + 7) == "2023-11-14T22:13:20.007Z"
    assert [duration(ms) for ms in (5, 1_500, 119_000, 125_000)] == [
        "5 ms",
        "1.5 s",
        "119 s",
        "2 min 5 s",
    ]
