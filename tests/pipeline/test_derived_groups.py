"""Rebalances, audit, lag trends and anomalies: against the same rules in plain Python."""

import json
import math
import random
from collections import defaultdict

import pytest
from pyspark.sql import DataFrame, SparkSession

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, OffsetsBy, Removal
from history.encoding import encode
from history.entries import (
    HistoryEntry,
    MembersRemovedEntry,
    OffsetsMovedEntry,
    Rebalance,
    RebalanceEndedEntry,
)
from history.entry_values import (
    MemberRemoval,
    OffsetChange,
    RequestClient,
)
from pipeline.decode.rows import group_events
from pipeline.derive import anomalies as odd
from pipeline.derive.audit import audit
from pipeline.derive.commit_rate import group_rate
from pipeline.derive.group_health import EXPIRES_MS, partition_health
from pipeline.derive.lag_samples import deletions, each_once
from pipeline.derive.lag_trend import lag_trend, with_delay
from pipeline.derive.rebalances import of_metadata, rebalance_stats, rebalances
from pipeline.result_tables import RESULTS
from pipeline.tables import GROUP_EVENTS, GROUP_METADATA_TABLE, LAG_SAMPLES
from tests.pipeline.histories import START_MS, a_history, frame, metadata_frame

pytestmark = pytest.mark.xdist_group("spark")

HOUR = 3_600_000
DAY = 24 * HOUR


def events_frame(spark: SparkSession, events: list[HistoryEntry]) -> DataFrame:
    """As the decoder makes them of the topic's records."""
    rows = []
    for offset, event in enumerate(events):
        made = group_events(*encode(event))
        assert made.problem is None
        place = {"log_partition": 0, "log_offset": offset, "log_timestamp_ms": event.at_ms}
        rows += [{**place, **row} for row in made.rows]
    return frame(spark, GROUP_EVENTS, rows)


def some_rebalances(chance: random.Random) -> list[RebalanceEndedEntry]:
    ended = []
    for n in range(120):
        began = START_MS + chance.randrange(3 * DAY)
        duration = chance.randrange(9_000)
        version = chance.choice(["1.0", "1.1"])
        whole = Rebalance(
            chance.choice([Cause.MEMBER_JOINED, Cause.SESSION_EXPIRED]),
            began,
            MemberIdentity(f"m-{n}", None, f"app-{version}-{n % 2}", "/10.0.0.1"),
            end=End.STABLE,
            duration_ms=duration,
            generation_before=n,
            generation_after=n + 1,
            members_before=2,
            members_after=3,
            partitions_moved=chance.randrange(5),
            unowned_partition_seconds=chance.random(),
        )
        group = chance.choice(["billing", "search"])
        ended.append(RebalanceEndedEntry(group, began + duration, whole))
    return ended


def test_rebalances_are_counted_by_day_cause_client_and_deployment(spark: SparkSession) -> None:
    events = some_rebalances(random.Random(1))
    twice = events_frame(spark, events).union(events_frame(spark, events))

    stats = rebalance_stats(rebalances(twice), version_pattern="^app-(?P<version>[0-9.]+)-")

    expected: dict[tuple, list[Rebalance]] = defaultdict(list)
    for event in events:
        rebalance = event.rebalance
        assert rebalance.trigger is not None
        client = rebalance.trigger.client_id
        day = rebalance.began_at_ms // DAY * DAY
        expected[day, event.group_id, str(rebalance.cause), client, client.split("-")[1]].append(
            rebalance
        )
    found = {
        (row.window_ms, row.group, row.cause, row.client_id, row.version): row
        for row in stats.collect()
    }
    assert found.keys() == expected.keys()
    for key, row in found.items():
        durations = [
            rebalance.duration_ms
            for rebalance in expected[key]
            if rebalance.duration_ms is not None
        ]
        assert row.rebalances == len(expected[key])
        assert row.duration_max_ms == max(durations)
        assert row.duration_total_ms == sum(durations)
        assert row.partitions_moved == sum(
            rebalance.partitions_moved or 0 for rebalance in expected[key]
        )
        unowned = sum(rebalance.unowned_partition_seconds or 0 for rebalance in expected[key])
        assert row.unowned_partition_seconds == pytest.approx(unowned)


def test_a_log_without_history_has_rebalances_by_its_generations(spark: SparkSession) -> None:
    history = a_history(9)

    found = of_metadata(metadata_frame(spark, [history])).collect()

    expected = {
        (generation.group, generation.generation): (generation.at_ms, len(generation.owned))
        for generation in history.generations
    }
    assert {
        (row.group, row.generation_after): (row.began_at_ms, row.members_after) for row in found
    } == expected
    assert {row.generation_before for row in found if row.generation_after > 1} >= {1}


