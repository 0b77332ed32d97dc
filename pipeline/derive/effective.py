"""Which commits counted, and from when on? Transactions resolved.

A commit of a transaction counts once its COMMIT marker is in the log, and never if the marker says
ABORT or none has come: the first marker of the same producer after it decides. Any other commit
counts at once. Of two commits that count, the one that is later in the log wins, as in
`OffsetMetadataManager.replayEndTransactionMarker`, so that a long transaction does not undo what a
plain commit said meanwhile.

The same record may come from several sources (a landed table, a segment that was read again): it is
one record by its place in the log. Copies pass through here, for to find them is to sort all there
is: in_order.py does both at once, and the newest of a few is the newest with copies of it.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

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
    # its own row and goes on to the end is read again for each row.)
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
