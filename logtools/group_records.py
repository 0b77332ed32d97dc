"""Group records: decodes records of `__consumer_offsets`, with the field names of kafka-dump-log.

All record types of `coordinator/record_schemas.py` and our own; the bytes that consumers embed in
a group's record (subscription, assignment) are decoded as Kafka's tool does it, and stay base64
where they have another format. Of an unknown type or version the bytes are shown.
Kafka's counterparts: OffsetsMessageParser of DumpLogSegments, CoordinatorRecordSerde.
"""

from collections.abc import Mapping, Sequence
from struct import error as struct_error
from typing import Final

from coordinator.classic.generation_messages import GenerationBegunKey, GenerationBegunValue
from coordinator.classic.generation_record import GENERATION_BEGUN
from coordinator.record_schemas import (
    RECORD_SCHEMAS,
    GroupMetadataValue,
    MemberMetadata,
    RecordSchema,
)
from logtools.kafka_json import Json, base64_text, kafka_json
from logtools.record_view import UNKNOWN_RECORD, ShownRecord
from protocol.compiler import reader
from protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.primitives import Malformed
from protocol.schema import Message

RECORD_TYPES: Final[dict[int, RecordSchema]] = {
    **RECORD_SCHEMAS,
    GENERATION_BEGUN: RecordSchema("GenerationBegun", GenerationBegunKey, GenerationBegunValue),
}
"""Every record type by number: Kafka's and ours."""


def decode_group_record(key: bytes | None, value: bytes | None) -> ShownRecord:
    """One record, key and value; nothing raises."""
    return decode_by_schema(RECORD_TYPES, key, value)


def decode_by_schema(
    record_types: Mapping[int, RecordSchema], key: bytes | None, value: bytes | None
) -> ShownRecord:
    """A record whose key begins with its type, and whose value with its version."""
    if key is None or len(key) < 2:
        raw: Json = None if key is None else {"bytes": base64_text(key)}
        return ShownRecord(
            UNKNOWN_RECORD, raw, _raw_value(value), problem="the key names no record type"
        )
    kind = int.from_bytes(key[:2], signed=True)
    schema = record_types.get(kind)
    if schema is None:
        raw = {"type": kind, "bytes": base64_text(key[2:])}
        return ShownRecord(UNKNOWN_RECORD, raw, _raw_value(value))  # a newer Kafka's: no fault
    try:
        message: Message = reader(schema.key, 0)(key, 2, len(key))
    except (Malformed, struct_error) as fault:
        raw = {"type": kind, "bytes": base64_text(key[2:])}
        return ShownRecord(schema.name, raw, _raw_value(value), problem=f"key: {fault}")
    shown_value, problem = _value(schema, value)
    return ShownRecord(
        schema.name,
        {"type": kind, "data": kafka_json(message, 0)},
        shown_value,
        getattr(message, "group", None) or getattr(message, "group_id", None),
        getattr(message, "topic", None),
        getattr(message, "partition", None),
        problem,
    )


def _raw_value(value: bytes | None) -> Json:
    if value is None:
        return None
    if len(value) < 2:
        return {"bytes": base64_text(value)}
    return {"version": int.from_bytes(value[:2], signed=True), "bytes": base64_text(value[2:])}


def _value(schema: RecordSchema, value: bytes | None) -> tuple[Json, str | None]:
    """The value as JSON, and what is wrong with it."""
    if value is None:
        return None, None
    if len(value) < 2:
        return _raw_value(value), "the value is too short to name its version"
    version = int.from_bytes(value[:2], signed=True)
    if version not in schema.value.VERSIONS:
        return _raw_value(value), f"value version {version} is not known"
    try:
        message: Message = reader(schema.value, version)(value, 2, len(value))
    except (Malformed, struct_error) as fault:
        return _raw_value(value), f"value version {version}: {fault}"
    data = kafka_json(message, version)
    if isinstance(message, GroupMetadataValue) and message.protocol_type == PROTOCOL_TYPE:
        _show_embedded(message.members, data)
    return {"version": version, "data": data}, None


def _show_embedded(members: Sequence[MemberMetadata], data: Json) -> None:
    """Put what consumers said in place of their bytes."""
    assert isinstance(data, dict)
    shown = data["members"]
    assert isinstance(shown, list)
    for member, shown_member in zip(members, shown, strict=True):
        assert isinstance(shown_member, dict)
        shown_member["subscription"] = _embedded(ConsumerProtocolSubscription, member.subscription)
        shown_member["assignment"] = _embedded(ConsumerProtocolAssignment, member.assignment)


def _embedded(cls: type[Message], raw: bytes) -> Json:
    version = int.from_bytes(raw[:2], signed=True) if len(raw) >= 2 else -1
    if version < 0:
        return base64_text(raw)
    version = min(version, cls.VERSIONS.stop - 1)  # fields are only ever appended
    try:
        message: Message = reader(cls, version)(raw, 2, len(raw))
    except (Malformed, struct_error):
        return base64_text(raw)
    return kafka_json(message, version)
