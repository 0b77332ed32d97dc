"""Derived commits: effective commits, offsets as of an instant, rates, against plain Python."""

from collections import Counter
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from pipeline.derive.audit import suspects
from pipeline.derive.commit_rate import commit_rate, group_rate
from pipeline.derive.effective import effective_commits
from pipeline.derive.in_order import in_order
from pipeline.derive.offsets_as_of import offsets_as_of
from tests.pipeline.histories import (
    START_MS,
    Commit,
    History,
    a_history,
    commits_frame,
    markers_frame,
    metadata_frame,
)

pytestmark = pytest.mark.xdist_group("spark")

HISTORIES = [a_history(seed, log_partition=seed) for seed in range(4)]


def outcome(history: History, commit: Commit) -> tuple[str, int | None]:
    """(outcome, when it counted)"""
    if commit.producer_id is None:
        return "committed", commit.at_ms
    for marker in history.markers:  # in the order of the log
        if marker.producer_id == commit.producer_id and marker.log_offset > commit.log_offset:
            return ("committed", marker.at_ms) if marker.committed else ("aborted", None)
    return "pending", None


def test_a_commit_counts_when_its_transaction_says_so(spark: SparkSession) -> None:
    commits, markers = (make(spark, HISTORIES) for make in (commits_frame, markers_frame))

    found = effective_commits(commits, markers.union(markers)).collect()

    assert len(found) == sum(len(history.commits) for history in HISTORIES)
    assert {
        (row.log_partition, row.log_offset): (row.outcome, row.effective_at_ms) for row in found
    } == {
        (history.log_partition, commit.log_offset): outcome(history, commit)
        for history in HISTORIES
        for commit in history.commits
    }
    assert {row.outcome for row in found} == {"committed", "aborted", "pending"}


def test_without_an_end_transactions_are_pending(spark: SparkSession) -> None:
    found = effective_commits(commits_frame(spark, HISTORIES), None).collect()

    assert {(row.log_partition, row.log_offset): row.outcome for row in found} == {
        (history.log_partition, commit.log_offset): "committed"
        if commit.producer_id is None
        else "pending"
        for history in HISTORIES
        for commit in history.commits
    }


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_offsets_as_of_an_instant_are_the_newest_that_counted_by_then(
    spark: SparkSession, share: float
) -> None:
    at_ms = START_MS + int((HISTORIES[0].end_ms - START_MS) * share)
    effective = effective_commits(commits_frame(spark, HISTORIES), markers_frame(spark, HISTORIES))

    found = offsets_as_of(effective.where("log_partition = 0"), at_ms).collect()

    newest: dict[tuple[str, str, int], Commit] = {}
    for commit in HISTORIES[0].commits:
        counted = outcome(HISTORIES[0], commit)[1]
        if counted is not None and counted <= at_ms:
            newest[commit.group, commit.topic, commit.partition] = commit
    assert {
        (row.group, row.topic, row.partition): (row.committed_offset, row.log_offset)
        for row in found
    } == {
        key: (commit.offset, commit.log_offset)
        for key, commit in newest.items()
        if commit.offset is not None
    }
    assert all(row.oldest_at_ms <= row.committed_at_ms <= at_ms for row in found)


def test_what_went_back_or_away_is_suspect(spark: SparkSession) -> None:
    history = HISTORIES[1]
    effective = effective_commits(commits_frame(spark, [history]), markers_frame(spark, [history]))

    found = suspects(effective).collect()

    expected = []
    last: dict[tuple[str, str, int], int | None] = {}
    for commit in history.commits:
        state, counted = outcome(history, commit)
        if state != "committed":
            continue
        key = (commit.group, commit.topic, commit.partition)
        old = last.get(key)
        if old is not None and (commit.offset is None or commit.offset < old):
            expected.append((counted, *key, old, commit.offset))
        last[key] = commit.offset
    assert sorted(map(tuple, found), key=str) == sorted(expected, key=str)
    assert any(row.new_offset is None for row in found)


