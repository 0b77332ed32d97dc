"""Group health: did the groups keep up? Burrow's rules over sliding windows.

At each evaluation instant a partition's status is derived from its last commits up to then
(`intervals` of them, ten by default), each with the lag at that time. The rules and the names of
the statuses are those of linkedin/Burrow's `core/internal/evaluator/caching.go` (2025), in this
order:

    no lag now, or no more than is allowed                                         OK
    silent for longer than the window spans                                        STOP
    the offset fell, and has not come back to where it was                         REWIND
    lag at every commit of the window, and the offset did not move                 STALL
    lag at every commit of the window, and the lag never shrank                    WARN
    anything else                                                                  OK

To a window that is not full only REWIND applies: a few commits show no trend. A group has the
status of its worst partition; for a group STOP, STALL and REWIND become ERR. A partition whose
offset was deleted is not evaluated from then on; a later commit begins a new window.
"""

from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.derive.lag_samples import in_time, with_deletions
from pipeline.engine import Window, fn
from pipeline.tables import PARTITION_KEY

INTERVALS: Final = 10
"""Commits in a full window, as in Burrow."""

EVALUATION_INTERVAL_MS: Final = 300_000
"""Between two evaluations."""

EXPIRES_MS: Final = 604_800_000
"""A partition without a commit for this long is dropped, as in Burrow."""

_SEVERITY: Final = {"OK": 0, "WARN": 1, "STALL": 2, "REWIND": 2, "STOP": 2}


def partition_health(
    samples: DataFrame,
    since_ms: int,
    until_ms: int,
    *,
    every_ms: int = EVALUATION_INTERVAL_MS,
    intervals: int = INTERVALS,
    allowed_lag: int = 0,
    deleted: DataFrame | None = None,
) -> DataFrame:
    """One row for each partition and instant: at_ms, verdict, lag, and what they were judged by.

    `samples` has group, topic, partition, at_ms, committed_offset, lag, each once, and `deleted`
    the deletions (lag_samples.py). Instants are the multiples of `every_ms` from `since_ms` up to,
    not including, `until_ms`.
    """
    whole = Window.partitionBy(*PARTITION_KEY).orderBy(*in_time())
    commits = with_deletions(samples, deleted).withColumns(
        {
            "next_ms": fn.coalesce(
                fn.lead("at_ms").over(whole), fn.col("at_ms") + fn.lit(EXPIRES_MS)
            ),
            "life": fn.count_if(fn.col("lag").isNull()).over(whole),  # between two deletions
        }
    )
    order = Window.partitionBy(*PARTITION_KEY, "life").orderBy("at_ms", "committed_offset")
    commits = commits.where("lag IS NOT NULL").withColumn(
        "shrank", fn.col("lag") < fn.lag("lag").over(order)
    )
    # What is to be known of each window, before it is judged at many instants.
    window = order.rowsBetween(1 - intervals, Window.currentRow)
    steps = order.rowsBetween(2 - intervals, Window.currentRow)
    windows = commits.withColumns(
        {
            "commits": fn.count("*").over(window).cast("int"),
            "first_ms": fn.min("at_ms").over(window),
            "low": fn.min("committed_offset").over(window),
            "high": fn.max("committed_offset").over(window),
            "lag_min": fn.min("lag").over(window),
            "shrank": fn.coalesce(fn.bool_or("shrank").over(steps), fn.lit(False)),  # noqa: FBT003
        }
    )
    verdict = judged(
        is_ok=fn.col("lag") <= allowed_lag,
        is_stop=None,
        is_rewind=fn.col("high") > fn.col("committed_offset"),
        is_lagging=(fn.col("commits") >= intervals) & (fn.col("lag_min") > allowed_lag),
        stood=fn.col("low") == fn.col("high"),
        shrank=fn.col("shrank"),
    )
    windows = windows.withColumn("verdict", verdict)
    # A window is the newest one at the instants from its last commit until the next commit.
    first = _ceiling(fn.greatest(fn.col("at_ms"), fn.lit(since_ms)), every_ms)
    end = fn.least(fn.col("next_ms"), fn.lit(until_ms))
    instants = windows.withColumns({"first": first, "end": end}).where("first < end")
    instants = instants.withColumn(
        "now_ms", fn.explode(fn.sequence("first", fn.col("end") - 1, fn.lit(every_ms)))
    )
    is_silent = fn.col("now_ms") - fn.col("at_ms") > fn.col("at_ms") - fn.col("first_ms")
    is_stop = (fn.col("lag") > allowed_lag) & (fn.col("commits") >= intervals) & is_silent
    return instants.select(
        *PARTITION_KEY,
        fn.col("now_ms").alias("at_ms"),
        fn.when(is_stop, "STOP").otherwise(fn.col("verdict")).alias("verdict"),
        "lag",
        "committed_offset",
        "commits",
        (fn.col("now_ms") - fn.col("first_ms")).alias("window_ms"),
    )


def group_health(partitions: DataFrame) -> DataFrame:
    """One row for each group and instant: its worst partition, its whole lag."""
    severity = fn.create_map(*[fn.lit(x) for pair in _SEVERITY.items() for x in pair])
    graded = partitions.withColumn("severity", severity[fn.col("verdict")])
    worst = fn.struct("severity", "lag", "topic", "partition", "verdict")
    grouped = graded.groupBy("group", "at_ms").agg(
        fn.max(worst).alias("worst"),
        fn.sum("lag").alias("total_lag"),
        fn.max("lag").alias("max_lag"),
        fn.count("*").alias("partitions"),
        fn.count_if(fn.col("severity") > 0).alias("bad_partitions"),
    )
    status = fn.when(fn.col("worst.severity") >= 2, "ERR").otherwise(fn.col("worst.verdict"))
    return grouped.select(
        "group",
        "at_ms",
        status.alias("status"),
        fn.when(fn.col("worst.severity") > 0, fn.col("worst.topic")).alias("worst_topic"),
        fn.when(fn.col("worst.severity") > 0, fn.col("worst.partition")).alias("worst_partition"),
        fn.when(fn.col("worst.severity") > 0, fn.col("worst.verdict")).alias("worst_verdict"),
        "total_lag",
        "max_lag",
        "partitions",
        "bad_partitions",
    )


def judged(
    *,
    is_ok: Column,
    is_stop: Column | None,
    is_rewind: Column,
    is_lagging: Column,
    stood: Column,
    shrank: Column,
) -> Column:
    """The status by the rules above. `is_lagging`: at all of a full window; `stood`: the offset
    did not move in it; `is_stop` None: judged later, by what time it is."""
    verdict = fn.when(is_ok, "OK")
    if is_stop is not None:
        verdict = verdict.when(is_stop, "STOP")
    return (
        verdict.when(is_rewind, "REWIND")
        .when(is_lagging & stood, "STALL")
        .when(is_lagging & ~shrank, "WARN")
        .otherwise("OK")
    )


def _ceiling(at_ms: Column, every_ms: int) -> Column:
    return (fn.ceil(at_ms / every_ms) * every_ms).cast("long")
