"""Kafka's JSON: our structs in the form that Kafka's converters read, and back."""

from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from typing import Any
from uuid import UUID

from protocol.names import ErrorCode
from protocol.schema import ArrayOf, StructOf, Wire, WireType, fields_of


def to_json(value: Any, version: int) -> dict[str, Any]:
    """A struct as Kafka's JSON, without what the version lacks and without unset tags."""
    return {
        _camel_case(field.name): _to_json(field.mark.wire, getattr(value, field.name), version)
        for field in fields_of(type(value))
        if field.mark.in_version(version)
        and (field.mark.tag is None or getattr(value, field.name) != field.default)
    }


def from_json(json: dict[str, Any], cls: Any, version: int) -> Any:
    """A struct out of Kafka's JSON."""
    return cls(
        **{
            field.name: _from_json(field.mark.wire, json[_camel_case(field.name)], version)
            for field in fields_of(cls)
            if _camel_case(field.name) in json
        }
    )


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _to_json(wire: WireType, value: Any, version: int) -> Any:
    match wire:
        case _ if value is None:
            return None
        case ArrayOf(element):
            return [_to_json(element, item, version) for item in value]
        case StructOf():
            return to_json(value, version)
        case Wire(name="uuid"):
            return urlsafe_b64encode(value.bytes).decode().rstrip("=")
        case Wire(name="bytes" | "records"):
            return b64encode(value).decode()
        case _:
            return value


def _from_json(wire: WireType, value: Any, version: int) -> Any:
    match wire:
        case _ if value is None:
            return None
        case ArrayOf(element):
            return tuple(_from_json(element, item, version) for item in value)
        case StructOf(cls):
            return from_json(value, cls, version)
        case Wire(name="uuid"):
            return UUID(bytes=urlsafe_b64decode(value + "=="))
        case Wire(name="bytes" | "records"):
            return b64decode(value)
        case Wire(name="error_code"):
            return ErrorCode(value)
        case _:
            return value
