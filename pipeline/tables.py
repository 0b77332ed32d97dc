"""Which tables come out of the logs, with which columns in which units?

Declared once, as Arrow schemas whose fields carry their unit and meaning: the decoders fill them,
Spark gets its types from them, `rollcall pipeline schema` prints them and docs/pipeline.md shows
them. Times ending in `_ms` are milliseconds since the Unix epoch, UTC, unless they say duration.
"""

from typing import Final, NamedTuple

import pyarrow as pa

OFFSETS_TOPIC: Final = "__consumer_offsets"
HISTORY_TOPIC: Final = "__group_history"
LAG_TOPIC: Final = "__group_lag"


class Table(NamedTuple):
    """A table, the topic that it is read from (None: any), and what one row of it is."""

    name: str
    topic: str | None
    row: str
    schema: pa.Schema

    def only(self, *columns: str) -> "Table":
        """The same with fewer columns: what is not there is neither decoded nor brought to Spark.
        Raises KeyError."""
        return self._replace(schema=pa.schema([self.schema.field(name) for name in columns]))


def column(name: str, kind: pa.DataType, unit: str, meaning: str) -> pa.Field:
    return pa.field(name, kind, metadata={"unit": unit, "comment": meaning})


def unit_of(field: pa.Field) -> str:
    return _said(field, b"unit")


def meaning_of(field: pa.Field) -> str:
    return _said(field, b"comment")


def _said(field: pa.Field, what: bytes) -> str:
    said: dict[bytes, bytes] = field.metadata or {}
    return said.get(what, b"").decode()


_TEXT: Final = pa.string()
_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_FLAG: Final = pa.bool_()

PLACE: Final = (
    column("log_partition", _INT, "", "The partition of the log's topic."),
    column("log_offset", _LONG, "records", "The record's offset there."),
    column("log_timestamp_ms", _LONG, "ms", "When the coordinator wrote it."),
)

COMMITS: Final = Table(
    "commits",
    OFFSETS_TOPIC,
    "an offset commit of one partition, or its deletion",
    pa.schema(
        [
            *PLACE,
            column("group", _TEXT, "", "The group."),
            column("topic", _TEXT, "", "The topic that the group reads."),
            column("partition", _INT, "", "Its partition."),
            column("committed_offset", _LONG, "records", "The next offset to read; null: deleted."),
            column("leader_epoch", _INT, "", "Of the record before; null: not said."),
            column("metadata", _TEXT, "", "What the client added."),
            column("commit_timestamp_ms", _LONG, "ms", "When it was committed; null: deleted."),
            column("expire_timestamp_ms", _LONG, "ms", "Old clients' own expiry; null: none."),
            column("topic_id", pa.binary(), "", "Sixteen bytes; null: not said."),
            column("value_version", pa.int16(), "", "Of OffsetCommitValue; null: deleted."),
            column("tombstone", _FLAG, "", "The offset was deleted or expired."),
            column("producer_id", _LONG, "", "Of the transaction; null: none."),
            column("transactional", _FLAG, "", "It counts once its transaction has committed."),
        ]
    ),
)

TRANSACTION_MARKERS: Final = Table(
    "transaction_markers",
    OFFSETS_TOPIC,
    "the end of a transaction that committed offsets",
    pa.schema(
        [
            *PLACE,
            column("producer_id", _LONG, "", "Whose transaction."),
            column("producer_epoch", _INT, "", "Its epoch."),
            column("committed", _FLAG, "", "False: aborted."),
        ]
    ),
)

_OWNED: Final = pa.list_(pa.struct([("topic", _TEXT), ("partitions", pa.list_(_INT))]))
_MEMBER: Final = pa.struct(
    [
        ("member_id", _TEXT),
        ("group_instance_id", _TEXT),
        ("client_id", _TEXT),
        ("client_host", _TEXT),
        ("session_timeout_ms", _INT),
        ("rebalance_timeout_ms", _INT),
        ("subscribed_topics", pa.list_(_TEXT)),
        ("assigned", _OWNED),
    ]
)

GROUP_METADATA: Final = Table(
    "group_metadata",
    OFFSETS_TOPIC,
    "a group as it was written: a generation with its members, or its deletion",
    pa.schema(
        [
            *PLACE,
            column("group", _TEXT, "", "The group."),
            column("group_type", _TEXT, "", "classic, consumer, share or streams."),
            column("protocol_type", _TEXT, "", "consumer, connect, ...; null: none."),
            column("generation", _INT, "", "The generation, or the group's epoch (KIP-848)."),
            column("protocol", _TEXT, "", "The assignor that was chosen."),
            column("leader", _TEXT, "", "The member id of the leader."),
            column("state_timestamp_ms", _LONG, "ms", "Since when the group is in its state."),
            column("members", pa.list_(_MEMBER), "durations in ms", "Null where not one record."),
            column("member_count", _INT, "members", "Null where members are records of their own."),
            column("value_version", pa.int16(), "", "Of the value; null: deleted."),
            column("tombstone", _FLAG, "", "The group was deleted, or changed its type."),
        ]
    ),
)

