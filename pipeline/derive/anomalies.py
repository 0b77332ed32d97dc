"""Anomalies: what was unusual? One table of findings, each with its evidence.

    commit_storm       a group commits far more often than usual at this hour; if it committed in
                       at least ten other minutes of this hour of the day
    rewind             a committed offset went back
    stalled_partition  STALL or STOP at several evaluations in a row
    flapping_member    a client joined and left again and again
    hot_partition      a partition of a topic gets far more records than the others
    skewed_assignment  one member owns several partitions more than another

Each finding has kind, group, topic, partition, member (null if it is not about one), since_ms,
until_ms, score (ratio to the threshold; 1.0 is at the threshold) and evidence (JSON).
"""

from typing import Final

from pyspark.sql import Column, DataFrame

from pipeline.derive.lag_samples import log_end
from pipeline.engine import Window, fn
from pipeline.tables import MINUTE_MS

STORM_SCORE: Final = 10.0  # spreads above the usual rate
STORM_COMMITS: Final = 60  # a minute; fewer trouble nobody
BASELINE_MINUTES_MIN: Final = 10  # with commits, besides the minute itself; fewer are no baseline
STALLED_INSTANTS: Final = 3  # evaluations in a row
FLAPS: Final = 3  # times that a client left in one window
FLAP_WINDOW_MS: Final = 600_000
HOT_SHARE: Final = 3.0  # times the median of its topic's partitions
SKEW: Final = 2  # partitions more than the least loaded member

_COLUMNS: Final = [
    "kind", "group", "topic", "partition", "member", "since_ms", "until_ms", "score", "evidence",
]  # fmt: skip


def commit_storm_rows(group_rates: DataFrame) -> DataFrame:
    """From commit_rate.group_rate: minutes with far more commits than usual."""
    hour = fn.floor(fn.col("minute_ms") / (60 * MINUTE_MS)) % 24
    others = fn.count("*").over(Window.partitionBy("group", hour)) - 1
    stormy = group_rates.withColumn("others", others).where(
        (fn.col("score") > STORM_SCORE)
        & (fn.col("commits") > STORM_COMMITS)
        & (fn.col("others") >= BASELINE_MINUTES_MIN)
    )
    return finding(
        stormy,
        "commit_storm",
        fn.col("minute_ms"),
        fn.col("minute_ms") + 60_000,
        fn.col("score") / STORM_SCORE,
        ["commits", "baseline", "spread"],
    )


def rewinds(suspects: DataFrame) -> DataFrame:
    """From audit.suspects: those that went back, and were not deleted."""
    back = suspects.where("new_offset IS NOT NULL")
    return finding(
        back, "rewind", fn.col("at_ms"), fn.col("at_ms"), fn.lit(1.0), ["old_offset", "new_offset"]
    )


def stalled_partitions(health: DataFrame) -> DataFrame:
    """From group_health.partition_health: runs of STALL or STOP."""
    order = Window.partitionBy("group", "topic", "partition").orderBy("at_ms")
    bad = fn.col("verdict").isin("STALL", "STOP")
    runs = health.withColumn("bad", bad).withColumn(
        "run", fn.sum(fn.when(bad, 0).otherwise(1)).over(order)
    )
    found = (
        runs.where("bad")
        .groupBy("group", "topic", "partition", "run")
        .agg(
            fn.min("at_ms").alias("since"),
            fn.max("at_ms").alias("until"),
            fn.count("*").alias("evaluations"),
            fn.max("lag").alias("lag"),
            fn.max_by("verdict", "at_ms").alias("verdict"),
        )
        .where(fn.col("evaluations") >= STALLED_INSTANTS)
    )
    score = fn.col("evaluations") / STALLED_INSTANTS
    evidence = ["verdict", "lag", "evaluations"]
    return finding(found, "stalled_partition", fn.col("since"), fn.col("until"), score, evidence)