def test_the_audit_has_every_moved_offset_and_its_client(spark: SparkSession) -> None:
    moved = OffsetsMovedEntry(
        "billing",
        START_MS,
        OffsetsBy.COMMIT,
        (OffsetChange("orders", 0, 500, 20), OffsetChange("orders", 1, None, 7)),
        RequestClient("reset-tool", "/10.0.0.9", "User:alice"),
    )
    expired = OffsetsMovedEntry(
        "billing", START_MS + 5, OffsetsBy.EXPIRY, (OffsetChange("orders", 0, 20, None),)
    )

    found = audit(events_frame(spark, [moved, expired])).orderBy("at_ms", "partition").collect()

    tool = ("commit", "reset-tool", "/10.0.0.9", "User:alice", None)
    assert [tuple(row) for row in found] == [
        (START_MS, "billing", "orders", 0, 500, 20, -480, *tool),
        (START_MS, "billing", "orders", 1, None, 7, None, *tool),
        (START_MS + 5, "billing", "orders", 0, 20, None, None, "expiry", *[None] * 4),
    ]  # fmt: skip


# Lag.


def samples_frame(spark: SparkSession, rows: list[tuple[str, int, int, int, int]]) -> DataFrame:
    """(group, partition, at_ms, committed offset, lag)"""
    return frame(
        spark,
        LAG_SAMPLES,
        [
            {"group": g, "topic": "orders", "partition": p, "at_ms": at, "committed_offset": offset,
             "lag": lag, "log_partition": 0, "log_offset": n}
            for n, (g, p, at, offset, lag) in enumerate(rows)
        ],
    )  # fmt: skip


def test_the_delay_is_the_time_since_the_log_passed_the_offset(spark: SparkSession) -> None:
    # The log grows by ten records a second; the consumer is ever further behind.
    rows = []
    for second in range(0, 600, 10):
        end = 1_000 + 10 * second
        rows.append(("g", 0, START_MS + 1_000 * second, end - 5 * second, 5 * second))

    found = with_delay(samples_frame(spark, rows)).orderBy("at_ms").collect()

    assert found[0].delay_s == 0.0
    for row in found[1:]:
        assert row.delay_s == pytest.approx(row.lag / 10, abs=0.01)


