"""Recorded files: as objects, and a decoded record in the form of Kafka's own tool."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from protocol.schema import Struct, fields_of
from storage.api import Record


class Recorded(NamedTuple):
    """A record, and what kafka-dump-log prints of it; `printed_value` is None for a tombstone."""

    record: Record
    timestamp_ms: int
    printed_key: dict
    printed_value: dict | None

    def __str__(self) -> str:
        return f"{self.printed_key} {self.printed_value}"


def recorded(name: str) -> list[Recorded]:
    lines = json.loads((Path(__file__).parent / name).read_text())
    return [
        Recorded(
            Record(
                bytes.fromhex(line["key"]),
                None if line["value"] is None else bytes.fromhex(line["value"]),
            ),
            line["timestamp_ms"],
            line["key_printed"],
            line["value_printed"],
        )
        for line in lines
    ]


def as_printed(value: object, version: int) -> object:
    """This value as kafka-dump-log prints it: JSON, Kafka's field names, absent tags left out."""
    if isinstance(value, UUID):
        return urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [as_printed(item, version) for item in value]
    if not isinstance(value, Struct):
        return value
    return {
        camel_case(name): as_printed(getattr(value, name), version)
        for name in _printed_fields(value, version)
    }


def _printed_fields(value: Struct, version: int) -> list[str]:
    return [
        field.name
        for field in fields_of(type(value))
        if field.mark.in_version(version)
        and (field.mark.tag is None or getattr(value, field.name) != field.default)
    ]


def camel_case(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)
