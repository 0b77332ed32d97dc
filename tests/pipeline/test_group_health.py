"""Group health: the rules in Spark agree with those in plain Python, for any history of commits."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from pipeline.derive.group_health import group_health, partition_health
from pipeline.derive.lag_samples import each_once

pytestmark = pytest.mark.xdist_group("spark")

MINUTE = 60_000
SCHEMA = "group string, topic string, partition int, at_ms long, committed_offset long, lag long"


class Seen(NamedTuple):
    at_ms: int
    offset: int
    lag: int


def judged(commits: Sequence[Seen], now_ms: int, intervals: int) -> str | None:
    """The rules, read aloud; None before the first commit."""
    window = [commit for commit in commits if commit.at_ms <= now_ms][-intervals:]
    if not window:
        return None
    last = window[-1]
    if last.lag == 0:
        return "OK"
    full = len(window) >= intervals
    if full and now_ms - last.at_ms > last.at_ms - window[0].at_ms:
        return "STOP"
    if any(commit.offset > last.offset for commit in window):
        return "REWIND"
    if not full or any(commit.lag == 0 for commit in window):
        return "OK"
    if len({commit.offset for commit in window}) == 1:
        return "STALL"
    if all(b.lag >= a.lag for a, b in pairwise(window)):
        return "WARN"
    return "OK"


def a_history(chance: random.Random) -> list[Seen]:
    """A consumer that keeps up, falls behind, stands still, goes back or goes away."""
    mood = chance.choice(["keeps up", "falls behind", "stands", "goes back", "goes away", "mixed"])
    at, offset, lag = chance.randrange(20) * MINUTE, 1_000, chance.choice([0, 50])
    seen = []
    for _ in range(chance.randrange(1, 40 if mood != "goes away" else 14)):
        at += chance.choice([MINUTE, MINUTE, 2 * MINUTE, 9 * MINUTE])
        now = chance.choice(["keeps up", "falls behind", "stands"]) if mood == "mixed" else mood
        if now == "goes back" and chance.random() < 0.15:
            offset, lag = offset - 300, lag + 300
        elif now in ("keeps up", "goes back", "goes away"):
            offset, lag = offset + 10, max(0, lag + chance.choice([-5, 0, 3]))
        elif now == "falls behind":
            offset, lag = offset + 5, lag + chance.choice([0, 5, 20])
        else:
            lag += 10
        seen.append(Seen(at, offset, lag))
    return seen


def test_every_verdict_is_the_one_of_the_rules(spark: SparkSession) -> None:
    chance = random.Random(4)
    histories = {f"group-{n}": a_history(chance) for n in range(300)}
    rows = [(g, "t", 0, *commit) for g, commits in histories.items() for commit in commits]
    until, intervals = 300 * MINUTE, 5

    found = partition_health(
        spark.createDataFrame(rows, SCHEMA), 0, until, every_ms=5 * MINUTE, intervals=intervals
    ).collect()

    verdicts = {(row.group, row.at_ms): row.verdict for row in found}
    expected = {
        (group, at): verdict
        for group, commits in histories.items()
        for at in range(0, until, 5 * MINUTE)
        if (verdict := judged(commits, at, intervals)) is not None
    }
    assert verdicts == expected
    assert set(expected.values()) == {"OK", "WARN", "STALL", "REWIND", "STOP"}


def test_a_group_is_as_bad_as_its_worst_partition(spark: SparkSession) -> None:
    rows = [
        ("a", 1, 5, "OK", 0), ("a", 1, 5, "WARN", 40), ("a", 1, 5, "STALL", 7),
        ("b", 1, 5, "WARN", 3), ("b", 1, 5, "OK", 0), ("c", 1, 5, "OK", 0),
    ]  # fmt: skip
    partitions = spark.createDataFrame(
        [(g, f"t{n}", p, at, v, lag) for n, (g, p, at, v, lag) in enumerate(rows)],
        "group string, topic string, partition int, at_ms long, verdict string, lag long",
    )

    groups = {row.group: row for row in group_health(partitions).collect()}

    assert {g: row.status for g, row in groups.items()} == {"a": "ERR", "b": "WARN", "c": "OK"}
    assert (groups["a"].worst_topic, groups["a"].worst_verdict) == ("t2", "STALL")
    assert (groups["a"].total_lag, groups["a"].bad_partitions) == (47, 2)
    assert groups["c"].worst_topic is None


def test_a_sample_that_came_twice_counts_once(spark: SparkSession) -> None:
    commits = [Seen(n * MINUTE, 100 + n, 5) for n in range(6)]
    once = [("g", "t", 0, *commit) for commit in commits]

    def verdicts(rows: list[tuple[str, str, int, int, int, int]]) -> list[object]:
        samples = each_once(spark.createDataFrame(rows, SCHEMA))
        found = partition_health(samples, 0, 10 * MINUTE, every_ms=MINUTE, intervals=3)
        return sorted(map(tuple, found.collect()))

    assert verdicts(once) == verdicts(once * 3)
