"""Messages of every kind to test with: for each class and version, drawn from a source of chance.

`sample` fills the fields that a version has, with nulls, empty and full arrays, strings longer than
one byte of length can say, tagged fields set and unset. The chance may be a seeded `Random` or
hypothesis' own, which then shrinks what fails.
"""

from random import Random
from typing import Any, TypeVar
from uuid import UUID

from protocol.messages import REQUESTS, RESPONSES
from protocol.names import ErrorCode
from protocol.schema import ArrayOf, FieldSpec, Message, StructOf, Wire, WireType, fields_of

S = TypeVar("S")

EVERY_MESSAGE = [
    (cls, version) for cls in (*REQUESTS.values(), *RESPONSES.values()) for version in cls.VERSIONS
]

_STRINGS = ("", "a", "group-1", "Zürich", "日本語", "x" * 126, "y" * 127)
_BYTES = (b"", b"\x00", b"\xff\xfe", bytes(range(128)))
_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def message_id(value: object) -> str:
    """How a test names its (class, version)."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


def sample(cls: type[S], version: int, random: Random) -> S:
    """An object of a declared class with a value of chance in every field that the version has."""
    return cls(
        **{
            field.name: _field(field, version, random)
            for field in fields_of(cls)  # type: ignore[arg-type]
            if field.mark.in_version(version)
        }
    )


def _field(field: FieldSpec, version: int, random: Random) -> object:
    mark = field.mark
    if mark.tag is not None and random.random() < 0.4:
        return field.default
    if mark.nullable_in(version) and random.random() < 0.3:
        return None
    value = _value(mark.wire, version, random)
    if mark.tag is not None and isinstance(mark.wire, StructOf) and value == mark.wire.cls():
        return None  # A tagged struct of defaults is not written, and reads as none.
    return value


def _value(wire: WireType, version: int, random: Random) -> Any:
    match wire:
        case ArrayOf(element):
            return tuple(
                _value(element, version, random) for _ in range(random.choice((0, 1, 1, 2, 3)))
            )
        case StructOf(cls):
            return sample(cls, version, random)
        case Wire(name="bool"):
            return random.random() < 0.5
        case Wire(name="error_code"):
            return random.choice(list(ErrorCode))
        case Wire(name="uuid"):
            return UUID(int=random.choice((0, 1, random.getrandbits(128))))
        case Wire(name="float64"):
            return random.choice((0.0, -1.5, 1e300, float(random.getrandbits(40))))
        case Wire(name="uint16"):
            return random.choice((0, 1, 65_535))
        case Wire(name="string"):
            return random.choice(_STRINGS)
        case Wire(code=code) if code in _BITS:
            limit = 1 << (_BITS[code] - 1)
            return random.choice((0, 1, -1, limit - 1, -limit, random.randrange(-limit, limit)))
        case _:
            return random.choice(_BYTES)


def every_array_long(cls: type[Message], version: int, random: Random) -> Message:
    """A message whose arrays have more elements than one byte of length can say."""
    return cls(
        **{
            field.name: tuple(_value(field.mark.wire.element, version, random) for _ in range(130))
            if isinstance(field.mark.wire, ArrayOf)
            else field.default
            for field in fields_of(cls)
            if field.mark.in_version(version)
        }
    )
