"""Audit: who moved, reset or deleted offsets, when, as whom, and from which address?

The source is the history that the daemon keeps: every change of an offset that was not made by a
member of a generation. A real Kafka keeps no such history; from its log `suspects`
lists the commits that went backwards and the deletions, without a sender.
"""

from pyspark.sql import DataFrame

from pipeline.derive.in_order import in_order
from pipeline.engine import fn


def audit(events: DataFrame) -> DataFrame:
    """at_ms, group, topic, partition, old_offset, new_offset, moved (records), by, client_id,
    host, principal, member_id; null offsets: there was none, there is none."""
    changes = events.where("type = 'offsets_moved'").dropDuplicates(["log_partition", "log_offset"])
    change = changes.select("*", fn.explode("changes").alias("change"))
    return change.select(
        "at_ms",
        "group",
        "change.topic",
        "change.partition",
        fn.col("change.old").alias("old_offset"),
        fn.col("change.new").alias("new_offset"),
        fn.try_subtract("change.new", "change.old").alias("moved"),
        fn.col("cause").alias("by"),
        "client_id",
        "host",
        "principal",
        "member_id",
    )


def suspects(effective: DataFrame) -> DataFrame:
    """at_ms, group, topic, partition, old_offset, new_offset: what went back, or went away."""
    return went_back(in_order(effective))


def went_back(ordered: DataFrame) -> DataFrame:
    """The same of commits that are in order already."""
    went = ordered.where("old_offset IS NOT NULL AND (tombstone OR committed_offset < old_offset)")
    return went.select(
        fn.col("effective_at_ms").alias("at_ms"),
        "group",
        "topic",
        "partition",
        "old_offset",
        fn.col("committed_offset").alias("new_offset"),
    )
