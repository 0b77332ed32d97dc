"""Commits in order: what came before each commit of its partition, and who owned the partition?

The only pass over all commits that needs an order. They are sorted by partition and position in the
log; columns hold what the rules need of the past. Everything derived from the result counts and
filters rows, or groups them by group, topic and partition; the rows are already arranged that way.

The owner is the member to which the newest generation before the commit assigns the partition. It
is null if no owner is known (a simple consumer, a tool, a group whose assignments are not those of
consumers).
"""

from typing import Final

from pyspark.sql import DataFrame

from pipeline.derive.effective import COMMITTED
from pipeline.engine import Window, fn
from pipeline.tables import PARTITION_KEY

_KEPT: Final = [
    "log_partition", "log_offset", *PARTITION_KEY, "committed_offset", "leader_epoch", "metadata",
    "tombstone", "effective_at_ms",
]  # fmt: skip
_OWNER: Final = "struct<member_id:string,client_id:string>"


def in_order(effective: DataFrame, group_metadata: DataFrame | None = None) -> DataFrame:
    """The commits that count, each once, with `old_offset`, `last_offset`, `member_id`,
    `client_id`.

    `old_offset` is that of the commit before, null if there is none or it was a deletion;
    `last_offset` that of the newest before which was none.
    """
    kept = [name for name in _KEPT if name in effective.columns]
    rows = effective.where(fn.col("outcome") == COMMITTED).select(*kept)
    if group_metadata is not None:
        rows = rows.unionByName(owners(group_metadata), allowMissingColumns=True)
    else:
        rows = rows.withColumn("owner", fn.lit(None).cast(_OWNER))
    log = Window.partitionBy(*PARTITION_KEY, "log_partition").orderBy("log_offset")
    earlier = log.rowsBetween(Window.unboundedPreceding, -1)
    until_now = log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = rows.repartition(*PARTITION_KEY).withColumns(
        {
            # The same record may come twice: its copies follow each other, and the first counts.
            "is_copy": fn.lag("log_offset", 1, -1).over(log) == fn.col("log_offset"),
            # Rows of owners have neither of the two, so they are passed over.
            "was_tombstone": fn.last("tombstone", ignorenulls=True).over(earlier),
            "last_offset": fn.last("committed_offset", ignorenulls=True).over(earlier),
            "owner": fn.last("owner", ignorenulls=True).over(until_now),
        }
    )
    return known.where("tombstone IS NOT NULL AND NOT is_copy").select(
        *kept,
        fn.when(~fn.col("was_tombstone"), fn.col("last_offset")).alias("old_offset"),
        "last_offset",
        "owner.member_id",
        "owner.client_id",
    )


def owners(group_metadata: DataFrame) -> DataFrame:
    """log_partition, log_offset, group, topic, partition, owner (member_id, client_id)."""
    member = fn.explode("members").alias("member")
    owned = fn.explode("member.assigned").alias("owned")
    return (
        group_metadata.where("members IS NOT NULL")
        .select("log_partition", "log_offset", "group", member)
        .select("log_partition", "log_offset", "group", "member", owned)
        .select(
            "log_partition", "log_offset", "group",
            fn.col("owned.topic").alias("topic"),
            fn.explode("owned.partitions").alias("partition"),
            fn.struct("member.member_id", "member.client_id").alias("owner"),
        )
    )  # fmt: skip
