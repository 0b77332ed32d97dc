"""Rebalances: how often did groups rebalance, how long did it take, what did it cost, who began it?

The history of the groups has each rebalance as a whole. The log of a real Kafka has none: there,
classic groups have generations, from which `of_metadata` derives rebalances without cause and
duration. Groups of the consumer protocol (KIP-848) are replayed from their records
(consumer_reconciliation.py), without causes. Of share and streams groups only the epochs are known.

A sum is null if one of its numbers is unknown; percentiles and maxima are those of the known ones.

A deployment's version is taken from client ids with a pattern: it is the first group of the match,
as in `^app-(?<version>[0-9.]+)-`. Without a pattern there are no versions.
"""

from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.derive.consumer_reconciliation import rebalances_of_records
from pipeline.engine import Window, fn

_FACTS: Final = [
    "group",
    "group_type",
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
    said = fn.get_json_object("event", "$.rebalance.group_type")
    group_type = fn.when(said != "", said).otherwise("classic")
    return ended.withColumn("group_type", group_type).select(*_FACTS)


def of_records(group_metadata: DataFrame, consumer_groups: DataFrame) -> DataFrame:
    """The same columns without a history: groups of all types."""
    replayed = rebalances_of_records(consumer_groups)
    # A lake of an older version has no consumer_groups: of their groups it knows the epochs.
    others = of_metadata(group_metadata).join(
        consumer_groups.where("record = 'group'").select("group").distinct(), "group", "left_anti"
    )
    return replayed.unionByName(others)


def of_metadata(group_metadata: DataFrame) -> DataFrame:
    """The same from generations alone: `began_at_ms` is when the new one was stored.

    A group that was deleted begins without a generation before.
    """
    order = Window.partitionBy("log_partition", "group").orderBy("log_offset")
    stored = group_metadata.dropDuplicates(["log_partition", "log_offset"])
    before = stored.withColumns(
        {
            "generation_before": fn.lag("generation").over(order),
            "members_before": fn.lag("member_count").over(order),
        }
    )
    # A group is written more than once in a generation: a static member that came back, say.
    new = before.where(
        "NOT tombstone AND (generation_before IS NULL OR generation > generation_before)"
    )
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
            _whole_sum("duration_ms").alias("duration_total_ms"),
            _whole_sum("partitions_moved").alias("partitions_moved"),
            _whole_sum("unowned_partition_seconds").alias("unowned_partition_seconds"),
        )
    )


def _whole_sum(name: str) -> Column:
    """Null if one of the numbers is unknown."""
    return fn.when(fn.count(name) == fn.count("*"), fn.sum(name))


def _version(pattern: str | None) -> Column:
    if pattern is None:
        return fn.lit(None).cast("string")
    found = fn.regexp_extract("client_id", pattern.replace("(?P<", "(?<"), 1)
    return fn.when(found != "", found)
