"""Sliding state: what does the stream keep of the past, and which findings begin now?

The rules are those of group_health.py and anomalies.py, asked of a window that moves. Every answer
depends on rows up to its own instant alone, so that it is the same however the rows were cut into
batches.
"""

from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.derive.anomalies import (
    BASELINE_MINUTES_MIN,
    STALLED_INSTANTS,
    STORM_COMMITS,
    STORM_SCORE,
    finding,
)
from pipeline.derive.group_health import EXPIRES_MS, INTERVALS
from pipeline.engine import Window, fn
from pipeline.tables import MINUTE_MS, PARTITION_KEY

PAST_MS: Final = 60 * MINUTE_MS
"""What a minute's commits are compared with: the hour before it."""

_SPREAD: Final = 1.4826  # the median absolute deviation of a normal distribution, as its sigma


def last_samples(samples: DataFrame, horizon_ms: int) -> DataFrame:
    """All after the horizon, and of each partition the last window up to it; each once."""
    is_past = (fn.col("at_ms") <= horizon_ms).alias("is_past")
    newest = Window.partitionBy(*PARTITION_KEY, "is_past").orderBy(
        fn.desc("at_ms"), fn.desc("committed_offset")
    )
    ranked = samples.select("*", is_past).withColumn("rank", fn.row_number().over(newest))
    kept = ranked.where((~fn.col("is_past")) | (fn.col("rank") <= INTERVALS))
    return kept.where(fn.col("at_ms") > horizon_ms - EXPIRES_MS).drop("is_past", "rank")


def stalls_begun(health: DataFrame, after_ms: int) -> DataFrame:
    """From partition_health: the instants after `after_ms` at which a run became a stall.

    `health` must reach `STALLED_INSTANTS` evaluations further back.
    """
    order = Window.partitionBy(*PARTITION_KEY).orderBy("at_ms")
    last_few = order.rowsBetween(1 - STALLED_INSTANTS, Window.currentRow)
    bad = fn.col("verdict").isin("STALL", "STOP")
    runs = health.withColumn("bad", bad)
    runs = runs.withColumns(
        {
            "since": fn.min("at_ms").over(last_few),
            "evaluations": fn.count_if("bad").over(last_few),
            "was_bad": fn.coalesce(
                fn.lag("bad", STALLED_INSTANTS).over(order),
                fn.lit(False),  # noqa: FBT003
            ),
        }
    )
    begun = runs.where(
        (fn.col("at_ms") > after_ms)
        & (fn.col("evaluations") == STALLED_INSTANTS)
        & ~fn.col("was_bad")
    )
    evidence = ["verdict", "lag", "evaluations"]
    score = fn.lit(1.0)
    return finding(begun, "stalled_partition", fn.col("since"), fn.col("at_ms"), score, evidence)


def storms(minutes: DataFrame, begin_ms: int, end_ms: int) -> DataFrame:
    """Minutes of [begin_ms, end_ms) with far more commits than the hour before them.

    `minutes` has minute_ms, group, commits, and reaches an hour further back.
    """
    past = Window.partitionBy("group").orderBy("minute_ms").rangeBetween(-PAST_MS, -1)
    compared = minutes.withColumn("past", fn.sort_array(fn.collect_list("commits").over(past)))
    compared = compared.withColumn("baseline", _middle(fn.col("past")))
    away = fn.sort_array(fn.transform("past", lambda commits: fn.abs(commits - fn.col("baseline"))))
    compared = compared.withColumn("spread", _middle(away) * _SPREAD)
    above = fn.col("commits") - fn.col("baseline")
    score = above / fn.greatest(fn.col("spread"), fn.lit(1.0))
    stormy = compared.where(
        (fn.col("minute_ms") >= begin_ms)
        & (fn.col("minute_ms") < end_ms)
        & (fn.size("past") >= BASELINE_MINUTES_MIN)
        & (score > STORM_SCORE)
        & (fn.col("commits") > STORM_COMMITS)
    )
    return finding(
        stormy,
        "commit_storm",
        fn.col("minute_ms"),
        fn.col("minute_ms") + MINUTE_MS,
        score / STORM_SCORE,
        ["commits", "baseline", "spread"],
    )


def _middle(ordered: Column) -> Column:
    """The median of a sorted array; null of an empty one."""
    size = fn.size(ordered)
    low, high = (fn.floor((size - 1) / 2), fn.floor(size / 2))
    return (fn.get(ordered, low.cast("int")) + fn.get(ordered, high.cast("int"))) / 2.0
