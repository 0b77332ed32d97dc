"""Rebalances: how often did groups rebalance, how long did it take, what did it cost, who began it?

The history of the groups has each rebalance as a whole. The log of a real Kafka has only
generations: `of_metadata` derives rebalances from them, without cause and duration.

A deployment's version is taken from client ids with a pattern: it is the first group of the match,
as in `^app-(?<version>[0-9.]+)-`. Without a pattern there are no versions.
"""

from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.engine import Window, fn

_FACTS: Final = [
    "group",
    "cause",
    "began_at_ms",
    "duration_ms",
    "generation_before",
    "generation_after",
    "members_before",
    "members_after",
    "partitions_moved",
    "unowned_partition_seconds",
    "member_id",
    "client_id",
    "host",
]


def rebalances(events: DataFrame) -> DataFrame:
    """One row for each rebalance that ended; `member_id`, `client_id`, `host` of who began it."""
    ended = events.where("type = 'rebalance_ended'").dropDuplicates(["log_partition", "log_offset"])
    return ended.select(*_FACTS)


def of_metadata(group_metadata: DataFrame) -> DataFrame:
    """The same columns from generations alone: `began_at_ms` is when the new one was stored."""
    order = Window.partitionBy("log_partition", "group").orderBy("log_offset")
    stored = group_metadata.where("NOT tombstone AND group_type = 'classic'").dropDuplicates(
        ["log_partition", "log_offset"]
    )
    before = stored.withColumns(
        {
            "generation_before": fn.lag("generation").over(order),
            "members_before": fn.lag("member_count").over(order),
        }
    )
    # A group is written more than once in a generation: a static member that came back, say.
    new = before.where("generation_before IS NULL OR generation > generation_before")
    known = {
        "began_at_ms": fn.col("log_timestamp_ms"),
        "generation_after": fn.col("generation"),
        "members_after": fn.col("member_count"),
    }
    unknown = {
        name: fn.lit(None).cast(kind)
        for name, kind in (
            ("cause", "string"), ("duration_ms", "long"), ("partitions_moved", "int"),
            ("unowned_partition_seconds", "double"), ("member_id", "string"),
            ("client_id", "string"), ("host", "string"),
        )
    }  # fmt: skip
    return new.withColumns({**known, **unknown}).select(*_FACTS)


def rebalance_stats(
    rebalanced: DataFrame, *, window_ms: int = 86_400_000, version_pattern: str | None = None
) -> DataFrame:
    """Per window, group, cause and client: how many, how long, how much without an owner.

    Durations in ms, `unowned` in partition-seconds.
    """
    at = fn.col("began_at_ms")
    return (
        rebalanced.withColumns(
            {"window_ms": (at - at % window_ms).cast("long"), "version": _version(version_pattern)}
        )
        .groupBy("window_ms", "group", "cause", "client_id", "version")
        .agg(
            fn.count("*").alias("rebalances"),
            fn.percentile("duration_ms", 0.5).alias("duration_p50_ms"),
            fn.percentile("duration_ms", 0.95).alias("duration_p95_ms"),
            fn.max("duration_ms").alias("duration_max_ms"),
            fn.sum("duration_ms").alias("duration_total_ms"),
            fn.sum("partitions_moved").alias("partitions_moved"),
            fn.sum("unowned_partition_seconds").alias("unowned_partition_seconds"),
        )
    )


def _version(pattern: str | None) -> Column:
    if pattern is None:
        return fn.lit(None).cast("string")
    found = fn.regexp_extract("client_id", pattern.replace("(?P<", "(?<"), 1)
    return fn.when(found != "", found)
