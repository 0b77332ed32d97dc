"""Which commits counted, and from when on? Transactions resolved, copies dropped.

A commit of a transaction counts once its COMMIT marker is in the log, and never if the marker says
ABORT or none has come: the first marker of the same producer after it decides. Any other commit
counts at once. Of two commits that count, the one that is later in the log wins, as in
`OffsetMetadataManager.replayEndTransactionMarker`, so that a long transaction does not undo what a
plain commit said meanwhile.

The same record may come from several sources (a landed table, a segment that was read again): it is
one record by its place in the log.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
PENDING: Final = "pending"

PLACE: Final = ["log_partition", "log_offset"]


def effective_commits(commits: DataFrame, markers: DataFrame) -> DataFrame:
    """The commits' columns, `outcome`, and `effective_at_ms` (null where it does not count)."""
    commits = commits.dropDuplicates(PLACE)
    plain = commits.where(~fn.col("transactional")).withColumns(
        {"outcome": fn.lit(COMMITTED), "effective_at_ms": fn.col("log_timestamp_ms")}
    )
    ends = markers.dropDuplicates(PLACE).select(
        *PLACE,
        "producer_id",
        fn.struct(fn.col("committed"), fn.col("log_timestamp_ms").alias("at_ms")).alias("ended"),
    )
    in_transactions = commits.where("transactional").unionByName(ends, allowMissingColumns=True)
    onward = (
        Window.partitionBy("log_partition", "producer_id")
        .orderBy("log_offset")
        .rowsBetween(Window.currentRow, Window.unboundedFollowing)
    )
    end = fn.first("ended", ignorenulls=True).over(onward)
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
    return plain.unionByName(decided)
