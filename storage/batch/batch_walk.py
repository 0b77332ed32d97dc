"""Batch walk: the batches of a file one after the other, read in large pieces.

For scans, repairs and readers that need every byte. Where only headers matter a segment reads less
(`Segment.headers`).
"""

from collections.abc import Iterator
from typing import Final

from storage.batch.compiled_batch import LEADING_BATCHES_IN_C, LEADING_PLACES_IN_C
from storage.batch.record_batch import (
    HEADER_BYTES,
    BadChecksum,
    BatchHeader,
    TruncatedBatch,
    computed_crc,
    peek_header,
)
from storage.disk import File

SCAN_BYTES: Final = 1 << 20
"""Read at a time."""


def whole_batches(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """(position, header, bytes) of each batch, by large reads; InvalidBatch at one not whole."""
    chunk, chunk_start = b"", position
    while position < end:
        if position + HEADER_BYTES > chunk_start + len(chunk):
            chunk, chunk_start = file.pread(min(SCAN_BYTES, end - position), position), position
        header = peek_header(chunk, position - chunk_start)
        after = position + header.size
        if after > end:
            raise TruncatedBatch(position, f"{header.size} bytes long, {end - position} are there")
        if after > chunk_start + len(chunk):
            wanted = min(max(header.size, SCAN_BYTES), end - position)
            chunk, chunk_start = file.pread(wanted, position), position
        yield position, header, chunk[position - chunk_start : after - chunk_start]
        position = after


def leading_batches(file: File, position: int, end: int) -> list[bytes]:
    """Some of the batches from `position` on whose checksums hold; none: look at the next one.

    Only the compiled build finds any.
    """
    if LEADING_BATCHES_IN_C is None:
        return []
    return LEADING_BATCHES_IN_C(file.pread(min(SCAN_BYTES, end - position), position))


def leading_places(file: File, position: int, end: int) -> list[tuple[int, int, int, int]]:
    """The same, without the batches: size, first and last offset, greatest timestamp."""
    if LEADING_PLACES_IN_C is None:
        return []
    return LEADING_PLACES_IN_C(file.pread(min(SCAN_BYTES, end - position), position))


def checked_batches(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch whose every byte was read and holds, up to a bad one."""
    for at, header, batch in whole_batches(file, position, end):
        crc = computed_crc(batch, 0, header.size)
        if crc != header.crc:
            raise BadChecksum(at, f"stored crc {header.crc}, computed crc {crc}")
        yield at, header
