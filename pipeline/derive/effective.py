"""Effective commits: which commits count, and from when on?

A transactional commit counts once the COMMIT marker of its transaction is in the log. The first
later marker of the same producer decides: the commit never counts if that marker says ABORT, or if
there is none. Any other commit counts at once. Of two commits that count, the later one in the log
wins, as in `OffsetMetadataManager.replayEndTransactionMarker`: the end of a long transaction does
not overwrite a newer plain commit.

The same record may come from several sources (a landed table, a segment that is read again). Its
position in the log identifies it. Duplicates are not removed here, because that needs a sort of all
commits: in_order.py does both in one pass. Duplicates do not change which commit is the newest.
"""

from typing import Final

from pyspark.sql import DataFrame

from pipeline.engine import Window, fn

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
PENDING: Final = "pending"


def effective_commits(commits: DataFrame, markers: DataFrame | None) -> DataFrame:
    """The commits' columns, `outcome`, and `effective_at_ms` (null where it does not count).

    Without `markers` no transaction has ended, and the commits are read once and go by.
    """
    transactional = fn.col("transactional")
    at_once = commits.withColumns(
        {
            "outcome": fn.when(transactional, PENDING).otherwise(COMMITTED),
            "effective_at_ms": fn.when(~transactional, fn.col("log_timestamp_ms")),
        }
    )
    if markers is None:
        return at_once
    ends = markers.select(
        "log_partition",
        "log_offset",
        "producer_id",
        fn.struct(fn.col("committed"), fn.col("log_timestamp_ms").alias("at_ms")).alias("ended"),
    )
    in_transactions = commits.where(transactional).unionByName(ends, allowMissingColumns=True)
    # From the end of the log: the last that was met is the next to come. (A frame that begins at
    # its own row and extends to the end is read again for each row.)
    backwards = (
        Window.partitionBy("log_partition", "producer_id")
        .orderBy(fn.desc("log_offset"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    end = fn.last("ended", ignorenulls=True).over(backwards)
    decided = (
        in_transactions.withColumn("end", end)
        .where("ended IS NULL")
        .withColumns(
            {
                "outcome": fn.when(fn.col("end").isNull(), PENDING)
                .when(fn.col("end.committed"), COMMITTED)
                .otherwise(ABORTED),
                "effective_at_ms": fn.when(fn.col("end.committed"), fn.col("end.at_ms")),
            }
        )
        .drop("ended", "end")
    )
    return at_once.where(~transactional).unionByName(decided)
