"""Lag trend: how did the lag develop hour by hour, and when will the group catch up?

For each hour: the median, 95th percentile and maximum of the lag in records, the delay in seconds,
the two rates, and a least-squares line through the lag's samples. The delay of a sample is the time
since the end of the log passed the committed offset. The log's end is known at every sample of any
group that reads the partition, and is interpolated linearly in between. The delay is null if the
record was written before the first sample. The percentile takes such a delay as longer than any
known one, and is null if it falls on one.

The forecast extends that line: `catch_up_s` counts from the hour's last sample, and is null if the
lag does not shrink. There is none for an offset that was deleted after that sample.
`catch_up_low_s` and `catch_up_high_s` are the same for a slope two standard errors steeper and
flatter (`high` null: it may never catch up). `r2` says how well the line fits.
"""

import math
from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.derive.lag_samples import in_time, log_end, with_deletions
from pipeline.engine import Window, fn
from pipeline.tables import PARTITION_KEY

HOUR_MS: Final = 3_600_000
_LOG: Final = ["topic", "partition"]
_ERRORS: Final = 2.0


def with_delay(samples: DataFrame) -> DataFrame:
    """The samples, with `log_end_offset` and `delay_s` (seconds)."""
    samples = samples.withColumn("log_end_offset", log_end())
    ends = samples.groupBy(*_LOG, "log_end_offset").agg(
        fn.min("at_ms").alias("first_ms"), fn.max("at_ms").alias("last_ms")
    )
    end = fn.struct(fn.col("log_end_offset").alias("offset"), "first_ms", "last_ms")
    ends = ends.select(*_LOG, fn.col("log_end_offset").alias("value"), end.alias("end"))
    rows = samples.withColumn("value", fn.col("committed_offset")).unionByName(
        ends, allowMissingColumns=True
    )
    # In the order of offsets: the newest end at or below what was committed, and the next above.
    # (From above for the second: a frame that extends to the end is read again for each row.)
    is_sample = fn.col("end").isNull()
    upwards = Window.partitionBy(*_LOG).orderBy("value", is_sample)
    downwards = Window.partitionBy(*_LOG).orderBy(fn.desc("value"), is_sample.desc())
    below, above = (
        fn.last("end", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, 0))
        for order in (upwards, downwards)
    )
    placed = rows.withColumns({"below": below, "above": above}).where("end IS NULL")
    share = (fn.col("value") - fn.col("below.offset")) / (
        fn.col("above.offset") - fn.col("below.offset")
    )
    # From the last moment at which the log was known to end below, to the first above.
    passed_ms = fn.col("below.last_ms") + share * (
        fn.col("above.first_ms") - fn.col("below.last_ms")
    )
    delay_s = (fn.col("at_ms") - passed_ms) / 1000
    # Not `greatest` of both: it passes over a delay that is unknown.
    known = fn.when(delay_s > 0, delay_s).when(delay_s.isNotNull(), 0.0)
    return placed.withColumn("delay_s", fn.when(fn.col("lag") <= 0, 0.0).otherwise(known)).drop(
        "value", "end", "below", "above"
    )


def lag_trend(samples: DataFrame, deleted: DataFrame | None = None) -> DataFrame:
    """One row for each partition and hour; see the module's text. Rates in records a second.

    `samples` has each once, `deleted` the deletions (lag_samples.py).
    """
    at_s = fn.col("at_ms") / 1000
    # By the hour's own clock: a slope needs no large numbers.
    x = at_s - fn.col("hour_ms") / 1000
    delayed = _with_deletion(with_delay(samples), deleted).withColumn(
        "hour_ms", (fn.col("at_ms") - fn.col("at_ms") % HOUR_MS).cast("long")
    )
    longest = fn.coalesce("delay_s", fn.lit(math.inf))
    seconds = fn.max(at_s) - fn.min(at_s)
    hourly = delayed.groupBy(*PARTITION_KEY, "hour_ms").agg(
        fn.count("*").alias("samples"),
        fn.percentile("lag", 0.5).alias("lag_p50"),
        fn.percentile("lag", 0.95).alias("lag_p95"),
        fn.max("lag").alias("lag_max"),
        fn.max_by("lag", "at_ms").alias("lag_last"),
        fn.percentile(longest, 0.95).alias("delay_p95_s"),
        ((fn.max("committed_offset") - fn.min("committed_offset")) / _positive(seconds)).alias(
            "consumed_per_s"
        ),
        ((fn.max("log_end_offset") - fn.min("log_end_offset")) / _positive(seconds)).alias(
            "produced_per_s"
        ),
        fn.max_by("deleted_ms", "at_ms").alias("deletion"),
        fn.regr_slope(fn.col("lag"), x).alias("slope_per_s"),
        fn.regr_r2(fn.col("lag"), x).alias("r2"),
        fn.regr_sxx(fn.col("lag"), x).alias("sxx"),
        fn.regr_syy(fn.col("lag"), x).alias("syy"),
    )
    spare = fn.col("samples") - 2
    # Without a spread nothing can be fitted; Spark says 1.0 then, or null.
    fit = fn.when((fn.col("sxx") > 0) & (fn.col("syy") > 0), fn.col("r2"))
    error = fn.when(spare > 0, fn.sqrt((1 - fit) * fn.col("syy") / fn.col("sxx") / spare))
    slope = fn.col("slope_per_s")
    forecast = hourly.withColumns({"r2": fit, "slope_error_per_s": error})
    margin = _ERRORS * fn.col("slope_error_per_s")
    delay = fn.col("delay_p95_s")
    return forecast.withColumns(
        {
            "delay_p95_s": fn.when(delay < math.inf, delay),
            "catch_up_s": _until_zero(slope),
            "catch_up_low_s": _until_zero(slope - margin),
            "catch_up_high_s": _until_zero(slope + margin),
            "deleted_ms": fn.col("deletion"),
        }
    ).drop("sxx", "syy", "deletion")


def _with_deletion(samples: DataFrame, deleted: DataFrame | None) -> DataFrame:
    """With `deleted_ms`: when the offset was deleted, if nothing was committed in between."""
    order = Window.partitionBy(*PARTITION_KEY).orderBy(*in_time())
    is_next = fn.lead(fn.col("lag").isNull()).over(order)
    at_ms = fn.when(is_next, fn.lead("at_ms").over(order)).cast("long")
    every = with_deletions(samples, deleted).withColumn("deleted_ms", at_ms)
    return every.where("lag IS NOT NULL")


def _positive(number: Column) -> Column:
    """Null instead of a division by nothing."""
    return fn.when(number > 0, number)


def _until_zero(slope: Column) -> Column:
    lag = fn.col("lag_last")
    return (
        fn.when(fn.col("deletion").isNotNull(), None)
        .when(lag <= 0, 0.0)
        .when(slope < 0, lag / -slope)
    )
