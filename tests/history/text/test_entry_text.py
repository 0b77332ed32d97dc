"""Entry text: the lines of `rollcall history`, moves of partitions, texts of a restart."""

import pytest
from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, OffsetsBy, Removal
from history.entries import (
    ENTRY_TYPES,
    GroupCreatedEntry,
    GroupLoadedEntry,
    MembersRemovedEntry,
    OffsetsMovedEntry,
    Rebalance,
)
from history.entry_values import (
    MemberRemoval,
    MemberWait,
    OffsetChange,
    PartitionMove,
    RequestClient,
    StandbyTasks,
    TopicPartitionCounts,
)
from history.text.entry_text import format_entry
from history.text.rebalance_json import replace_epoch_times
from history.text.rebalance_text import MOVES_NAMED_MAX, format_rebalance
from seams.text import duration

AT = 1_700_000_000_000
UUID = "1a2b3c4d-0000-4000-8000-000000000000"
ANN = MemberIdentity(f"ann-{UUID}", None, "ann", "/10.0.0.7")
BOB = MemberIdentity("bob-1", "i-1", "bob", "/10.0.0.8")


@pytest.mark.parametrize("kind", ENTRY_TYPES.values())
def test_every_type_has_a_line_without_raw_values(kind: type) -> None:
    line = format_entry(kind("g", AT))
    assert line.strip()
    assert not set("{}[]") & set(line)
    assert "None" not in line
    assert "True" not in line


def test_lines_are_for_people() -> None:
    removed = MembersRemovedEntry(
        "g",
        AT,
        Removal.SESSION_EXPIRED,
        3,
        (MemberRemoval(ANN, None, 45_000, 45_000), MemberRemoval(BOB)),
    )
    assert format_entry(removed) == (
        "expired in generation 3: ann (ann-1a2b3c4d...) at 10.0.0.7, last heard 45 s before, "
        "bob (i-1) at 10.0.0.8"
    )
    moved = OffsetsMovedEntry(
        "g",
        AT,
        OffsetsBy.COMMIT,
        (OffsetChange("t", 0, None, 7),),
        RequestClient("a-tool", "/10.0.0.9"),
    )
    assert format_entry(moved) == "commit by a-tool at 10.0.0.9: t-0 none -> 7"
    assert (
        format_entry(GroupCreatedEntry("g", AT, simple=True))
        == "by a commit of a client that is no member"
    )
    loaded = GroupLoadedEntry("g", AT, 4, "Stable", 1, away_ms=12_400, stopped="killed")
    assert format_entry(loaded) == (
        "the daemon loaded it after a kill or a crash, away for at most 12 s: Stable, "
        "generation 4, 1 member"
    )


MOVED = Rebalance(
    Cause.MEMBER_JOINED,
    AT,
    BOB,
    end=End.STABLE,
    duration_ms=5,
    waited_for=(MemberWait(ANN, 3),),
    partitions_moved=3,
    moves=(
        PartitionMove("t", 0, ANN.member_id, "i-1"),
        PartitionMove("t", 2, ANN.member_id, "i-1"),
    ),
    unowned_partition_seconds=0.0,
)


def test_which_partitions_went_from_whom_to_whom() -> None:
    assert (
        "  Moved: t-0, t-2 from ann (ann-1a2b3c4d...) at 10.0.0.7 to bob (i-1) at 10.0.0.8; "
        "and 1 more."
    ) in format_rebalance(MOVED)


def test_the_list_of_moves_is_bounded() -> None:
    moves = tuple(PartitionMove("t", n, "a", "b") for n in range(2 * MOVES_NAMED_MAX))
    (line,) = [
        text
        for text in format_rebalance(replace(MOVED, moves=moves, partitions_moved=1_000))
        if text.startswith("  Moved")
    ]
    assert line.count("t-") == MOVES_NAMED_MAX
    assert line.endswith(f"; and {1_000 - MOVES_NAMED_MAX} more.")


def test_a_running_rebalance_has_a_cost_so_far() -> None:
    running = replace(MOVED, end=End.RUNNING, duration_ms=None, partitions_moved=None, moves=())
    assert "  Cost so far: 0 partition-seconds without an owner." in format_rebalance(running)


def test_an_operators_reason_is_the_operators() -> None:
    lines = format_rebalance(replace(MOVED, cause=Cause.OPERATOR, client_reason="stuck"))
    assert lines[1] == "  Cause: operator. An operator (client bob at 10.0.0.8) removed i-1."
    assert lines[2] == "  The operator's reason: stuck"


@pytest.mark.parametrize(
    ("stopped", "text"),
    [
        ("killed", "restarted after it was killed or had crashed; it was away for at most 12 s"),
        ("stopped", "restarted after a clean stop; it was away for 12 s"),
    ],
)
def test_a_restart_says_how_and_how_long(stopped: str, text: str) -> None:
    moved = Rebalance(Cause.COORDINATOR_MOVED, AT, end=End.KEPT, away_ms=12_000, stopped=stopped)
    assert text in format_rebalance(moved)[1]


def test_changed_topics_have_names_and_numbers() -> None:
    topics = (
        TopicPartitionCounts("t", 2, 8),
        TopicPartitionCounts("u", 0, 3),
        TopicPartitionCounts("v", 2, 0),
        TopicPartitionCounts("w"),
    )
    changed = Rebalance(Cause.PARTITIONS_CHANGED, AT, topics=topics)
    assert "(t: 2 -> 8; u: created with 3; v: deleted, it had 2; w)" in format_rebalance(changed)[1]


def test_standby_tasks_and_other_types_are_shown() -> None:
    held = replace(MOVED, held=(StandbyTasks(BOB, 1, 4),), described="2 connectors")
    lines = format_rebalance(held)
    assert (
        "  Standby tasks of Kafka Streams (standbys and warm-ups): bob (i-1) at 10.0.0.8 4."
    ) in lines
    assert "  Assigned: 2 connectors." in lines


def test_times_in_clients_words() -> None:
    assert (
        replace_epoch_times("scheduled for 1795345263061")
        == "scheduled for 2026-11-22T11:01:03.061Z"
    )
    for said in ("offset 12345", "id 17953452630619", "1795345263061.5", "x-1795345263061"):
        assert replace_epoch_times(said) == said


def test_durations() -> None:
    assert [duration(ms) for ms in (0, 300_000, 7_200_000, 7_500_000)] == [
        "0 ms",
        "5 min",
        "2 h",
        "2 h 5 min",
    ]
