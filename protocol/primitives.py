"""Primitive types: reading and writing varints, zig-zag integers, lengths, tag buffers and ids.

Generated code calls these where a value is longer than the common case, which it handles inline.
`coordinator/records.py` and the record batches of `storage/` use them directly. Each reader takes
(buffer, position) and returns (value, next position). Beyond the buffer's end it raises IndexError,
which the compiled readers turn into `Malformed`.
Kafka's counterpart: `ByteUtils`, `Readable`, `Writable`.
"""

import codecs
import re
from functools import lru_cache
from struct import Struct
from typing import Final, TypeVar, cast
from uuid import UUID

STRING_MAX_BYTES: Final = 0x7FFF

STRING_SAFE_CHARS: Final = STRING_MAX_BYTES // 4
"""A string of at most this many characters fits: a character takes at most four bytes."""

TAGS_UNBOUNDED: Final = 1 << 62  # For anything but a request.
ARRAY_STRUCTS_CACHED: Final = 256
_TOPIC_IDS_CACHED: Final = 4096


class Malformed(Exception):
    """The peer violated the protocol: its connection is closed, nothing else is affected."""


class Unwritable(Exception):
    """A bug of ours: the message cannot be written in this version."""


_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def _java_replacement(error: UnicodeError) -> tuple[str, int]:
    """Replace what is not UTF-8 as Java does: an encoded surrogate by one mark, not by three.

    The first error of a string replaces all the rest of it: a call for each error would take a
    microsecond per byte.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = _ENCODED_SURROGATE.sub(b"\xff", error.object[error.start :])
    return rest.decode(errors="replace"), len(error.object)


# Strings are decoded with these two arguments; a name that is not UTF-8 is no error.
UTF8: Final = ("utf-8", "rollcall.java")
codecs.register_error(UTF8[1], _java_replacement)

# Most lengths fit into one byte, and most of the others into two.
_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(0x80))


def uvarint(value: int) -> bytes:
    """An unsigned varint: seven bits a byte, the lowest first."""
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fits_string(text: str) -> bool:
    """Whether a message or a record can hold it. What was read from a frame may have grown:

    a byte that is not UTF-8 was replaced by a character of three bytes.
    """
    return len(text) <= STRING_SAFE_CHARS or len(text.encode()) <= STRING_MAX_BYTES


S = TypeVar("S", bound=str)


def echoed(text: S) -> S:
    """A string of the client's as a response can repeat it: cut off if it is too long."""
    if fits_string(text):
        return text
    return cast("S", text.encode()[:STRING_MAX_BYTES].decode(errors="ignore"))


def string_length(length: int) -> bytes:
    """The length of a compact string, of at most the bytes that a plain string can have."""
    if length - 1 > STRING_MAX_BYTES:
        raise Unwritable(f"a string of {length - 1} bytes")
    return uvarint(length)


def read_uvarint(buf: bytes, pos: int) -> tuple[int, int]:
    """An unsigned varint of at most 31 bits; Kafka's lengths and tags are Java ints."""
    byte = buf[pos]
    if byte < 0x80:
        return byte, pos + 1
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        pos += 1
        byte = buf[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0x7FFFFFFF:
                break
            return value, pos + 1
    raise Malformed("a varint of more than 31 bits")


def varint(value: int) -> bytes:
    """A signed varint, zig-zagged so that small negative numbers stay short; any width."""
    return uvarint(value << 1 if value >= 0 else ((-value) << 1) - 1)


def read_varint(buf: bytes, pos: int) -> tuple[int, int]:
    """A zig-zagged varint of at most 32 bits."""
    byte = buf[pos]
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift >= 35:
            raise Malformed("a varint that goes on after 5 bytes")
        pos += 1
        byte = buf[pos]
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), pos + 1


def long_length(buf: bytes, pos: int) -> tuple[int, int]:
    """The whole of a varint whose first byte, before `pos`, turned out to say "more follows"."""
    return read_uvarint(buf, pos - 1)


def long_string_length(buf: bytes, pos: int) -> tuple[int, int]:
    """As `long_length`, for a compact string: no longer than a plain string can be."""
    length, pos = read_uvarint(buf, pos - 1)
    if length - 1 > STRING_MAX_BYTES:
        raise Malformed(f"a string of {length - 1} bytes")
    return length, pos


def skip_tags(buf: bytes, pos: int, count: int, left: int = TAGS_UNBOUNDED) -> tuple[int, int]:
    """Step over a tag buffer of which we know no tag; `count` is its first byte.

    `left` is how many elements the message may still have; what is left of that is returned too.
    """
    if count >= 0x80:
        count, pos = long_length(buf, pos)
    left -= count
    if left < 0:
        raise Malformed("more tags than a request may have elements")
    for _ in range(count):
        _, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        pos += size
    return pos, left


@lru_cache(maxsize=ARRAY_STRUCTS_CACHED)
def array_struct(code: str, count: int) -> Struct:
    """The Struct of `count` adjacent numbers."""
    return Struct(f">{count}{code}")


@lru_cache(maxsize=_TOPIC_IDS_CACHED)
def read_uuid(raw: bytes) -> UUID:
    """The id of sixteen bytes. Cached: a UUID takes long to make, and there are few."""
    return UUID(bytes=raw)
