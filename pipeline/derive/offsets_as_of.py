"""Offsets as of an instant: the newest effective commit of each partition then.

Reset a group to this result to let it continue from where it was. It reaches back as far as the
available records: an offset is unknown if its last commit before the instant was compacted away
before it was ingested. `oldest_at_ms` says how far back the log of the group reaches.
"""

from pyspark.sql import DataFrame

from pipeline.engine import fn
from pipeline.tables import PARTITION_KEY


def offsets_as_of(effective: DataFrame, at_ms: int) -> DataFrame:
    """group, topic, partition, committed_offset, leader_epoch, metadata, committed_at_ms,
    log_offset, oldest_at_ms; deleted offsets are left out."""
    counted = effective.where(fn.col("effective_at_ms") <= fn.lit(at_ms))
    newest = counted.groupBy(*PARTITION_KEY).agg(
        fn.max_by(
            fn.struct(
                "committed_offset", "leader_epoch", "metadata", "tombstone", "log_offset",
                fn.col("effective_at_ms").alias("committed_at_ms"),
            ),
            "log_offset",
        ).alias("newest"),
        fn.min("effective_at_ms").alias("oldest_at_ms"),
    )  # fmt: skip
    return (
        newest.select(*PARTITION_KEY, "newest.*", "oldest_at_ms")
        .where(~fn.col("tombstone"))
        .drop("tombstone")
    )
