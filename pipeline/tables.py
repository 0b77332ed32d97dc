"""Input tables: which tables are read from the logs, with which columns in which units?

Declared once, as Arrow schemas whose fields carry their unit and meaning: the decoders fill them,
Spark gets its types from them, `rollcall pipeline schema` prints them and docs/pipeline.md shows
them. Times ending in `_ms` are milliseconds since the Unix epoch, UTC, unless they say duration.
"""

from typing import Final, NamedTuple

import pyarrow as pa

from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC

PARTITION_KEY: Final = ("group", "topic", "partition")
"""Columns that name a partition of a group."""

MINUTE_MS: Final = 60_000


class Table(NamedTuple):
    """A table, the topic that it is read from (None: any), and what one row of it is."""

    name: str
    topic: str | None
    row: str
    schema: pa.Schema

    def only(self, *columns: str) -> "Table":
        """The same with fewer columns: the others are neither decoded nor sent to Spark.
        Raises KeyError."""
        return self._replace(schema=pa.schema([self.schema.field(name) for name in columns]))


def column(name: str, kind: pa.DataType, unit: str, meaning: str) -> pa.Field:
    return pa.field(name, kind, metadata={"unit": unit, "comment": meaning})


def never_null(field: pa.Field) -> pa.Field:
    """For the columns of many rows: Spark then does not ask for each value whether it is there."""
    return field.with_nullable(nullable=False)


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

_GROUP: Final = column("group", _TEXT, "", "The group.")
_TOPIC: Final = column("topic", _TEXT, "", "The topic that the group reads.")
_PARTITION: Final = column("partition", _INT, "", "Its partition.")
_RECORD_TYPE: Final = column("record_type", _INT, "", "The type number at the start of the key.")
_VERSION: Final = column("value_version", pa.int16(), "", "Version of the value; null: deleted.")
_LOG_PARTITION: Final = column("log_partition", _INT, "", "The partition of the source topic.")

PLACE: Final = (
    _LOG_PARTITION,
    column("log_offset", _LONG, "records", "The record's offset in that partition."),
    column("log_timestamp_ms", _LONG, "ms", "When the record was written."),
)

