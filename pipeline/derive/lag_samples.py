"""Lag samples: which samples count, and until when do they describe their partition?

A record of `__group_lag` that is `whole` repeats the commits of a window, at each keepalive and
each start of the daemon. A commit is identified by group, topic, partition, time and offset, and
counts once. This is the only rule for it: the jobs and the stream both begin with `each_once`.

`log_end_offset` is where the log ended when the commit was sampled. It is below the committed
offset if that is beyond the end of the log. Samples of older daemons do not say so: for them the
log ends where the lag says.

A deleted offset (a deleted group, an expired offset) ends what the samples before it say: such a
partition has no lag, no health and no forecast any more.
"""

from pyspark.sql import Column, DataFrame

from pipeline.engine import fn
from pipeline.tables import PARTITION_KEY

_MEASURED = ("lag", "log_end_offset")


def each_once(samples: DataFrame) -> DataFrame:
    """group, topic, partition, at_ms, committed_offset, lag, log_end_offset of each commit."""
    together = samples.repartition(*PARTITION_KEY)  # the rules need no other arrangement
    there = [name for name in _MEASURED if name in samples.columns]
    return together.groupBy(*PARTITION_KEY, "at_ms", "committed_offset").agg(
        *(fn.min(name).alias(name) for name in there)
    )


def log_end() -> Column:
    return fn.coalesce("log_end_offset", fn.col("committed_offset") + fn.col("lag"))


def deletions(effective: DataFrame) -> DataFrame:
    """group, topic, partition, at_ms of the deletions among effective commits."""
    deleted = effective.where(fn.col("tombstone") & fn.col("effective_at_ms").isNotNull())
    return deleted.select(*PARTITION_KEY, fn.col("effective_at_ms").alias("at_ms"))


def with_deletions(samples: DataFrame, deleted: DataFrame | None) -> DataFrame:
    """The samples, and rows without `lag` where an offset was deleted."""
    if deleted is None:
        return samples
    return samples.unionByName(deleted, allowMissingColumns=True)


def in_time() -> tuple[Column, Column]:
    """The order of a partition's samples and deletions; a deletion comes after its commits."""
    return fn.col("at_ms").asc(), fn.col("committed_offset").asc_nulls_last()