def test_the_trend_of_an_hour_is_the_line_through_its_samples(spark: SparkSession) -> None:
    chance = random.Random(2)
    rows = []
    lag = 5_000
    for minute in range(60):
        lag = max(0, lag - 40 + chance.randrange(-15, 16))
        rows.append(("g", 0, START_MS // HOUR * HOUR + minute * 60_000, 100 * minute, lag))

    (found,) = lag_trend(each_once(samples_frame(spark, rows))).collect()

    xs = [minute * 60.0 for minute in range(60)]
    ys = [float(row[4]) for row in rows]
    mean_x, mean_y = sum(xs) / 60, sum(ys) / 60
    sxx = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sxx
    left = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    error = math.sqrt(left / 58 / sxx)
    assert found.samples == 60
    assert found.slope_per_s == pytest.approx(slope)
    assert found.slope_error_per_s == pytest.approx(error)
    assert found.catch_up_s == pytest.approx(ys[-1] / -slope)
    assert found.catch_up_low_s == pytest.approx(ys[-1] / -(slope - 2 * error))
    assert found.catch_up_high_s == pytest.approx(ys[-1] / -(slope + 2 * error))
    assert found.lag_max == max(ys)
    assert found.consumed_per_s == pytest.approx(100 / 60)


def test_a_lag_that_grows_is_never_made_up_for(spark: SparkSession) -> None:
    rows = [("g", 0, START_MS + n * 60_000, 0, 100 * n) for n in range(5)]
    rows += [("g", 1, START_MS, 5, 9)]  # a single sample says nothing of a slope

    found = {row.partition: row for row in lag_trend(samples_frame(spark, rows)).collect()}

    assert found[0].catch_up_s is None
    assert found[0].slope_per_s == pytest.approx(100 / 60)
    assert found[1].catch_up_s is None
    assert found[1].slope_error_per_s is None


def test_a_delay_that_is_unknown_is_null(spark: SparkSession) -> None:
    """The records that wait were written before the first sample: nobody knows when."""
    hour = START_MS // HOUR * HOUR
    stuck = [("g", 0, hour + n * 60_000, 100, 2_600) for n in range(20)]
    late = [("g", 1, hour + n * 60_000, 100 * n, 50 if n == 0 else 0) for n in range(40)]

    samples = samples_frame(spark, stuck + late)
    found = {row.partition: row for row in lag_trend(each_once(samples)).collect()}

    assert found[0].delay_p95_s is None
    assert found[0].lag_last == 2_600
    assert found[1].delay_p95_s == 0.0  # one sample of forty is above the percentile
    delays = with_delay(samples).where("partition = 0").collect()
    assert {row.delay_s for row in delays} == {None}


def test_windows_that_are_repeated_count_once(spark: SparkSession) -> None:
    """A keepalive and a start repeat whole windows: 20 commits, of which 10 come three times."""
    hour = START_MS // HOUR * HOUR
    rows = [("g", 0, hour + n * 60_000, 10 * n, 5 * n) for n in range(20)]
    again = rows + rows[:10] * 2

    once, twice = (
        [tuple(row) for row in lag_trend(each_once(samples_frame(spark, seen))).collect()]
        for seen in (rows, again)
    )

    assert once == twice
    (found,) = lag_trend(each_once(samples_frame(spark, again))).collect()
    assert found.samples == 20


def test_a_deleted_offset_has_no_forecast_and_no_health(spark: SparkSession) -> None:
    hour = START_MS // HOUR * HOUR
    rows = [
        (group, 0, hour + n * 60_000, 10 * n, 500 - 5 * n)
        for group in ("gone", "back", "stays")
        for n in range(15)
    ]
    again = [("back", 0, hour + (40 + n) * 60_000, 10 * n, 500 - 5 * n) for n in range(5)]
    deleted = spark.createDataFrame(
        [("gone", "orders", 0, hour + 20 * 60_000), ("back", "orders", 0, hour + 20 * 60_000)],
        "group string, topic string, partition int, at_ms long",
    )
    samples = each_once(samples_frame(spark, rows + again))

    trend = {row.group: row for row in lag_trend(samples, deleted).collect()}
    health = partition_health(
        samples, hour, hour + HOUR, every_ms=60_000, deleted=deleted
    ).collect()

    assert trend["gone"].deleted_ms == hour + 20 * 60_000
    assert (trend["gone"].catch_up_s, trend["gone"].catch_up_high_s) == (None, None)
    assert trend["back"].deleted_ms is None
    assert trend["stays"].catch_up_s > 0
    minutes = {
        group: sorted((row.at_ms - hour) // 60_000 for row in health if row.group == group)
        for group in ("gone", "back", "stays")
    }
    assert minutes["gone"] == list(range(20))
    assert minutes["back"] == [*range(20), *range(40, 60)]
    assert minutes["stays"] == list(range(60))
    last = max((row for row in health if row.group == "back"), key=lambda row: row.at_ms)
    assert last.commits == 5  # not those from before the deletion
    assert EXPIRES_MS > HOUR


def test_deletions_are_the_tombstones_that_count(spark: SparkSession) -> None:
    commits = spark.createDataFrame(
        [("g", "t", 0, True, 5), ("g", "t", 1, False, 6), ("h", "t", 0, True, None)],
        "group string, topic string, partition int, tombstone boolean, effective_at_ms long",
    )

    assert [tuple(row) for row in deletions(commits).collect()] == [("g", "t", 0, 5)]


# Anomalies.


def storm_of(spark: SparkSession, minutes: int) -> list[str]:
    """The kinds that are found in so many minutes with five commits and one with a thousand."""
    usual = [(n * 60_000, "g", 5) for n in range(minutes)]
    rates = spark.createDataFrame(
        [*usual, (minutes * 60_000, "g", 1_000)], "minute_ms long, group string, commits long"
    )
    return [row.kind for row in odd.commit_storm_rows(group_rate(rates)).collect()]


def test_a_storm_needs_a_baseline(spark: SparkSession) -> None:
    assert storm_of(spark, 3) == []
    assert storm_of(spark, odd.BASELINE_MINUTES_MIN - 1) == []
    assert storm_of(spark, odd.BASELINE_MINUTES_MIN) == ["commit_storm"]


def test_offsets_beyond_the_end_of_a_log_are_no_growth(spark: SparkSession) -> None:
    """56 records are committed of a log in which nothing was produced."""
    begin = START_MS // HOUR * HOUR
    rows = [
        {"group": "g", "topic": "orders", "partition": p, "at_ms": begin + n * 60_000,
         "committed_offset": 8 * n if p == 0 else n // 4, "lag": 0,
         "log_end_offset": 0 if p == 0 else n // 4, "log_partition": 0, "log_offset": n}
        for n in range(8) for p in range(3)
    ]  # fmt: skip
    repeated = [{**row, "log_end_offset": row["committed_offset"]} for row in rows]

    found = odd.hot_partitions(each_once(frame(spark, LAG_SAMPLES, rows + repeated))).collect()

    assert found == []
    (trend,) = (
        lag_trend(each_once(frame(spark, LAG_SAMPLES, rows))).where("partition = 0").collect()
    )
    assert trend.produced_per_s == 0.0


def test_an_assignment_that_cannot_be_read_is_no_skew(spark: SparkSession) -> None:
    def members(*assigned: list | None) -> list[tuple]:
        return [(f"m{n}", None, "c", "/h", 1, 1, [], owned) for n, owned in enumerate(assigned)]

    four = [("orders", [0, 1, 2, 3])]
    rows = [
        {"log_partition": 0, "log_offset": n, "log_timestamp_ms": START_MS, "group": group,
         "group_type": "classic", "protocol_type": "consumer", "generation": 1, "tombstone": False,
         "members": listed, "member_count": len(listed)}
        for n, (group, listed) in enumerate(
            {"unknown": members(four, None), "known": members(four, [])}.items()
        )
    ]  # fmt: skip

    found = odd.skewed_assignment_rows(frame(spark, GROUP_METADATA_TABLE, rows)).collect()

    assert [row.group for row in found] == ["known"]


def test_a_sum_with_an_unknown_number_is_unknown(spark: SparkSession) -> None:
    rows = [
        {"group": "g", "began_at_ms": START_MS, "client_id": "c", "duration_ms": duration_ms,
         "partitions_moved": moved, "unowned_partition_seconds": 0.5}
        for duration_ms, moved in ((5, 1), (None, 2))
    ]  # fmt: skip

    (found,) = rebalance_stats(frame(spark, RESULTS["rebalances"], rows)).collect()

    assert (found.duration_total_ms, found.duration_max_ms) == (None, 5)
    assert (found.partitions_moved, found.unowned_partition_seconds) == (3, 1.0)


def test_stalls_are_shown_as_runs(spark: SparkSession) -> None:
    verdicts = ["OK", "STALL", "STOP", "STOP", "OK", "STALL", "STALL", "WARN", "STOP", "STOP", "STOP", "STOP"]  # fmt: skip  # noqa: E501
    health = spark.createDataFrame(
        [("g", "t", 0, n, verdict, 10 + n) for n, verdict in enumerate(verdicts)],
        "group string, topic string, partition int, at_ms long, verdict string, lag long",
    )

    found = odd.stalled_partitions(health).orderBy("since_ms").collect()

    assert [(row.since_ms, row.until_ms) for row in found] == [(1, 3), (8, 11)]
    assert json.loads(found[1].evidence) == {"verdict": "STOP", "lag": 21, "evaluations": 4}
    assert found[1].score == pytest.approx(4 / 3)


def test_a_client_that_leaves_again_and_again_flaps(spark: SparkSession) -> None:
    window = odd.FLAP_WINDOW_MS
    begin = START_MS // window * window

    def gone(at: int, client: str, cause: Removal = Removal.SESSION_EXPIRED) -> MembersRemovedEntry:
        identity = MemberIdentity(f"{client}-{at}", None, client, "/10.0.0.1")
        return MembersRemovedEntry("g", begin + at, cause, members=(MemberRemoval(identity),))

    events = [gone(n * 60_000, "shaky") for n in range(4)]
    events += [gone(5_000, "calm"), gone(window + 1, "calm"), gone(2 * window + 1, "calm")]

    (found,) = odd.flapping_member_rows(events_frame(spark, list(events))).collect()

    assert (found.member, found.since_ms) == ("shaky /10.0.0.1", begin)
    assert json.loads(found.evidence) == {"left": 4, "causes": ["session_expired"]}


def test_the_partition_that_gets_most_is_hot(spark: SparkSession) -> None:
    begin = START_MS // HOUR * HOUR
    rows = [
        ("g", partition, begin + at, (1 if partition else 40) * at // 1_000, 0)
        for partition in range(4)
        for at in range(0, 600_000, 60_000)
    ]

    (found,) = odd.hot_partitions(samples_frame(spark, rows)).collect()

    assert (found.topic, found.partition, found.group) == ("orders", 0, None)
    assert json.loads(found.evidence)["records"] == 40 * 540


def test_a_member_that_owns_far_more_is_a_skew(spark: SparkSession) -> None:
    history = a_history(9)

    found = odd.skewed_assignment_rows(metadata_frame(spark, [history])).collect()

    expected = set()
    for generation in history.generations:
        loads = {member: len(owned) for member, owned in generation.owned.items()}
        if len(loads) > 1 and max(loads.values()) - min(loads.values()) >= odd.SKEW:
            expected.add((generation.group, generation.generation))
    assert {(row.group, json.loads(row.evidence)["generation"]) for row in found} == expected
    assert expected
