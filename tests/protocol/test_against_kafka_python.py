"""Comparison with kafka-python: every message and version, written and read by its codec.

kafka-python's classes are made from Kafka's own JSON by other people's code. For each class and
version: the same values give the same bytes, and each reads back what the other wrote.
"""

import io
from functools import cache
from random import Random
from typing import Any

import pytest
from kafka.protocol.data_container import DataContainer  # type: ignore[import-untyped]
from kafka.protocol.schemas import StructField, load_json  # type: ignore[import-untyped]

from protocol.compiler import layout, reader, writer
from protocol.names import ZERO_TOPIC_ID, ApiKey
from protocol.schema import ArrayOf, Message, StructOf, Wire, fields_of
from tests.protocol.samples import EVERY_MESSAGE, every_array_long, message_id, sample

# Messages that kafka-python 3.0 does not have.
UNKNOWN_TO_THEM = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
}
THEIR_MESSAGES = [(cls, v) for cls, v in EVERY_MESSAGE if cls.API_KEY not in UNKNOWN_TO_THEM]


@cache
def their_class(name: str) -> Any:
    """Their class for a message, straight from Kafka's JSON, without their own adjustments."""
    struct = StructField(load_json(name))
    struct.set_data_class(type(name, (DataContainer,), {"_struct": struct}))
    return struct.data_class


def to_kafka_python(value: Any, their_struct: Any, version: int) -> Any:
    """Our struct as an object of their class."""
    fields: dict[str, object] = {}
    for field in fields_of(type(value)):
        ours = getattr(value, field.name)
        if not field.mark.in_version(version) or (field.mark.tag is not None and ours is None):
            continue
        match field.mark.wire:
            case ArrayOf(StructOf()) if ours is not None:
                inner = their_struct.fields[field.name].data_class
                fields[field.name] = [to_kafka_python(item, inner, version) for item in ours]
            case ArrayOf() if ours is not None:
                fields[field.name] = list(ours)
            case StructOf() if ours is not None:
                inner = their_struct.fields[field.name].data_class
                fields[field.name] = to_kafka_python(ours, inner, version)
            case Wire(name="uuid"):
                fields[field.name] = ours if ours.int else None  # To them, None is the zero id.
            case _:
                fields[field.name] = ours
    return their_struct(version=version, **fields)


def to_ours(their_value: Any, cls: Any, version: int) -> Any:
    """Their object as one of our classes."""
    fields: dict[str, object] = {}
    for field in fields_of(cls):
        if not field.mark.in_version(version):
            continue
        value = getattr(their_value, field.name)
        match field.mark.wire:
            case ArrayOf(StructOf(inner)) if value is not None:
                fields[field.name] = tuple(to_ours(item, inner, version) for item in value)
            case ArrayOf() if value is not None:
                fields[field.name] = tuple(value)
            case StructOf(inner) if value is not None:
                fields[field.name] = to_ours(value, inner, version)
            case Wire(name="uuid"):
                fields[field.name] = value or ZERO_TOPIC_ID
            case _:
                fields[field.name] = value
    return cls(**fields)


@pytest.mark.parametrize(("cls", "version"), THEIR_MESSAGES, ids=message_id)
def test_both_write_the_same_bytes_and_read_each_other(cls: type[Message], version: int) -> None:
    random = Random(f"{cls.__name__} {version}")
    messages = [sample(cls, version, random) for _ in range(8)]
    messages += [cls(), every_array_long(cls, version, random)]
    their_struct = their_class(cls.__name__)
    flexible = layout(cls, version).flexible
    wire = {"version": version, "compact": flexible, "tagged": flexible}

    for message in messages:
        their_bytes = their_struct.encode(to_kafka_python(message, their_struct, version), **wire)

        assert writer(cls, version)(message) == their_bytes
        assert reader(cls, version)(their_bytes, 0, len(their_bytes)) == message

        decoded = their_struct.decode(io.BytesIO(their_bytes), data_class=their_struct, **wire)
        assert to_ours(decoded, cls, version) == message