def flapping_member_rows(events: DataFrame) -> DataFrame:
    """From group_events: clients (by instance id, or client id and host) that left repeatedly."""
    left = events.where("type = 'members_removed'").dropDuplicates(["log_partition", "log_offset"])
    gone = "array<struct<who:struct<client_id:string,host:string,group_instance_id:string>>>"
    members = fn.from_json(fn.get_json_object("event", "$.members"), gone)
    departures = (
        left.select("group", "at_ms", "cause", fn.explode(members).alias("gone"))
        .select("group", "at_ms", "cause", "gone.who.*")
        .withColumn(
            "member",
            fn.coalesce("group_instance_id", fn.concat_ws(" ", "client_id", "host")),
        )
    )
    window = (fn.col("at_ms") - fn.col("at_ms") % FLAP_WINDOW_MS).cast("long")
    found = (
        departures.groupBy("group", "member", window.alias("window_ms"))
        .agg(
            fn.count("*").alias("left"),
            fn.min("at_ms").alias("since"),
            fn.max("at_ms").alias("until"),
            fn.array_sort(fn.collect_set("cause")).alias("causes"),
        )
        .where(fn.col("left") >= FLAPS)
    )
    score = fn.col("left") / FLAPS
    evidence = ["left", "causes"]
    return finding(found, "flapping_member", fn.col("since"), fn.col("until"), score, evidence)


def hot_partitions(samples: DataFrame, *, window_ms: int = 3_600_000) -> DataFrame:
    """From lag samples: partitions whose log grows far faster than those of the same topic.

    What was committed beyond the end of a log does not make it grow.
    """
    window = (fn.col("at_ms") - fn.col("at_ms") % window_ms).cast("long").alias("window_ms")
    end = log_end()
    grown = samples.groupBy("topic", "partition", window).agg(
        (fn.max(end) - fn.min(end)).alias("records")
    )
    siblings = Window.partitionBy("topic", "window_ms")
    compared = grown.withColumns(
        {
            "median": fn.median("records").over(siblings),
            "siblings": fn.count("*").over(siblings),
        }
    )
    ratio = fn.col("records") / fn.greatest(fn.col("median"), fn.lit(1.0))
    hot = compared.withColumn("ratio", ratio).where(
        (fn.col("siblings") >= 2) & (fn.col("ratio") >= HOT_SHARE)
    )
    since = fn.col("window_ms")
    score = fn.col("ratio") / HOT_SHARE
    evidence = ["records", "median", "siblings"]
    return finding(hot, "hot_partition", since, since + window_ms, score, evidence)


def skewed_assignment_rows(group_metadata: DataFrame) -> DataFrame:
    """From group_metadata: generations in which one member owns far more than another.

    A generation with a member whose assignment cannot be read says nothing about it.
    """
    member = fn.explode("members").alias("member")
    listed = group_metadata.where("member_count > 1 AND protocol_type = 'consumer'").dropDuplicates(
        ["log_partition", "log_offset"]
    )
    counts = fn.transform("member.assigned", lambda of_topic: fn.size(of_topic["partitions"]))
    owned = fn.aggregate(counts, fn.lit(0), lambda total, count: total + count)
    loads = listed.select("group", "generation", "log_timestamp_ms", member).withColumn(
        "owned", owned
    )
    spread = loads.groupBy("group", "generation").agg(
        fn.min("log_timestamp_ms").alias("at"),
        fn.max_by("member.member_id", "owned").alias("member"),
        fn.max("owned").alias("most"),
        fn.min("owned").alias("least"),
        fn.count_if(fn.col("owned").isNull()).alias("unknown"),
    )
    found = spread.where("unknown = 0").where(fn.col("most") - fn.col("least") >= SKEW)
    score = (fn.col("most") - fn.col("least")) / SKEW
    evidence = ["generation", "most", "least"]
    return finding(found, "skewed_assignment", fn.col("at"), fn.col("at"), score, evidence)


def finding(
    found: DataFrame, kind: str, since: Column, until: Column, score: Column, evidence: list[str]
) -> DataFrame:
    there = set(found.columns)
    absent = {
        name: fn.lit(None).cast(kind_of)
        for name, kind_of in (
            ("group", "string"), ("topic", "string"), ("partition", "int"), ("member", "string"),
        )
        if name not in there
    }  # fmt: skip
    said = {
        "kind": fn.lit(kind),
        "since_ms": since.cast("long"),
        "until_ms": until.cast("long"),
        "score": score.cast("double"),
        "evidence": fn.to_json(fn.struct(*evidence)),
    }
    return found.withColumns({**absent, **said}).select(*_COLUMNS)
