"""Commit rate: how often does each group, member and partition commit, and what is unusual?

Per minute: commits, and how far the offsets moved, for each owner of a partition (in_order.py).

The baseline of a minute is the median of the group's own minutes in the same hour of the day. Its
spread is the median absolute deviation from it. A storm in the data changes neither of them much.
"""

from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.engine import Window, fn
from pipeline.tables import MINUTE_MS

_SPREAD: Final = 1.4826  # the median absolute deviation of a normal distribution, as its sigma


def commit_rate(ordered: DataFrame) -> DataFrame:
    """minute_ms, group, topic, partition, member_id, client_id, commits, advanced (records).

    Of in_order.in_order.
    """
    # A client may commit any number of 64 bits: a step that does not fit into them is unknown.
    advanced = fn.try_subtract("committed_offset", "last_offset")
    return (
        ordered.where("NOT tombstone")
        .groupBy(
            _minute(fn.col("effective_at_ms")).alias("minute_ms"),
            "group", "topic", "partition", "member_id", "client_id",
        )
        .agg(fn.count("*").alias("commits"), fn.try_sum(advanced).alias("advanced"))
    )  # fmt: skip


def group_rate(rate: DataFrame) -> DataFrame:
    """minute_ms, group, commits, baseline, spread (commits a minute), score (spreads above it)."""
    per_minute = rate.groupBy("minute_ms", "group").agg(fn.sum("commits").alias("commits"))
    hour = fn.floor(fn.col("minute_ms") / (60 * MINUTE_MS)) % 24
    per_minute = per_minute.withColumn("hour", hour)
    same_hour = Window.partitionBy("group", "hour")
    scored = per_minute.withColumn("baseline", fn.median("commits").over(same_hour))
    away = fn.abs(fn.col("commits") - fn.col("baseline"))
    scored = scored.withColumn("away", away)
    scored = scored.withColumn("spread", fn.median("away").over(same_hour) * _SPREAD)
    # One commit a minute is the least that counts as a spread: else any steady group is a storm.
    score = (fn.col("commits") - fn.col("baseline")) / fn.greatest(fn.col("spread"), fn.lit(1.0))
    return scored.withColumn("score", score).drop("hour", "away")


def _minute(at_ms: Column) -> Column:
    return (at_ms - at_ms % MINUTE_MS).cast("long")
