"""Report: a page of the tables that jobs have written.

Spark reduces each table to what is shown: the worst groups, a few hundred points of a line, the
newest rows. So the page stays small whatever the size of the tables, and says what it leaves out.
The report counts, sorts and draws; it derives nothing that is not in a job's table.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, Row

from pipeline.engine import fn
from pipeline.report.charts import COLOURS, Line, lines_over_time, stacked_bars
from pipeline.report.html_page import Section, duration_text, instant_text, page
from pipeline.results import Results
from pipeline.tables import MINUTE_MS

TOP: Final = 20
"""Groups that a section shows."""

LINES_MAX: Final = 8
"""Groups that one chart of lines can hold."""

ROWS_MAX: Final = 100
"""Anomalies and moved offsets that are listed."""

POINTS_MAX: Final = 300
"""Of a line."""


def report_page(results: Results, *, top: int = TOP) -> str:
    """The HTML of the report."""
    sections = [
        _overview(results),
        _health(results, top),
        _lag(results, top),
        _rates(results),
        _rebalances(results, top),
        _anomalies(results),
        _audit(results),
    ]
    since, until = _extent(results)
    about = f"Tables of {results.path}, from {since or '?'} to {until or '?'}"
    return page("Consumer groups", about, sections)


_TIMES: Final = (
    ("group_commit_rate", "minute_ms"),
    ("group_health", "at_ms"),
    ("lag_trend", "hour_ms"),
    ("rebalances", "began_at_ms"),
    ("anomalies", "since_ms"),
    ("audit", "at_ms"),
)


def _extent(results: Results) -> tuple[str | None, str | None]:
    found = []
    for name, column in _TIMES:
        if (table := results.table(name)) is not None:
            low, high = table.agg(fn.min(column), fn.max(column)).first() or (None, None)
            found += [at for at in (low, high) if at is not None]
    return instant_text(min(found, default=None)), instant_text(max(found, default=None))


def _overview(results: Results) -> Section:
    section = Section("overview", "Overview")
    figures: list[tuple[str, object]] = []
    rate, health = results.table("commit_rate"), results.table("group_health")
    if rate is not None:
        totals = _only(
            rate.agg(
                fn.sum("commits"),
                fn.count_distinct("group"),
                fn.count_distinct("group", "topic", "partition"),
            )
        )
        counted = zip(("commits", "groups that committed", "partitions"), totals, strict=True)
        figures += [(what, value or 0) for what, value in counted]
    if health is not None:
        last = _newest_health(health).groupBy("status").count().collect()
        by_status = {row["status"]: row["count"] for row in last}
        figures += [(f"groups {status}", by_status.get(status, 0)) for status in COLOURS]
    for name in ("rebalances", "anomalies", "audit"):
        if (table := results.table(name)) is not None:
            figures.append(("offsets moved" if name == "audit" else name, table.count()))
    section.figures(figures)
    section.note(f"Tables used: {', '.join(results.names)}.")
    return section


def _newest_health(health: DataFrame) -> DataFrame:
    """Each group at its last evaluation."""
    columns = [name for name in health.columns if name != "group"]
    newest = fn.max_by(fn.struct(*columns), "at_ms").alias("newest")
    return health.groupBy("group").agg(newest).select("group", "newest.*")


def _health(results: Results, top: int) -> Section:
    section = Section("health", "Groups by health")
    health = results.table("group_health")
    if health is None:
        return _absent(section, "group_health")
    counts = health.groupBy("group").agg(
        *(fn.count_if(fn.col("status") == status).alias(status) for status in COLOURS),
        fn.count("*").alias("all"),
    )
    judged = _newest_health(health).join(counts, "group")
    rows = judged.orderBy(
        fn.desc("ERR"), fn.desc("WARN"), fn.desc("total_lag"), "group"
    ).limit(top)  # fmt: skip
    found = rows.collect()
    _bounded(section, len(found), judged.count(), "groups", "the worst first")
    if not found:
        return section
    bars = [
        (row["group"], {status: 100 * row[status] / row["all"] for status in COLOURS})
        for row in found
    ]
    section.chart(
        stacked_bars(bars, list(COLOURS), "% of evaluations", COLOURS),
        "The share of evaluations at which each group was OK, WARN or ERR",
    )
    section.table(
        ["group", "last status", "when", "lag, records", "bad partitions", "of", "worst", "status"],
        [
            [
                row["group"],
                row["status"],
                instant_text(row["at_ms"]),
                row["total_lag"],
                row["bad_partitions"],
                row["partitions"],
                _place(row["worst_topic"], row["worst_partition"]),
                row["worst_verdict"],
            ]
            for row in found
        ],
    )
    return section


def _lag(results: Results, top: int) -> Section:
    section = Section("lag", "Lag and forecast")
    trend = results.table("lag_trend")
    if trend is None:
        return _absent(section, "lag_trend")
    groups = trend.groupBy("group").agg(fn.max("lag_max").alias("size"))
    chosen = _largest(groups, LINES_MAX)
    if not chosen:
        section.note("No lag samples in this span.")
        return section
    _bounded(section, len(chosen), groups.count(), "groups", "those with the most lag")
    hourly = (
        trend.where(fn.col("group").isin(chosen))
        .groupBy("group", fn.col("hour_ms").alias("at_ms"))
        .agg(fn.sum("lag_p50").alias("value"))
    )
    section.chart(
        lines_over_time(_lines(hourly, chosen), "records behind (median of the hour)"),
        "Lag in records by the hour, for the groups with the greatest lag",
    )
    last = trend.groupBy("group", "topic", "partition").agg(
        fn.max_by(fn.struct(*trend.columns[3:]), "hour_ms").alias("last")
    )
    rows = last.select("group", "topic", "partition", "last.*").where("lag_last > 0")
    worst = rows.orderBy(fn.desc("lag_last"), "group", "topic", "partition").limit(top).collect()
    if worst:
        section.note(
            "Forecast from each partition's last hour: the linear trend of its samples, extended; "
            "the range is for a slope two standard errors steeper or flatter."
        )
    section.table(
        ["group", "partition", "hour", "lag, records", "delay", "change, records/s", "±", "r²",
         "caught up in", "at best", "at worst"],
        [
            [
                row["group"],
                _place(row["topic"], row["partition"]),
                instant_text(row["hour_ms"]),
                row["lag_last"],
                duration_text(row["delay_p95_s"]),
                row["slope_per_s"],
                row["slope_error_per_s"],
                row["r2"],
                duration_text(row["catch_up_s"]) or "never",
                duration_text(row["catch_up_low_s"]),
                duration_text(row["catch_up_high_s"]) or _late(row["catch_up_s"]),
            ]
            for row in worst
        ],
    )  # fmt: skip
    return section


def _rates(results: Results) -> Section:
    section = Section("commits", "Commits and storms")
    rate = results.table("group_commit_rate")
    if rate is None:
        return _absent(section, "commit_rate")
    groups = rate.groupBy("group").agg(fn.sum("commits").alias("size"))
    chosen = _largest(groups, LINES_MAX)
    if not chosen:
        section.note("No commits in this span.")
        return section
    _bounded(section, len(chosen), groups.count(), "groups", "those that commit most")
    low, high = _only(rate.agg(fn.min("minute_ms"), fn.max("minute_ms")))
    step = max(MINUTE_MS, -(-(high - low) // POINTS_MAX // MINUTE_MS) * MINUTE_MS)
    at = (fn.col("minute_ms") - fn.col("minute_ms") % step).cast("long").alias("at_ms")
    shown = rate.where(fn.col("group").isin(chosen))
    peaks = shown.groupBy("group", at).agg(fn.max("commits").cast("double").alias("value"))
    lines = _lines(peaks, chosen)
    marks = []
    if (anomalies := results.table("anomalies")) is not None:
        stormy = anomalies.where((fn.col("kind") == "commit_storm") & fn.col("group").isin(chosen))
        strongest = stormy.orderBy(fn.desc("score")).limit(ROWS_MAX)
        marks = [
            (row["since_ms"], float(row["commits"]))
            for row in strongest.select(
                "since_ms", fn.get_json_object("evidence", "$.commits").alias("commits")
            ).collect()
        ]
    section.chart(
        lines_over_time(lines, "commits a minute (maximum)", marks),
        "Commits a minute, for the groups that commit most; storms are marked",
    )
    return section


def _rebalances(results: Results, top: int) -> Section:
    section = Section("rebalances", "Rebalances")
    stats = results.table("rebalance_stats")
    if stats is None:
        return _absent(section, "rebalance_stats")
    cause = fn.coalesce("cause", fn.lit("unknown"))
    groups = stats.groupBy("group").agg(fn.sum("rebalances").alias("size"))
    chosen = _largest(groups, top)
    _bounded(section, len(chosen), groups.count(), "groups", "those with most rebalances")
    if not chosen:
        return section
    by_cause = stats.groupBy("group", cause.alias("cause")).agg(
        fn.sum("rebalances").alias("rebalances"),
        fn.sum("duration_total_ms").alias("duration_ms"),
        fn.max("duration_max_ms").alias("longest_ms"),
        fn.sum("partitions_moved").alias("moved"),
        fn.sum("unowned_partition_seconds").alias("unowned"),
    )
    found = by_cause.where(fn.col("group").isin(chosen)).collect()
    counted: dict[str, dict[str, float]] = defaultdict(dict)
    for row in found:
        counted[row["group"]][row["cause"]] = row["rebalances"]
    causes = sorted({row["cause"] for row in found})
    section.chart(
        stacked_bars([(group, counted[group]) for group in chosen], causes, "rebalances"),
        "Rebalances of each group by cause",
    )
    found.sort(key=lambda row: (-(row["unowned"] or 0), -row["rebalances"], row["group"]))
    section.table(
        ["group", "cause", "rebalances", "total duration", "longest", "partitions moved",
         "without an owner, partition-seconds"],
        [
            [
                row["group"],
                row["cause"],
                row["rebalances"],
                duration_text(_seconds(row["duration_ms"])),
                duration_text(_seconds(row["longest_ms"])),
                row["moved"],
                row["unowned"],
            ]
            for row in found[:ROWS_MAX]
        ],
    )  # fmt: skip
    return section


def _anomalies(results: Results) -> Section:
    section = Section("anomalies", "Anomalies")
    anomalies = results.table("anomalies")
    if anomalies is None:
        return _absent(section, "anomalies")
    kinds = {row["kind"]: row["count"] for row in anomalies.groupBy("kind").count().collect()}
    section.figures(sorted(kinds.items()))
    ordered = anomalies.orderBy(fn.desc("score"), "since_ms", "kind", "group", "topic", "partition")
    rows = ordered.limit(ROWS_MAX).collect()
    _bounded(section, len(rows), sum(kinds.values()), "anomalies", "the strongest first")
    section.table(
        [
            "kind",
            "group",
            "partition",
            "member",
            "since",
            "lasted",
            "times its threshold",
            "evidence",
        ],
        [
            [
                row["kind"],
                row["group"],
                _place(row["topic"], row["partition"]),
                row["member"],
                instant_text(row["since_ms"]),
                duration_text((row["until_ms"] - row["since_ms"]) / 1000),
                row["score"],
                row["evidence"],
            ]
            for row in rows
        ],
    )
    return section


def _audit(results: Results) -> Section:
    section = Section("audit", "Who moved offsets")
    moved, suspects = results.table("audit"), results.table("offset_suspects")
    if moved is not None:
        rows = (
            moved.orderBy(fn.desc("at_ms"), "group", "topic", "partition").limit(ROWS_MAX).collect()
        )
        _bounded(section, len(rows), moved.count(), "moved offsets", "the newest first")
        heads = ["when", "group", "partition", "before", "after", "by", "client", "address"]
        section.table(
            heads,
            [
                [instant_text(row["at_ms"]), row["group"], _place(row["topic"], row["partition"]),
                 row["old_offset"], row["new_offset"], row["by"], row["client_id"], row["host"]]
                for row in rows
            ],
        )  # fmt: skip
        return section
    if suspects is None:
        return _absent(section, "audit")
    section.note(
        "Without a history the sender is unknown. The log shows offsets that went back or were "
        "deleted."
    )
    rows = (
        suspects.orderBy(fn.desc("at_ms"), "group", "topic", "partition").limit(ROWS_MAX).collect()
    )
    _bounded(section, len(rows), suspects.count(), "offsets", "the newest first")
    section.table(
        ["when", "group", "partition", "before", "after"],
        [
            [instant_text(row["at_ms"]), row["group"], _place(row["topic"], row["partition"]),
             row["old_offset"], row["new_offset"]]
            for row in rows
        ],
    )  # fmt: skip
    return section


def _absent(section: Section, job: str) -> Section:
    section.note(f"The job {job} has written no table here.")
    return section


def _bounded(section: Section, shown: int, there: int, what: str, which: str) -> None:
    said = f"Shown: {shown:,} of {there:,} {what}, {which}." if there else f"No {what}."
    section.note(said)


def _largest(groups: DataFrame, most: int) -> list[str]:
    ordered = groups.orderBy(fn.desc("size"), "group").limit(most)
    return [row["group"] for row in ordered.collect()]


def _lines(frame: DataFrame, groups: list[str]) -> list[Line]:
    """`frame` has group, at_ms and value; a line for each group, in the order of `groups`."""
    points: Mapping[str, list[tuple[int, float]]] = {group: [] for group in groups}
    for row in frame.orderBy("group", "at_ms").collect():
        points[row["group"]].append((row["at_ms"], float(row["value"])))
    return [Line(group, points[group]) for group in groups]


def _only(frame: DataFrame) -> Row:
    row = frame.first()
    assert row is not None, "an aggregate of all rows is one row"
    return row


def _place(topic: object, partition: object) -> str | None:
    if topic is None:
        return None
    return f"{topic}-{partition}"


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _late(catch_up_s: float | None) -> str:
    """Where the flatter slope never gets there: it is only certain if none does."""
    return "never" if catch_up_s is None else "maybe never"
