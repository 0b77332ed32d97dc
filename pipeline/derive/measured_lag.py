"""Measured lag: did the groups keep up, where only some runs know where the logs ended?

A Kafka keeps no lag samples: `log_ends` says where the logs ended at the moments of runs (and of
the stream's batches). At each of these moments a group's partition has an exact lag: the log's end
minus the offset that counts then. The rules and names are Burrow's, as in group_health.py, with two
windows, because commits are known at all times and lags only at measurements. In this order:

    no lag now, or no more than is allowed                                          OK
    silent for longer than its last commits span                                    STOP
    the offset fell among its last commits, and has not come back                   REWIND
    lag at each of the last measurements, and the offset did not move               STALL
    lag at each of the last measurements, and the lag never shrank                  WARN
    anything else                                                                   OK

STOP needs `intervals` commits, STALL and WARN as many measurements. A partition without a commit
for a week is not evaluated, nor one whose log end is unknown at the measurement or whose offset was
deleted.

The clocks of the brokers and of the runs are compared: a commit that is newer than a measurement
counts from the next one on.
"""

from pyspark.sql import DataFrame

from pipeline.derive.group_health import EXPIRES_MS, INTERVALS, judged
from pipeline.engine import Window, fn
from pipeline.tables import PARTITION_KEY

_LOG = ["topic", "partition"]


def measured_samples(
    commits: DataFrame, log_ends: DataFrame, *, intervals: int = INTERVALS
) -> DataFrame:
    """group, topic, partition, at_ms (of the measurement), committed_offset, lag, log_end_offset;
    and of the last `intervals` commits then: commits, first_ms, last_ms, high; life: when
    the offset was last deleted.

    `commits` are those that count, each once (in_order.py); `log_ends` as in tables.LOG_ENDS. An
    offset beyond the end of the log has no lag.
    """
    every = commits.where("effective_at_ms IS NOT NULL").select(
        *PARTITION_KEY, fn.col("effective_at_ms").alias("at_ms"), "log_offset",
        "committed_offset", "tombstone",
    )  # fmt: skip
    whole = Window.partitionBy(*PARTITION_KEY).orderBy("at_ms", "log_offset")
    # Since the last deletion: by its time, because the stream does not keep all of them.
    deleted_ms = fn.max(fn.when(fn.col("tombstone"), fn.col("at_ms"))).over(whole)
    every = every.withColumn("life", fn.coalesce(deleted_ms, fn.lit(0)).cast("long"))
    window = (
        Window.partitionBy(*PARTITION_KEY, "life")
        .orderBy("at_ms", "log_offset")
        .rowsBetween(1 - intervals, Window.currentRow)
    )
    is_commit = fn.when(~fn.col("tombstone"), fn.col("at_ms"))
    every = every.withColumns(
        {
            "commits": fn.count(is_commit).over(window).cast("int"),
            "first_ms": fn.min(is_commit).over(window),
            "high": fn.max("committed_offset").over(window),
        }
    )
    # The later one in the log counts, also where it took effect before (offsets_as_of.py).
    newest = fn.struct(
        "log_offset", "committed_offset", "tombstone", "commits", "first_ms",
        fn.col("at_ms").alias("last_ms"), "high", "life",
    )  # fmt: skip
    known = log_ends.where("log_end_offset IS NOT NULL").groupBy(*_LOG, "sampled_at_ms")
    ends = known.agg(fn.max("log_end_offset").alias("log_end_offset"))
    measured = every.select(*PARTITION_KEY).distinct().join(ends, _LOG)
    rows = every.select(*PARTITION_KEY, "at_ms", newest.alias("offset_then")).unionByName(
        measured.withColumnRenamed("sampled_at_ms", "at_ms"), allowMissingColumns=True
    )
    until_now = (
        Window.partitionBy(*PARTITION_KEY)
        .orderBy("at_ms", fn.col("offset_then").isNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    placed = rows.withColumn("newest", fn.max("offset_then").over(until_now))
    placed = placed.where("offset_then IS NULL AND newest IS NOT NULL").select(
        *PARTITION_KEY, "at_ms", "log_end_offset", "newest.*"
    )
    ahead = fn.col("log_end_offset") - fn.col("committed_offset")
    return placed.where("NOT tombstone").select(
        *PARTITION_KEY,
        "at_ms",
        "committed_offset",
        fn.when(ahead > 0, ahead).otherwise(0).cast("long").alias("lag"),
        "log_end_offset",
        "commits",
        "first_ms",
        "last_ms",
        "high",
        "life",
    )


def measured_health(
    measured: DataFrame,
    since_ms: int,
    until_ms: int,
    *,
    intervals: int = INTERVALS,
    allowed_lag: int = 0,
) -> DataFrame:
    """One row for each partition and measurement of the span, as partition_health has them."""
    order = Window.partitionBy(*PARTITION_KEY, "life").orderBy("at_ms")
    shrank = measured.withColumn("shrank", fn.col("lag") < fn.lag("lag").over(order))
    window = order.rowsBetween(1 - intervals, Window.currentRow)
    steps = order.rowsBetween(2 - intervals, Window.currentRow)
    seen = shrank.withColumns(
        {
            "measurements": fn.count("*").over(window),
            "stood": fn.min("committed_offset").over(window)
            == fn.max("committed_offset").over(window),
            "lag_min": fn.min("lag").over(window),
            "shrank": fn.coalesce(fn.bool_or("shrank").over(steps), fn.lit(False)),  # noqa: FBT003
        }
    )
    silent = fn.col("at_ms") - fn.col("last_ms") > fn.col("last_ms") - fn.col("first_ms")
    verdict = judged(
        is_ok=fn.col("lag") <= allowed_lag,
        is_stop=(fn.col("commits") >= intervals) & silent,
        is_rewind=fn.col("high") > fn.col("committed_offset"),
        is_lagging=(fn.col("measurements") >= intervals) & (fn.col("lag_min") > allowed_lag),
        stood=fn.col("stood"),
        shrank=fn.col("shrank"),
    )
    at = fn.col("at_ms")
    seen = seen.where(at - fn.col("last_ms") < EXPIRES_MS)
    return seen.where((at >= since_ms) & (at < until_ms)).select(
        *PARTITION_KEY,
        "at_ms",
        verdict.alias("verdict"),
        "lag",
        "committed_offset",
        "commits",
        (at - fn.col("first_ms")).alias("window_ms"),
    )
