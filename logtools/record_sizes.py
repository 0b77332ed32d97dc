"""Record sizes: the bytes that each record takes in its batch, for counting.

`storage/batch/record_batch.py` decodes a record as a whole. Ten million are counted here, so
headers are skipped and the size is read from the length before the record.
"""

from typing import NamedTuple

from storage.batch.compression import NONE, decompress
from storage.batch.record_batch import HEADER_BYTES, BatchHeader


class Unreadable(Exception):
    """The records are not what their header says."""


class Sized(NamedTuple):
    """The records of one batch. `scale` is bytes on disk for each byte here, 1 if uncompressed."""

    records: list[tuple[bytes | None, bytes | None, int]]
    """(key, value, bytes) of each."""
    scale: float


def sized_records(content: bytes, header: BatchHeader) -> Sized:
    """Every record with its size; Unreadable where they break off."""
    if header.size == HEADER_BYTES:
        return Sized([], 1.0)
    if header.compression == NONE:
        return Sized(_walk(content, HEADER_BYTES, len(content), header.records_count), 1.0)
    try:
        blob = decompress(content[HEADER_BYTES:], header.compression)
    except ValueError as fault:
        raise Unreadable(str(fault)) from None
    records = _walk(blob, 0, len(blob), header.records_count)
    return Sized(records, (header.size - HEADER_BYTES) / max(len(blob), 1))


def _walk(
    blob: bytes, position: int, end: int, count: int
) -> list[tuple[bytes | None, bytes | None, int]]:
    records: list[tuple[bytes | None, bytes | None, int]] = []
    add = records.append
    try:
        for _ in range(count):
            start = position
            byte = blob[position]
            if byte < 0x80:
                length, position = byte >> 1, position + 1
            else:
                length, position = _varint(blob, position)
            after = position + length
            position += 1  # attributes
            while blob[position] >= 0x80:  # timestamp delta
                position += 1
            position += 1
            while blob[position] >= 0x80:  # offset delta
                position += 1
            position += 1
            key, position = _bytes(blob, position)
            value, position = _bytes(blob, position)
            if position >= after or after > end:
                raise Unreadable("a record runs past its end")
            add((key, value, after - start))
            position = after  # headers are part of the size, and nobody asks for more
    except IndexError:
        raise Unreadable("a record runs past the end of its batch") from None
    return records


def _bytes(blob: bytes, position: int) -> tuple[bytes | None, int]:
    byte = blob[position]
    if byte < 0x80:
        if byte == 1:
            return None, position + 1
        length, position = byte >> 1, position + 1
    else:
        length, position = _varint(blob, position)
    return blob[position : position + length], position + length


def _varint(blob: bytes, position: int) -> tuple[int, int]:
    """A zig-zag varint that is not negative."""
    byte = blob[position]
    number, shift = byte & 0x7F, 7
    while byte >= 0x80:
        position += 1
        byte = blob[position]
        number |= (byte & 0x7F) << shift
        shift += 7
    return number >> 1, position + 1
