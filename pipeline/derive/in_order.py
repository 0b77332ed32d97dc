"""Commits in order: what came before each commit of its partition, and who owned the partition?

The only pass over all commits that needs an order. They are sorted by partition and position in the
log; columns hold what the rules need of the past. Everything derived from the result counts and
filters rows, or groups them by group, topic and partition; the rows are already arranged that way.

The owner is the member to which the newest generation before the commit assigns the partition; in a
group of the consumer protocol (KIP-848), the member whose current assignment has it. It is null if
nobody owns the partition (a group without members, a deleted group, a simple consumer, a tool) or
if the assignments are not those of consumers.
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


def in_order(
    effective: DataFrame,
    group_metadata: DataFrame | None = None,
    consumer_owners: DataFrame | None = None,
) -> DataFrame:
    """The commits that count, each once, with `old_offset`, `last_offset`, `member_id`,
    `client_id`.

    `old_offset` is that of the commit before, null if there is none or it was a deletion;
    `last_offset` that of the newest before which was none.
    """
    kept = [name for name in _KEPT if name in effective.columns]
    rows = effective.where(fn.col("outcome") == COMMITTED).select(*kept)
    known = [owners(group_metadata)] if group_metadata is not None else []
    known += [consumer_owners] if consumer_owners is not None else []
    rows = rows.withColumn("owner", fn.lit(None).cast(_OWNER))
    for more in known:
        rows = rows.unionByName(more, allowMissingColumns=True)
    log = Window.partitionBy(*PARTITION_KEY, "log_partition").orderBy("log_offset")
    earlier = log.rowsBetween(Window.unboundedPreceding, -1)
    until_now = log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = rows.repartition(*PARTITION_KEY).withColumns(
        {
            # The same record may come twice: its copies follow each other, and the first counts.
            "is_copy": fn.lag("log_offset", 1, -1).over(log) == fn.col("log_offset"),
            # Rows of owners have neither of the two, so they are passed over.
            "was_tombstone": fn.last("tombstone", ignorenulls=True).over(earlier),
            "last_offset": fn.last("committed_offset", ignorenulls=True).over(earlier),
            "owner": fn.last("owner", ignorenulls=True).over(until_now),
        }
    )
    return placed.where("tombstone IS NOT NULL AND NOT is_copy").select(
        *kept,
        fn.when(~fn.col("was_tombstone"), fn.col("last_offset")).alias("old_offset"),
        "last_offset",
        "owner.member_id",
        "owner.client_id",
    )


def owners(group_metadata: DataFrame) -> DataFrame:
    """log_partition, log_offset, group, topic, partition, owner (member_id, client_id).

    The owner has no member id where a generation assigns the partition to nobody.
    """
    order = Window.partitionBy("log_partition", "group").orderBy("log_offset")
    classic = group_metadata.where("group_type = 'classic'")
    owned = classic.withColumn("owned", fn.expr(_OWNED)).withColumn(
        "before", fn.lag("owned", 1).over(order)
    )
    # What the generation before assigned and this one does not has no owner any more.
    changes = owned.select(
        "log_partition", "log_offset", "group", fn.explode(fn.expr(_CHANGES)).alias("change")
    )
    return changes.select("log_partition", "log_offset", "group", "change.*")


_OWNED: Final = """
    flatten(flatten(transform(coalesce(members, array()), m ->
        transform(coalesce(m.assigned, array()), t ->
            transform(coalesce(t.partitions, array()), p -> named_struct(
                'topic', t.topic, 'partition', p, 'member_id', m.member_id,
                'client_id', m.client_id))))))
"""
_CHANGES: Final = """
    concat(
        transform(owned, o -> named_struct('topic', o.topic, 'partition', o.partition,
            'owner', named_struct('member_id', o.member_id, 'client_id', o.client_id))),
        transform(
            array_except(
                transform(coalesce(before, array()), o ->
                    named_struct('topic', o.topic, 'partition', o.partition)),
                transform(owned, o -> named_struct('topic', o.topic, 'partition', o.partition))),
            o -> named_struct('topic', o.topic, 'partition', o.partition,
                'owner', named_struct('member_id', cast(null AS string),
                    'client_id', cast(null AS string)))))
"""
