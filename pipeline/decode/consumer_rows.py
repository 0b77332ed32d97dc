"""Consumer group rows: the records of the consumer group protocol as rows of one table.

Types 3 and 5 to 8 and 16, each with the columns that it has. Type 4, which Kafka does not write any
more, and the records of other protocols are in the table of all records only.
"""

from collections.abc import Sequence
from typing import Final

from coordinator.consumer.member import ConsumerMemberState
from coordinator.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER_METADATA,
    REGULAR_EXPRESSION,
    TARGET_MEMBER,
    TARGET_METADATA,
)
from coordinator.record_schemas import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
    TopicPartitionsWithEpochs,
)
from logtools.group_records import RECORD_TYPES, decode_group_record
from pipeline.decode.rows import Row, Rows
from protocol.compiler import reader
from protocol.schema import Message

_RECORDS: Final = {
    GROUP_EPOCH: "group",
    MEMBER_METADATA: "member",
    TARGET_METADATA: "target_epoch",
    TARGET_MEMBER: "target",
    CURRENT_ASSIGNMENT: "current",
    REGULAR_EXPRESSION: "regex",
}
_STATES: Final = {state.value: state.name for state in ConsumerMemberState}


def consumer_groups(key: bytes | None, value: bytes | None) -> Rows:
    """A record of a consumer group; of other types nothing."""
    kind = -1 if key is None or len(key) < 2 else int.from_bytes(key[:2], signed=True)
    record = _RECORDS.get(kind)
    if record is None or key is None:
        return Rows()
    shown = decode_group_record(key, value)
    if shown.problem is not None:
        return Rows(problem=shown.problem)
    schema = RECORD_TYPES[kind]
    place = reader(schema.key, 0)(key, 2, len(key))
    row: dict[str, object] = {
        "record_type": kind,
        "record": record,
        "group": shown.group,
        "member_id": getattr(place, "member_id", None),
        "regex": getattr(place, "regular_expression", None),
        "tombstone": value is None,
    }
    if value is not None:
        version = int.from_bytes(value[:2], signed=True)
        row.update(_said(reader(schema.value, version)(value, 2, len(value))))
    return Rows((row,))


def _said(value: Message) -> Row:
    match value:
        case ConsumerGroupMetadataValue():
            return {"epoch": value.epoch, "metadata_hash": value.metadata_hash}
        case ConsumerGroupMemberMetadataValue():
            return _member(value)
        case TargetAssignmentMetadataValue():
            return {"epoch": value.assignment_epoch, "at_ms": value.assignment_timestamp or None}
        case TargetAssignmentMemberValue():
            return {
                "partitions": _owned(value.topic_partitions),
                "partition_count": _count(value.topic_partitions),
            }
        case ConsumerGroupCurrentMemberAssignmentValue():
            assigned, pending = value.assigned_partitions, value.partitions_pending_revocation
            return {
                "epoch": value.member_epoch,
                "previous_epoch": value.previous_member_epoch,
                "state": _STATES.get(value.state, str(value.state)),
                "partitions": _owned(assigned),
                "partition_count": _count(assigned),
                "pending_revocation": _owned(pending),
                "pending_count": _count(pending),
            }
        case ConsumerGroupRegularExpressionValue():
            return {"topics": list(value.topics), "at_ms": value.timestamp or None}
        case _:
            raise AssertionError(f"{type(value).__name__} has no row")


def _member(value: ConsumerGroupMemberMetadataValue) -> Row:
    classic = value.classic_member_metadata
    return {
        "group_instance_id": value.instance_id,
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "topics": list(value.subscribed_topic_names),
        "regex": value.subscribed_topic_regex or None,
        "assignor": value.server_assignor,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "session_timeout_ms": None if classic is None else classic.session_timeout_ms,
    }


_Owned = Sequence[TopicPartitions] | Sequence[TopicPartitionsWithEpochs]


def _owned(topics: _Owned) -> list[Row]:
    return [
        {
            "topic_id": owned.topic_id.bytes,
            "partitions": list(owned.partitions),
            "assignment_epochs": list(getattr(owned, "assignment_epochs", None) or ()) or None,
        }
        for owned in topics
    ]


def _count(topics: _Owned) -> int:
    return sum(len(owned.partitions) for owned in topics)
