"""Message schema: how a message is declared, with its fields, wire types and versions.

The vocabulary of `protocol/messages/` and of `coordinator/record_schemas.py`. A declaration is a
`Struct`, or a `Message` if it is not part of another one. Its fields are in wire order:

    class HeartbeatRequest(Message):
        API_KEY: ClassVar = ApiKey.HEARTBEAT
        VERSIONS: ClassVar = range(5)
        FLEXIBLE_SINCE: ClassVar = 4

        group_id: Annotated[GroupId, STRING] = GroupId("")
        group_instance_id: Annotated[GroupInstanceId | None, since(STRING, 3, nullable=True)] = None

`compiler.py` makes a reader and a writer of (class, version) on first use; nothing here runs while
requests are served. A struct inside a message has no VERSIONS: it is compiled into each message and
version that contains it. A null is `None`, an array a tuple, and every field has the default of
Kafka's JSON, with one exception: an absent tagged struct is `None`.
Kafka's counterpart: the message generator and its JSON files.
"""

from enum import IntEnum
from functools import cache
from typing import ClassVar, Final

import msgspec

from protocol.names import ApiKey, ErrorCode

NEVER: Final = 1 << 15  # A version that no message reaches: they are int16.
INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1


class Struct(msgspec.Struct, gc=False):
    """A declaration, or a part of one.

    A message never refers to itself, so the garbage collector need not track it.
    """


class Message(Struct):
    """A declaration that is not part of another: a request, a response or a stored record."""

    VERSIONS: ClassVar[range]
    FLEXIBLE_SINCE: ClassVar[int]


class Wire(msgspec.Struct, frozen=True):
    """A wire type. `code` is its letter in `struct` if it has a fixed width, else ""."""

    name: str
    code: str = ""
    enum: type[IntEnum] | None = None  # Read as its member; a number without one stays a number.


class ArrayOf(msgspec.Struct, frozen=True):
    """An array; `element` is what it holds. `at_most`: limit in a request; 0: the default."""

    element: "Wire | StructOf"
    at_most: int = 0


class StructOf(msgspec.Struct, frozen=True):
    """A struct in place; `cls` is its declaration."""

    cls: type[Struct]


WireType = Wire | ArrayOf | StructOf

BOOL: Final = Wire("bool", "?")
INT8: Final = Wire("int8", "b")
INT16: Final = Wire("int16", "h")
UINT16: Final = Wire("uint16", "H")
INT32: Final = Wire("int32", "i")
INT64: Final = Wire("int64", "q")
FLOAT64: Final = Wire("float64", "d")
API_KEY: Final = Wire("api_key", "h", ApiKey)
ERROR_CODE: Final = Wire("error_code", "h", ErrorCode)
UUID: Final = Wire("uuid", "16s")
STRING: Final = Wire("string")
BYTES: Final = Wire("bytes")
RECORDS: Final = Wire("records")  # Bytes; only the log decodes record batches.
CLIENT_ID: Final = Wire("client_id")  # A string that is never compact, and null is "".


class Mark(msgspec.Struct, frozen=True):
    """The annotation of a field: its wire type, and its place in each version."""

    wire: WireType
    first: int = 0
    last: int = NEVER
    nullable_since: int = NEVER
    ignorable: bool = False
    tag: int | None = None

    def in_version(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable_in(self, version: int) -> bool:
        return version >= self.nullable_since


def array(element: Wire | type, *, at_most: int = 0) -> ArrayOf:
    """An array of a wire type or of a declared struct."""
    return ArrayOf(element if isinstance(element, Wire) else StructOf(element), at_most)


def nullable(wire: WireType | type, *, since: int = 0) -> Mark:
    """A field of every version that may be null, perhaps only since a later version."""
    return Mark(_wire(wire), nullable_since=since)


def since(
    wire: WireType | type, first: int, *, nullable: bool | int = False, ignorable: bool = False
) -> Mark:
    """A field that came with a version. `ignorable`: older versions drop a value silently."""
    return between(wire, first, NEVER, nullable=nullable, ignorable=ignorable)


def until(
    wire: WireType | type, last: int, *, nullable: bool | int = False, ignorable: bool = False
) -> Mark:
    """A field that later versions lack. `ignorable`: they drop a value silently."""
    return between(wire, 0, last, nullable=nullable, ignorable=ignorable)


def between(
    wire: WireType | type,
    first: int,
    last: int,
    *,
    nullable: bool | int = False,
    ignorable: bool = False,
) -> Mark:
    """A field that came with a version and left after another one."""
    return Mark(_wire(wire), first, last, _nullable_since(nullable, first), ignorable)


def tagged(
    wire: WireType | type,
    tag: int,
    *,
    since: int = 0,
    nullable: bool = False,
    ignorable: bool = False,
) -> Mark:
    """A field in the tag buffer: written only when it differs from its default."""
    return Mark(_wire(wire), since, NEVER, _nullable_since(nullable, since), ignorable, tag)


def _wire(wire: WireType | type) -> WireType:
    return wire if isinstance(wire, Wire | ArrayOf | StructOf) else StructOf(wire)


def _nullable_since(nullable: int, first: int) -> int:
    if nullable is True:
        return first
    return NEVER if nullable is False else nullable


class FieldSpec(msgspec.Struct, frozen=True):
    """One declared field, for the compiler."""

    name: str
    mark: Mark
    default: object


@cache
def fields_of(cls: type[Struct]) -> tuple[FieldSpec, ...]:
    """The fields of a declaration in wire order, with their marks."""
    return tuple(_field_spec(cls, field) for field in msgspec.structs.fields(cls))


def _field_spec(cls: type[Struct], field: msgspec.structs.FieldInfo) -> FieldSpec:
    annotations = getattr(field.type, "__metadata__", ())
    marks = [mark for mark in annotations if isinstance(mark, Mark | WireType)]
    if len(marks) != 1:
        raise TypeError(f"{cls.__name__}.{field.name} needs one wire type, has {len(marks)}")
    mark = marks[0] if isinstance(marks[0], Mark) else Mark(marks[0])
    if field.required:
        raise TypeError(f"{cls.__name__}.{field.name} has no default")
    default: object = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    return FieldSpec(field.name, mark, default)