def owner(history: History, commit: Commit) -> str | None:
    found = None
    for generation in history.generations:
        if generation.group == commit.group and generation.log_offset < commit.log_offset:
            found = None  # a generation without the partition leaves it without an owner
            for member, owned in generation.owned.items():
                if (commit.topic, commit.partition) in owned:
                    found = member
    return found


def test_a_commit_knows_its_owner_and_what_came_before(spark: SparkSession) -> None:
    commits, metadata = commits_frame(spark, HISTORIES), metadata_frame(spark, HISTORIES)
    effective = effective_commits(commits.union(commits), markers_frame(spark, HISTORIES))

    found = in_order(effective, metadata.union(metadata)).collect()

    expected = {}
    for history in HISTORIES:
        before: dict[tuple[str, str, int], tuple[int | None, int | None]] = {}
        for commit in history.commits:
            if outcome(history, commit)[0] == "committed":
                key = (commit.group, commit.topic, commit.partition)
                old, last = before.get(key, (None, None))
                expected[history.log_partition, commit.log_offset] = (
                    old,
                    last,
                    owner(history, commit),
                )
                before[key] = (commit.offset, last if commit.offset is None else commit.offset)
    assert len(found) == len(expected)  # each once
    assert {
        (row.log_partition, row.log_offset): (row.old_offset, row.last_offset, row.member_id)
        for row in found
    } == expected
    named = [row for row in found if row.member_id is not None]
    assert named
    assert all(row.client_id == f"client-of-{row.member_id}" for row in named)


def test_rates_count_each_minute(spark: SparkSession) -> None:
    history = HISTORIES[2]
    effective = effective_commits(commits_frame(spark, [history]), markers_frame(spark, [history]))

    found = commit_rate(in_order(effective, metadata_frame(spark, [history]))).collect()

    commits: Counter[tuple] = Counter()
    advanced: dict[tuple, int | None] = {}
    last: dict[tuple[str, str, int], int] = {}
    for commit in history.commits:
        state, counted = outcome(history, commit)
        if state != "committed" or commit.offset is None or counted is None:
            continue
        key = (commit.group, commit.topic, commit.partition)
        row = (counted - counted % 60_000, *key, owner(history, commit))
        commits[row] += 1
        if key in last:
            advanced[row] = (advanced.get(row) or 0) + commit.offset - last[key]
        last[key] = commit.offset
    names = ("minute_ms", "group", "topic", "partition", "member_id")
    assert {tuple(row[name] for name in names): row.commits for row in found} == commits
    assert {
        tuple(row[name] for name in names): row.advanced
        for row in found
        if row.advanced is not None
    } == advanced


def median(numbers: Sequence[float]) -> float:
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[-middle - 1]) / 2


def test_a_storm_stands_out_from_its_own_hour(spark: SparkSession) -> None:
    minutes = {minute: 20 + minute % 3 for minute in range(60)}
    minutes[31] = 2_000
    rows = [(minute * 60_000, "g", commits) for minute, commits in minutes.items()]

    found = group_rate(
        spark.createDataFrame(rows, "minute_ms long, group string, commits long")
    ).collect()

    usual = median(list(minutes.values()))
    spread = 1.4826 * median([abs(commits - usual) for commits in minutes.values()])
    for row in found:
        assert row.baseline == usual
        assert row.spread == pytest.approx(spread)
        expected = (minutes[row.minute_ms // 60_000] - usual) / max(spread, 1)
        assert row.score == pytest.approx(expected)
    assert max(found, key=lambda row: row.score).minute_ms == 31 * 60_000


def test_a_step_that_does_not_fit_into_64_bits_is_unknown(spark: SparkSession) -> None:
    """A client may commit any number of 64 bits, and no job ends for that."""
    lowest, highest = -(1 << 63), (1 << 63) - 1
    commits = [
        Commit(n, START_MS + n, "odd", "t", 0, offset)
        for n, offset in enumerate([lowest, highest, lowest])
    ]
    effective = effective_commits(commits_frame(spark, [History(0, commits)]), None)

    (found,) = commit_rate(in_order(effective)).collect()

    assert (found.commits, found.advanced) == (3, None)
