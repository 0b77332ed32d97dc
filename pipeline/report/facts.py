"""Report facts: what the page shows, reduced to a few hundred rows by Spark.

The report counts, sorts and draws; it derives nothing that is not in a job's table. Each query is
asked once for all groups that are shown, so the page takes as many queries for twenty groups as for
one. All limits are named here, and the page says what they leave out.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from pyspark.sql import Column, DataFrame, Row

from pipeline.engine import fn
from pipeline.report.charts import TimeAxis
from pipeline.results import Results
from pipeline.tables import MINUTE_MS

POINTS_MAX: Final = 300
"""Of a line, and parts of a lane."""

FINDINGS_MAX: Final = 300
"""Anomalies, each with its repetitions."""

DRAWN_REBALANCES_MAX: Final = 2_000
"""Rebalances that charts show, the newest."""

LISTED_MOVES_MAX: Final = 100
"""Moved offsets that are listed."""

RECENT_MS: Final = 3_600_000
"""An anomaly that ended so long before the end of the span, or later, needs somebody."""

_TIMES: Final = (
    ("group_commit_rate", "minute_ms"),
    ("group_health", "at_ms"),
    ("lag_trend", "hour_ms"),
    ("rebalances", "began_at_ms"),
    ("anomalies", "since_ms"),
    ("audit", "at_ms"),
    ("offset_suspects", "at_ms"),
)
_SEVERITY: Final = {"OK": 0, "WARN": 1, "ERR": 2}
_URGENT: Final = ("stalled_partition", "rewind", "flapping_member", "commit_storm")

ReportRows = Sequence[Row]


class RepeatedAnomaly(Struct, frozen=True):
    """An anomaly and its repetitions: `count` of one kind for one group, partition and member."""

    kind: str
    group: str | None
    topic: str | None
    partition: int | None
    member: str | None
    count: int
    since_ms: int  # of the strongest
    until_ms: int
    last_ms: int  # when the last one ended
    score: float
    evidence: str


class ReportFacts(Struct, frozen=True):
    """Everything that the page shows. By group: `shown` says which groups those are."""

    axis: TimeAxis
    commits: int | None
    groups: int | None
    partitions: int | None
    rebalance_count: int | None
    anomaly_counts: Mapping[str, int]
    statuses: Mapping[str, int]  # groups by their last status
    newest: Mapping[str, Row]  # group_health at the last evaluation
    attention: Sequence[str]  # groups that need somebody, the worst first
    attention_left_out: int
    shown: Sequence[str]
    health: Mapping[str, ReportRows]  # at_ms, status, total_lag, by group
    health_step_ms: int
    rates: Mapping[str, ReportRows]  # at_ms, value
    rebalances: Mapping[str, ReportRows]
    rebalances_left_out: int
    trend: Mapping[str, ReportRows]  # the last hour of each lagging partition
    findings: Sequence[RepeatedAnomaly]
    findings_left_out: int
    clients: Mapping[str, ReportRows]  # client_id, member_id, commits, partitions
    moves: "Moves | None"
    suspects: ReportRows | None
    suspects_count: int


class Moves(Struct, frozen=True):
    """Who moved offsets: `counts` by kind, the `notable` ones, and the others by client."""

    counts: Mapping[str, int]
    notable: ReportRows
    notable_count: int
    ordinary: ReportRows  # group, client_id, host, commits, partitions
    ordinary_count: int


def collect_facts(results: Results, top: int) -> ReportFacts:
    axis = _axis(results)
    commits, groups, partitions = _totals(results)
    findings, findings_left_out, anomaly_counts = _findings(results)
    newest, statuses, attention, left_out = _attention(results, findings, axis, top)
    shown = _shown(results, attention, findings, top)
    health_step, health = _health(results, shown, axis)
    rebalances, rebalance_count = _rebalances(results, shown)
    suspects, suspects_count = _suspects(results)
    drawn = sum(map(len, rebalances.values()))
    return ReportFacts(
        axis, commits, groups, partitions, rebalance_count, anomaly_counts, statuses, newest,
        attention, left_out, shown, health, health_step, _rates(results, shown, axis), rebalances,
        max(0, (rebalance_count or 0) - drawn), _trend(results, shown, top), findings,
        findings_left_out, _clients(results, shown), _moves(results), suspects, suspects_count,
    )  # fmt: skip


def _axis(results: Results) -> TimeAxis:
    """The span of what happened. Groups are evaluated for longer, up to the end of the job's span:
    of that so much is shown that it can be seen."""
    found: dict[str, tuple[int, int]] = {}
    for name, column in _TIMES:
        if (table := results.table(name)) is not None:
            low, high = _only(table.agg(fn.min(column), fn.max(column)))
            if low is not None:
                found[name] = (low, high)
    if not found:
        return TimeAxis(0, MINUTE_MS)
    low, high = min(low for low, _ in found.values()), max(high for _, high in found.values())
    happened = [high for name, (_, high) in found.items() if name != "group_health"]
    if happened:
        last = max(happened)
        high = min(high, last + max(RECENT_MS, (last - low) // 10))
    return TimeAxis(low, max(high, low + MINUTE_MS))


def _totals(results: Results) -> tuple[int | None, int | None, int | None]:
    rate = results.table("commit_rate")
    if rate is None:
        return None, None, None
    commits, groups, partitions = _only(
        rate.agg(
            fn.sum("commits"),
            fn.count_distinct("group"),
            fn.count_distinct("group", "topic", "partition"),
        )
    )
    return commits or 0, groups, partitions


def _findings(results: Results) -> tuple[list[RepeatedAnomaly], int, Mapping[str, int]]:
    anomalies = results.table("anomalies")
    if anomalies is None:
        return [], 0, {}
    counts = {row["kind"]: row["count"] for row in anomalies.groupBy("kind").count().collect()}
    strongest = fn.struct("score", (-fn.col("since_ms")).alias("order"), "since_ms", "until_ms",
                          "evidence")  # fmt: skip
    grouped = anomalies.groupBy("kind", "group", "topic", "partition", "member").agg(
        fn.count("*").alias("count"),
        fn.max(strongest).alias("strongest"),
        fn.max("score").alias("score"),
        fn.max("until_ms").alias("last_ms"),
    )
    ordered = grouped.orderBy(fn.desc("score"), "kind", "group", "topic", "partition", "member")
    rows = ordered.limit(FINDINGS_MAX).collect()
    found = [
        RepeatedAnomaly(
            row["kind"], row["group"], row["topic"], row["partition"], row["member"], row["count"],
            row["strongest"]["since_ms"], row["strongest"]["until_ms"], row["last_ms"],
            row["strongest"]["score"], row["strongest"]["evidence"],
        )
        for row in rows
    ]  # fmt: skip
    return found, sum(counts.values()) - sum(finding.count for finding in found), counts


def _attention(
    results: Results, findings: Sequence[RepeatedAnomaly], axis: TimeAxis, top: int
) -> tuple[Mapping[str, Row], Mapping[str, int], list[str], int]:
    """(the last health of groups, groups by status, groups that need somebody, how many more)"""
    recent = [
        finding.group
        for finding in findings
        if finding.group is not None
        and finding.kind in _URGENT
        and finding.last_ms >= axis.high_ms - RECENT_MS
    ]
    health = results.table("group_health")
    if health is None:
        groups = list(dict.fromkeys(recent))
        return {}, {}, groups[:top], max(0, len(groups) - top)
    columns = [name for name in health.columns if name != "group"]
    last = health.groupBy("group").agg(fn.max_by(fn.struct(*columns), "at_ms").alias("newest"))
    last = last.select("group", "newest.*")
    statuses = {row["status"]: row["count"] for row in last.groupBy("status").count().collect()}
    graded = last.withColumn("severity", _severity(fn.col("status")))
    ordered = graded.orderBy(fn.desc("severity"), fn.desc("total_lag"), "group")
    worst = ordered.limit(top).collect()
    wanted = [group for group in dict.fromkeys(recent) if group]
    newest = {row["group"]: row for row in worst}
    if missing := [group for group in wanted if group not in newest]:
        newest |= {row["group"]: row for row in last.where(_is_one_of(missing)).collect()}
    bad = [row["group"] for row in worst if row["status"] != "OK"]
    attention = list(dict.fromkeys([*bad, *wanted]))
    count = sum(n for status, n in statuses.items() if status != "OK")
    left_out = count - len(bad) + max(0, len(attention) - top)
    return newest, statuses, attention[:top], left_out


def _shown(
    results: Results, attention: Sequence[str], findings: Sequence[RepeatedAnomaly], top: int
) -> list[str]:
    """The groups that have a section: those that need somebody, then the largest."""
    found = [*attention, *(finding.group for finding in findings if finding.group is not None)]
    for name, size in (
        ("group_health", fn.max("total_lag")),
        ("group_commit_rate", fn.sum("commits")),
        ("rebalance_stats", fn.sum("rebalances")),
    ):
        if (table := results.table(name)) is not None:
            largest = table.groupBy("group").agg(size.alias("size"))
            ordered = largest.orderBy(fn.desc("size"), "group").limit(top)
            found += [row["group"] for row in ordered.collect()]
    return list(dict.fromkeys(found))[:top]


def _health(
    results: Results, groups: Sequence[str], axis: TimeAxis
) -> tuple[int, Mapping[str, ReportRows]]:
    """(ms of a part of a lane, the worst status and the last lag of each part)"""
    health = results.table("group_health")
    if health is None:
        return 5 * MINUTE_MS, {}
    chosen = health.where(_is_one_of(groups) & (fn.col("at_ms") <= axis.high_ms))
    gaps = [5 * MINUTE_MS, -(-(axis.high_ms - axis.low_ms) // POINTS_MAX)]
    step = -(-max(gaps) // (5 * MINUTE_MS)) * 5 * MINUTE_MS
    severity = _severity(fn.col("status"))
    rows = (
        chosen.groupBy("group", _bucket("at_ms", step))
        .agg(
            fn.max_by("status", severity).alias("worst"),
            fn.max_by("total_lag", "at_ms").alias("lag"),
        )
        .withColumnsRenamed({"worst": "status", "lag": "total_lag"})
    )
    return step, _by_group(rows, "bucket")


def _rates(results: Results, groups: Sequence[str], axis: TimeAxis) -> Mapping[str, ReportRows]:
    rate = results.table("group_commit_rate")
    if rate is None:
        return {}
    width = axis.high_ms - axis.low_ms
    step = max(MINUTE_MS, -(-width // POINTS_MAX // MINUTE_MS) * MINUTE_MS)
    rows = rate.where(_is_one_of(groups)).groupBy("group", _bucket("minute_ms", step))
    return _by_group(rows.agg(fn.max("commits").alias("value")), "bucket")


def _rebalances(
    results: Results, groups: Sequence[str]
) -> tuple[Mapping[str, ReportRows], int | None]:
    rebalances = results.table("rebalances")
    if rebalances is None:
        return {}, None
    newest = rebalances.where(_is_one_of(groups)).orderBy(
        fn.desc("began_at_ms"), "group", "generation_after"
    )
    return _by_group(newest.limit(DRAWN_REBALANCES_MAX), "began_at_ms"), rebalances.count()


def _trend(results: Results, groups: Sequence[str], top: int) -> Mapping[str, ReportRows]:
    trend = results.table("lag_trend")
    if trend is None:
        return {}
    last = (
        trend.where(_is_one_of(groups))
        .groupBy("group", "topic", "partition")
        .agg(fn.max_by(fn.struct(*trend.columns[3:]), "hour_ms").alias("last"))
        .select("group", "topic", "partition", "last.*")
        .where("lag_last > 0 AND deleted_ms IS NULL")
    )
    return _by_group(last.orderBy(fn.desc("lag_last"), "group").limit(top * 5), "-lag_last")


def _clients(results: Results, groups: Sequence[str]) -> Mapping[str, ReportRows]:
    rate = results.table("commit_rate")
    if rate is None:
        return {}
    rows = (
        rate.where(_is_one_of(groups))
        .groupBy("group", "client_id", "member_id")
        .agg(
            fn.sum("commits").alias("commits"),
            fn.count_distinct("topic", "partition").alias("partitions"),
        )
        .orderBy(fn.desc("commits"), "group", "member_id")
        .limit(1_000)
    )
    return _by_group(rows, "-commits")


def _moves(results: Results) -> Moves | None:
    """A commit that goes forward is ordinary if its client makes several for the partition: a
    simple consumer. A reset is made once."""
    audit = results.table("audit")
    if audit is None:
        return None
    client = ["group", "topic", "partition", "client_id", "host"]
    commits = audit.where("by = 'commit'")
    often = commits.groupBy(*client).agg(fn.count("*").alias("times"))
    joined = audit.join(
        often.withColumnsRenamed({name: f"of_{name}" for name in client}),
        [fn.col(name).eqNullSafe(fn.col(f"of_{name}")) for name in client],
        "left",
    )
    ordinary = (
        (fn.col("by") == "commit") & (fn.col("times") > 2) & (fn.coalesce("moved", fn.lit(0)) >= 0)
    )
    kind = (
        fn.when(ordinary, "ordinary commits of simple consumers")
        .when(fn.col("moved") < 0, "resets backwards")
        .when(fn.col("new_offset").isNull(), "deletions and expiries")
        .otherwise("set once")
    )
    graded = joined.select(*audit.columns, kind.alias("kind"), ordinary.alias("is_ordinary"))
    counts = {row["kind"]: row["count"] for row in graded.groupBy("kind").count().collect()}
    rank = (
        fn.when(fn.col("kind") == "resets backwards", 0)
        .when(fn.col("by") == "deletion", 1)
        .when(fn.col("kind") == "set once", 2)
        .otherwise(3)
    )
    notable = graded.where(~fn.col("is_ordinary")).withColumn("rank", rank)
    rows = notable.orderBy("rank", fn.desc("at_ms"), "group", "topic", "partition")
    summed = (
        graded.where("is_ordinary")
        .groupBy("group", "client_id", "host")
        .agg(
            fn.count("*").alias("commits"),
            fn.count_distinct("topic", "partition").alias("partitions"),
        )
        .orderBy(fn.desc("commits"), "group", "client_id")
    )
    usual = counts.get("ordinary commits of simple consumers", 0)
    return Moves(
        counts,
        rows.limit(LISTED_MOVES_MAX).collect(),
        sum(counts.values()) - usual,
        summed.limit(LISTED_MOVES_MAX).collect(),
        usual,
    )


def _suspects(results: Results) -> tuple[ReportRows | None, int]:
    suspects = results.table("offset_suspects")
    if suspects is None:
        return None, 0
    # What went back comes first.
    graded = suspects.withColumn("is_deleted", fn.col("new_offset").isNull())
    rows = graded.orderBy("is_deleted", fn.desc("at_ms"), "group", "topic", "partition")
    return rows.limit(LISTED_MOVES_MAX).collect(), suspects.count()


def _by_group(frame: DataFrame, order: str) -> Mapping[str, ReportRows]:
    """The rows of each group, in the order of a column; `-`: the largest first."""
    column = order.removeprefix("-")
    rows: dict[str, list[Row]] = defaultdict(list)
    found = frame.collect()
    found.sort(key=lambda row: row[column], reverse=order.startswith("-"))
    for row in found:
        rows[row["group"]].append(row)
    return rows


def _bucket(column: str, step: int) -> Column:
    return (fn.col(column) - fn.col(column) % step).cast("long").alias("bucket")


def _severity(status: Column) -> Column:
    return fn.create_map(*[fn.lit(x) for pair in _SEVERITY.items() for x in pair])[status]


def _is_one_of(groups: Sequence[str]) -> Column:
    return fn.col("group").isin(list(groups))


def _only(frame: DataFrame) -> Row:
    row = frame.first()
    assert row is not None, "an aggregate of all rows is one row"
    return row