GROUP_RECORDS: Final = Table(
    "group_records",
    OFFSETS_TOPIC,
    "a record of any known type but the two of offset commits (0 and 1), as JSON; those of "
    "group_metadata are here too, markers of transactions are not",
    pa.schema(
        [
            *PLACE,
            column("record_type", _INT, "", "The number that opens the key."),
            column("name", _TEXT, "", "What Kafka calls the type; GenerationBegun is Rollcall's."),
            column("group", _TEXT, "", "The group."),
            column("key", _TEXT, "JSON", "The key's fields, named as kafka-dump-log does."),
            column("value", _TEXT, "JSON", "The value's fields; null: deleted."),
            column("value_version", pa.int16(), "", "Of the value; null: deleted."),
        ]
    ),
)

GROUP_EVENTS: Final = Table(
    "group_events",
    HISTORY_TOPIC,
    "something that happened to a group, as its coordinator saw it",
    pa.schema(
        [
            *PLACE,
            column("group", _TEXT, "", "The group."),
            column("at_ms", _LONG, "ms", "When it happened."),
            column("type", _TEXT, "", "docs/history.md lists them."),
            column("cause", _TEXT, "", "Why, of what has a cause."),
            column("generation", _INT, "", "The generation that it is about."),
            column("member_id", _TEXT, "", "Of the member that it is about, or that began it."),
            column("group_instance_id", _TEXT, "", "Of the same member."),
            column("client_id", _TEXT, "", "Of the same member, or of who asked."),
            column("host", _TEXT, "", "Of the same, as the daemon saw it."),
            column("began_at_ms", _LONG, "ms", "Of a whole rebalance: when it began."),
            column("duration_ms", _LONG, "ms duration", "Of a whole rebalance."),
            column("generation_before", _INT, "", "Of a whole rebalance."),
            column("generation_after", _INT, "", "Of a whole rebalance."),
            column("members_before", _INT, "members", "Of a whole rebalance."),
            column("members_after", _INT, "members", "Of a whole rebalance."),
            column("partitions_moved", _INT, "partitions", "That changed their owner."),
            column(
                "unowned_partition_seconds", pa.float64(), "partition-seconds", "Without an owner."
            ),
            column(
                "changes",
                pa.list_(
                    pa.struct(
                        [("topic", _TEXT), ("partition", _INT), ("old", _LONG), ("new", _LONG)]
                    )
                ),
                "records",
                "Of offsets that were moved: from where to where; null: none.",
            ),
            column("event", _TEXT, "JSON", "All fields of the event."),
        ]
    ),
)

LAG_SAMPLES: Final = Table(
    "lag_samples",
    LAG_TOPIC,
    "a commit that the lag sampler took note of, with the lag at that moment",
    pa.schema(
        [
            *PLACE,
            column("group", _TEXT, "", "The group."),
            column("topic", _TEXT, "", "The topic that the group reads."),
            column("partition", _INT, "", "Its partition."),
            column("at_ms", _LONG, "ms", "When it was committed."),
            column("committed_offset", _LONG, "records", "The next offset to read."),
            column("lag", _LONG, "records", "Log end less committed offset, at that moment."),
            column("sampled_at_ms", _LONG, "ms", "When the sampler wrote it down."),
            column("whole", _FLAG, "", "One of the records that repeat a whole window."),
        ]
    ),
)

UNDECODABLE: Final = Table(
    "undecodable",
    None,
    "bytes that no other table holds, with their place and why",
    pa.schema(
        [
            column("log_partition", _INT, "", "The partition of the log's topic."),
            column("file", _TEXT, "", "The segment; null where the record came over the wire."),
            column("position", _LONG, "bytes", "Where its batch begins in the file."),
            column("size", _LONG, "bytes", "Of the batch."),
            column("log_offset", _LONG, "records", "The record's offset, or its batch's; null."),
            column("record_type", _INT, "", "Null where it is unknown."),
            column("reason", _TEXT, "", "What was wrong."),
            column("key", pa.binary(), "", "The record's, if it was one record."),
            column("value", pa.binary(), "", "The record's, if it was one record."),
        ]
    ),
)

TABLES: Final = {
    table.name: table
    for table in (
        COMMITS,
        TRANSACTION_MARKERS,
        GROUP_METADATA,
        GROUP_RECORDS,
        GROUP_EVENTS,
        LAG_SAMPLES,
        UNDECODABLE,
    )
}
