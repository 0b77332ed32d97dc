"""Record spans: the bytes and the key of each record in a batch, for the log cleaner.

`record_batch.py` decodes values and headers too; a reader that keeps some records and drops others
needs neither. A span says where a record's bytes are, so that records are copied unchanged.
"""

from collections.abc import Iterable
from typing import NamedTuple

from storage.batch.compression import NONE, decompress
from storage.batch.record_batch import (
    HEADER_BYTES,
    BadRecords,
    BatchHeader,
    encode_varint,
    read_varint,
)


class RecordSpan(NamedTuple):
    start: int  # its length's first byte
    end: int
    timestamp_delta: int
    offset_delta: int
    rest: int  # where the offset delta begins: a new timestamp changes only what precedes it
    key: bytes | None
    has_value: bool


def records_of(batch: bytes, header: BatchHeader, position: int = 0) -> bytes:
    """The bytes of a batch's records, decompressed; BadRecords if they cannot be read."""
    content = batch[position + HEADER_BYTES : position + header.size]
    if header.compression == NONE or not content:
        return content
    try:
        return decompress(content, header.compression)
    except ValueError as fault:
        raise BadRecords(position, str(fault)) from None


def spans_in(records: bytes, count: int) -> list[RecordSpan]:
    """Every record; BadRecords unless these are exactly `count` records."""
    try:
        found, position = _walk(records, count)
    except (IndexError, ValueError) as fault:
        raise BadRecords(0, str(fault) or "a record runs past the end of its batch") from None
    if position != len(records):
        raise BadRecords(0, f"{len(records) - position} bytes left after {count} records")
    return found


def _walk(records: bytes, count: int) -> tuple[list[RecordSpan], int]:
    found: list[RecordSpan] = []
    position, end = 0, len(records)
    for _ in range(count):
        start = position
        length, position = read_varint(records, position)
        after = position + length
        if length < 0 or after > end:
            raise ValueError(f"a record claims {length} bytes, {end - position} are left")
        timestamp_delta, rest = read_varint(records, position + 1)  # behind the attributes
        offset_delta, position = read_varint(records, rest)
        size, position = read_varint(records, position)
        key = None
        if size >= 0:
            key = records[position : position + size]
            position += size
        value_size, position = read_varint(records, position)
        if position + max(value_size, 0) >= after:
            raise ValueError(f"a value of {value_size} bytes runs past its record")
        found.append(
            RecordSpan(start, after, timestamp_delta, offset_delta, rest, key, value_size >= 0)
        )
        position = after
    return found, position


def joined(records: bytes, kept: Iterable[RecordSpan]) -> bytes:
    """The bytes of these records, back to back."""
    return b"".join([records[span.start : span.end] for span in kept])


def moved(records: bytes, kept: Iterable[RecordSpan], shift_ms: int) -> bytes:
    """The same with timestamps relative to a base that is `shift_ms` later."""
    parts: list[bytes] = []
    for span in kept:
        body = b"\x00" + encode_varint(span.timestamp_delta - shift_ms)
        parts += (encode_varint(len(body) + span.end - span.rest), body)
        parts.append(records[span.rest : span.end])
    return b"".join(parts)
