"""Kafka's JSON form of a message: a decoded message as Kafka's tools print it, by its declaration.

Field names in lowerCamel, bytes in base64, topic ids in Kafka's 22 characters, fields that a
version lacks and tagged fields at their default left out: what the generated JSON converters of
Kafka do. One printer is made for each class and version, since a dump meets millions of records.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter

from protocol.schema import ArrayOf, FieldSpec, Message, Struct, StructOf, Wire, WireType, fields_of
from storage.log.checkpoints import encode_uuid

Json = None | bool | int | float | str | Sequence["Json"] | dict[str, "Json"]

_Print = Callable[..., Json]


def kafka_json(message: Message, version: int) -> Json:
    """A whole message of this version."""
    return _struct_printer(type(message), version)(message)


def base64_text(raw: bytes) -> str:
    return b64encode(raw).decode()


@cache
def _struct_printer(cls: type[Struct], version: int) -> _Print:
    parts = [
        (_camel_case(field.name), attrgetter(field.name), _field_printer(field, version), field)
        for field in fields_of(cls)
        if field.mark.in_version(version)
    ]

    def show(message: object) -> Json:
        shown: dict[str, Json] = {}
        for name, get, show_field, field in parts:
            value = get(message)
            if field.mark.tag is None or value != field.default:
                shown[name] = show_field(value)
        return shown

    return show


def _field_printer(field: FieldSpec, version: int) -> _Print:
    show = _printer(field.mark.wire, version)
    if field.mark.nullable_in(version):
        return lambda value: None if value is None else show(value)
    return show


def _printer(wire: WireType, version: int) -> _Print:
    if isinstance(wire, StructOf):
        return _struct_printer(wire.cls, version)
    if isinstance(wire, ArrayOf):
        show = _printer(wire.element, version)
        return lambda values: [show(value) for value in values]
    return _scalar_printer(wire)


def _scalar_printer(wire: Wire) -> _Print:
    if wire.name == "uuid":
        return encode_uuid
    if wire.name in ("bytes", "records"):
        return base64_text
    return _as_it_is


def _as_it_is(value: Json) -> Json:
    return value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
