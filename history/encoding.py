"""Entry encoding: history entries as msgpack maps by name, readable by earlier and later versions.

Key: the group id, UTF-8, so that a reader can filter without decoding the value. Value: one
msgpack map {"v": 1, "type": ..., and the fields of the type}. A field that is null, empty or false
by default is left out while it has its default.

Stored names are explicit: the type's name is in `ENTRY_TYPES`, a field's name is the attribute's
unless `STORED_FIELD_NAMES` has another. tests/history/test_stored_names.py pins all of them.

Versioning: a type may get more fields at any time; readers ignore unknown fields and use the
default for missing ones. `v` is raised only when the meaning of a field changes; a reader skips a
value whose `v` is greater than its own, and an unknown type.

Declarations are compiled once into a writer and a reader for each type, as in protocol/.
"""

import types
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Final, Union, cast, get_args, get_origin, get_type_hints

import msgpack
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from history.entries import ENTRY_NAMES, ENTRY_TYPES, HistoryEntry

ENTRY_VERSION: Final = 1

STORED_FIELD_NAMES: Final = {
    "client": "asker",
    "client_host": "host",
    "join_kind": "entrance",
    "member": "who",
    "without_rebalance": "settled",
}
"""Attribute -> its name in records and JSON, where it is another one. Never changed."""

Plain = object
"""What msgpack takes: None, bool, int, float, str, list, dict."""

WriteField = Callable[[object], Plain]
ReadField = Callable[[Plain], object]


class UnreadableEntry(Exception):
    """The value is not an entry: not msgpack, or a field of another type."""


def encode(event: HistoryEntry) -> tuple[bytes, bytes]:
    """(key, value) of the entry's record."""
    kind = type(event)
    value = {"v": ENTRY_VERSION, "type": ENTRY_NAMES[kind], **_write_map(kind, event)}
    packed: bytes = msgpack.packb(value)
    return event.group_id.encode(), packed


def decode(value: bytes | None, without: type[HistoryEntry] | None = None) -> HistoryEntry | None:
    """The entry; None for a later type or version, and for one of the type `without`.

    Raises UnreadableEntry.
    """
    if value is None:
        return None
    try:
        plain = msgpack.unpackb(value)
    except (ValueError, msgpack.UnpackException) as fault:
        raise UnreadableEntry(f"{type(fault).__name__}: {fault}") from None
    if not isinstance(plain, dict) or not isinstance(plain.get("v"), int):
        raise UnreadableEntry("no map with a version")
    kind = ENTRY_TYPES.get(str(plain.get("type")))
    if kind is None or kind is without or plain["v"] > ENTRY_VERSION:
        return None
    try:
        return cast("HistoryEntry", _read_map(kind, plain))
    except (TypeError, ValueError, KeyError, AttributeError) as fault:
        raise UnreadableEntry(f"{plain['type']}: {type(fault).__name__}: {fault}") from None


def as_plain(value: object) -> Plain:
    """All of a value as maps and lists, defaults included: for JSON."""
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Struct) or hasattr(value, "_fields"):
        kind: type = type(value)
        return {stored: as_plain(getattr(value, name)) for name, stored, *_ in _layout(kind)}
    if isinstance(value, tuple):
        return [as_plain(element) for element in value]
    return value


# ---------------------------------------------------------------- one layout for each declaration


_Field = tuple[str, str, WriteField | None, ReadField, object, bool]
"""A field: attribute, stored name, codec, default or NODEFAULT, and whether that is left out.

The codec's writer is None where the value is stored as it is.

A plain tuple: one rebalance writes about 100 fields, and unpacking a NamedTuple takes twice as long
(51 ns, not 25)."""


@cache
def _layout(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    if issubclass(kind, Struct):
        defaults = {field.name: field.default for field in fields(kind)}
    else:
        given = cast("dict[str, object]", getattr(kind, "_field_defaults", {}))
        defaults = {name: given.get(name, NODEFAULT) for name in hints}
    return tuple(
        (
            name,
            STORED_FIELD_NAMES.get(name, name),
            *_codec(hints[name]),
            default,
            _is_nothing(default),
        )
        for name, default in defaults.items()
    )


def _write_map(kind: type, value: object) -> dict[str, Plain]:
    plain: dict[str, Plain] = {}
    for name, stored, write, _, default, is_left_out in _layout(kind):
        content = getattr(value, name)
        if content or not is_left_out or content != default:
            plain[stored] = content if write is None else write(content)
    return plain


def _is_nothing(default: object) -> bool:
    return default is None or default is False or default in ("", ())


def _read_map(kind: type, plain: Plain) -> object:
    if not isinstance(plain, dict):
        raise TypeError(f"{plain!r} is no {kind.__name__}")
    given: dict[str, object] = {}
    for name, stored, _, read, default, _ in _layout(kind):
        if stored in plain:
            given[name] = read(plain[stored])
        elif default is NODEFAULT:
            raise KeyError(stored)
    made: object = kind(**given)
    return made


def _codec(hint: object) -> tuple[WriteField | None, ReadField]:
    """How a field of this type is written and read. No writer: as it is."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (arm for arm in get_args(hint) if arm is not types.NoneType)
        write, read = _codec(inner)
        return (
            None if write is None else _unless_none(write),
            lambda plain: None if plain is None else read(plain),
        )
    if origin is tuple:
        write, read = _codec(get_args(hint)[0])
        return (
            _as_list if write is None else _for_each(write),
            lambda plain: tuple([read(element) for element in _list(plain)]),
        )
    hint = getattr(hint, "__supertype__", hint)  # a NewType is stored as what it is based on
    assert isinstance(hint, type), hint
    if issubclass(hint, StrEnum):
        return str, hint
    if hint is float:
        return None, _float
    if hint in (str, int, bool):
        kind = hint
        return None, lambda plain: _of(plain, kind)
    return lambda value: _write_map(hint, value), lambda plain: _read_map(hint, plain)


def _unless_none(write: WriteField) -> WriteField:
    return lambda value: None if value is None else write(value)


def _as_list(value: object) -> Plain:
    return list(cast("tuple[object, ...]", value))


def _for_each(write: WriteField) -> WriteField:
    return lambda value: [write(element) for element in cast("tuple[object, ...]", value)]


def _list(plain: Plain) -> list[object]:
    if not isinstance(plain, list):
        raise TypeError(f"{plain!r} is no list")
    return plain


def _float(plain: Plain) -> float:
    if not isinstance(plain, (int, float)):
        raise TypeError(f"{plain!r} is no number")
    return float(plain)


def _of(plain: Plain, kind: type) -> object:
    if not isinstance(plain, kind):
        raise TypeError(f"{plain!r} is no {kind.__name__}")
    return plain