COMMITS: Final = Table(
    "commits",
    OFFSETS_TOPIC,
    "an offset commit of one partition, or its deletion",
    pa.schema(
        [
            *map(never_null, PLACE),
            never_null(_GROUP),
            never_null(_TOPIC),
            never_null(_PARTITION),
            column("committed_offset", _LONG, "records", "The next offset to read; null: deleted."),
            column("leader_epoch", _INT, "", "Epoch of the last read record; null: not given."),
            column("metadata", _TEXT, "", "The client's metadata text."),
            column("commit_timestamp_ms", _LONG, "ms", "Commit time; null: deleted."),
            column("expire_timestamp_ms", _LONG, "ms", "Expiry set by an old client; null: none."),
            column("topic_id", pa.binary(), "", "Sixteen bytes; null: not given."),
            column("value_version", pa.int16(), "", "Version of OffsetCommitValue; null: deleted."),
            never_null(column("tombstone", _FLAG, "", "The offset was deleted or expired.")),
            column("producer_id", _LONG, "", "Producer of the transaction; null: none."),
            never_null(
                column("transactional", _FLAG, "", "Counts only once its transaction commits.")
            ),
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
            column("producer_id", _LONG, "", "Producer of the transaction."),
            column("producer_epoch", _INT, "", "That producer's epoch."),
            column("committed", _FLAG, "", "True: committed; false: aborted."),
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

GROUP_METADATA_TABLE: Final = Table(
    "group_metadata",
    OFFSETS_TOPIC,
    "a stored group: a generation with its members, or the deletion of the group",
    pa.schema(
        [
            *PLACE,
            _GROUP,
            column("group_type", _TEXT, "", "classic, consumer, share or streams."),
            column("protocol_type", _TEXT, "", "consumer, connect, ...; null: none."),
            column("generation", _INT, "", "The generation, or the group's epoch (KIP-848)."),
            column("protocol", _TEXT, "", "The chosen assignor."),
            column("leader", _TEXT, "", "The member id of the leader."),
            column("state_timestamp_ms", _LONG, "ms", "When the group entered its state."),
            column(
                "members", pa.list_(_MEMBER), "durations in ms", "Null: stored as separate records."
            ),
            column("member_count", _INT, "members", "Null as for members."),
            _VERSION,
            column("tombstone", _FLAG, "", "The group was deleted, or changed its type."),
        ]
    ),
)

GROUP_RECORDS: Final = Table(
    "group_records",
    OFFSETS_TOPIC,
    "a record of any known type except offset commits (types 0 and 1), as JSON. Includes the "
    "records of group_metadata, but no transaction markers",
    pa.schema(
        [
            *PLACE,
            _RECORD_TYPE,
            column("name", _TEXT, "", "Kafka's name of the type; GenerationBegun is Rollcall's."),
            _GROUP,
            column("key", _TEXT, "JSON", "The key's fields, named as kafka-dump-log does."),
            column("value", _TEXT, "JSON", "The value's fields; null: deleted."),
            _VERSION,
        ]
    ),
)

_OWNED_BY_ID: Final = pa.list_(
    pa.struct(
        [
            ("topic_id", pa.binary()),
            ("partitions", pa.list_(_INT)),
            ("assignment_epochs", pa.list_(_INT)),
        ]
    )
)

CONSUMER_GROUPS: Final = Table(
    "consumer_groups",
    OFFSETS_TOPIC,
    "a record of a group of the consumer protocol (KIP-848): types 3, 5 to 8 and 16",
    pa.schema(
        [
            *PLACE,
            _RECORD_TYPE,
            column("record", _TEXT, "", "group, member, target_epoch, target, current or regex."),
            _GROUP,
            column("member_id", _TEXT, "", "Of member, target and current; else null."),
            column("epoch", _INT, "", "Group, assignment or member epoch; null: none."),
            column("previous_epoch", _INT, "", "Of current: the member epoch before."),
            column("state", _TEXT, "", "Of current: STABLE, UNREVOKED_PARTITIONS, ..."),
            column("partitions", _OWNED_BY_ID, "", "Of target and current: assigned."),
            column("pending_revocation", _OWNED_BY_ID, "", "Of current: to be given back."),
            column("partition_count", _INT, "partitions", "How many are assigned."),
            column("pending_count", _INT, "partitions", "How many are to be given back."),
            column("group_instance_id", _TEXT, "", "Of member; null: none."),
            column("rack_id", _TEXT, "", "Of member; null: none."),
            column("client_id", _TEXT, "", "Of member."),
            column("client_host", _TEXT, "", "Of member."),
            column("topics", pa.list_(_TEXT), "", "Subscribed; of regex: that it matches."),
            column("regex", _TEXT, "", "Of member and regex; null: none."),
            column("assignor", _TEXT, "", "That the member asks for; null: none."),
            column("rebalance_timeout_ms", _INT, "ms duration", "Of member."),
            column("session_timeout_ms", _INT, "ms duration", "Of a classic member; else null."),
            column("metadata_hash", _LONG, "", "Of group: of the subscribed topics."),
            column("at_ms", _LONG, "ms", "When it was assigned or resolved; null: unknown."),
            column("tombstone", _FLAG, "", "The record was deleted."),
        ]
    ),
)

GROUP_EVENTS: Final = Table(
    "group_events",
    HISTORY_TOPIC,
    "an event of a group, as its coordinator recorded it",
    pa.schema(
        [
            *PLACE,
            _GROUP,
            column("at_ms", _LONG, "ms", "When it happened."),
            column("type", _TEXT, "", "The event type; see docs/history.md."),
            column("cause", _TEXT, "", "Why it happened; null: no cause."),
            column("generation", _INT, "", "The generation concerned."),
            column("member_id", _TEXT, "", "The member concerned, or that began it."),
            column("group_instance_id", _TEXT, "", "Of that member."),
            column("client_id", _TEXT, "", "Of that member, or of the requester."),
            column("host", _TEXT, "", "Address of that client, as the daemon saw it."),
            column("principal", _TEXT, "", "Of that client; null: not authenticated."),
            column("began_at_ms", _LONG, "ms", "Rebalances only: start."),
            column("duration_ms", _LONG, "ms duration", "Rebalances only: duration."),
            column("generation_before", _INT, "", "Rebalances only: old generation."),
            column("generation_after", _INT, "", "Rebalances only: new generation."),
            column("members_before", _INT, "members", "Rebalances only: members before."),
            column("members_after", _INT, "members", "Rebalances only: members after."),
            column("partitions_moved", _INT, "partitions", "Partitions with a new owner."),
            column(
                "unowned_partition_seconds",
                pa.float64(),
                "partition-seconds",
                "Time without an owner, summed over partitions.",
            ),
            column(
                "changes",
                pa.list_(
                    pa.struct(
                        [("topic", _TEXT), ("partition", _INT), ("old", _LONG), ("new", _LONG)]
                    )
                ),
                "records",
                "Moved offsets, old and new; null: none.",
            ),
            column("event", _TEXT, "JSON", "All fields of the event."),
        ]
    ),
)

LAG_SAMPLES: Final = Table(
    "lag_samples",
    LAG_TOPIC,
    "a commit recorded by the lag sampler, with the lag at that time",
    pa.schema(
        [
            *PLACE,
            _GROUP,
            _TOPIC,
            _PARTITION,
            column("at_ms", _LONG, "ms", "Commit time."),
            column("committed_offset", _LONG, "records", "The next offset to read."),
            column("lag", _LONG, "records", "Log end minus committed offset, at that time."),
            column("sampled_at_ms", _LONG, "ms", "When the sampler recorded it."),
            column("whole", _FLAG, "", "From a record that repeats a whole window."),
            column("log_end_offset", _LONG, "records", "Log end then; null: from an older lake."),
        ]
    ),
)

LOG_ENDS: Final = Table(
    "log_ends",
    None,
    "the log of a partition that groups have committed for, as a run measured it",
    pa.schema(
        [
            column("topic", _TEXT, "", "The topic that groups read."),
            _PARTITION,
            column("sampled_at_ms", _LONG, "ms", "When it was measured."),
            column("log_start_offset", _LONG, "records", "First offset; null: unknown."),
            column("log_end_offset", _LONG, "records", "The next offset; null: unknown."),
            column("source", _TEXT, "", "Who said so: broker, or folders."),
            column("problem", _TEXT, "", "Why an offset is unknown; null: none is."),
        ]
    ),
)
"""Not decoded from a log: see read/log_ends.py."""

UNDECODABLE: Final = Table(
    "undecodable",
    None,
    "bytes that could not be decoded, with their position and the reason",
    pa.schema(
        [
            _LOG_PARTITION,
            column("file", _TEXT, "", "The segment; null: read from a broker."),
            column("position", _LONG, "bytes", "Start of the batch in the file."),
            column("size", _LONG, "bytes", "Size of the batch."),
            column(
                "log_offset", _LONG, "records", "Offset of the record or of its batch; may be null."
            ),
            column("record_type", _INT, "", "Type number; null: unknown."),
            column("reason", _TEXT, "", "Why it could not be decoded."),
            column("key", pa.binary(), "", "The record's key, if it is a single record."),
            column("value", pa.binary(), "", "The record's value, if it is a single record."),
        ]
    ),
)

TABLES: Final = {
    table.name: table
    for table in (
        COMMITS,
        TRANSACTION_MARKERS,
        GROUP_METADATA_TABLE,
        GROUP_RECORDS,
        CONSUMER_GROUPS,
        GROUP_EVENTS,
        LAG_SAMPLES,
        UNDECODABLE,
    )
}
"""By name, those that are decoded from logs."""

LAKE_TABLES: Final = {**TABLES, LOG_ENDS.name: LOG_ENDS}
"""By name, those that a lake has."""
