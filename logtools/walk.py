"""Segment walk: the readable batches of a file, and the bytes that cannot be read.

Reads a segment from front to end in constant memory, checks every batch's checksum, and does not
stop at damage: it reports position and reason, finds the next sound batch and continues there. A
file that a daemon is appending to is read up to its last whole batch.
Kafka's counterpart: DumpLogSegments, which stops at the first bad byte.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from storage.batch.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    InvalidBatch,
    TruncatedBatch,
    computed_crc,
    peek_header,
)

_READ_BYTES: Final = 1 << 20
_MAGIC_AT: Final = 16
_MAGIC: Final = b"\x02"
_OFFSETS_AHEAD: Final = 1 << 31  # a batch found behind damage is not farther away than that


class Batch(NamedTuple):
    """A sound batch and its position."""

    position: int
    header: BatchHeader
    content: bytes


class DamagedBytes(NamedTuple):
    """Bytes that are no batch, or no longer the batch that was written."""

    position: int
    size: int
    reason: str


class _Bad(Exception):
    def __init__(self, reason: str, skip: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.skip = skip  # how long the bad batch says it is; 0 when that cannot be believed


class Reader:
    """A file open for reading, with a chunk of it at hand."""

    __slots__ = ("_chunk", "_fd", "_start", "size")

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._chunk = b""
        self._start = 0
        self.size = os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)

    def has_grown(self) -> bool:
        """Is the file longer than it was? Then `size` is its new size."""
        before, self.size = self.size, os.fstat(self._fd).st_size
        self._chunk = b""
        return self.size > before

    def at(self, position: int, size: int) -> bytes:
        """That many bytes; fewer where the file ends."""
        start = position - self._start
        if start < 0 or start + size > len(self._chunk):
            wanted = min(max(size, _READ_BYTES), max(self.size - position, 0))
            self._chunk, self._start, start = os.pread(self._fd, wanted, position), position, 0
        return self._chunk[start : start + size]


def walk(path: Path) -> Iterator[Batch | DamagedBytes]:
    """Every sound batch and every stretch of damage, in order. Raises OSError."""
    reader = Reader(path)
    try:
        yield from _walk(reader)
    finally:
        reader.close()


def _walk(reader: Reader) -> Iterator[Batch | DamagedBytes]:
    position = next_offset = 0
    while position < reader.size:
        try:
            batch = _batch_at(reader, position)
        except TruncatedBatch as cut:
            if reader.has_grown():  # a daemon is writing: look again
                continue
            bad = _Bad(cut.reason)
        except _Bad as fault:
            bad = fault
        else:
            yield batch
            position += batch.header.size
            next_offset = batch.header.next_offset
            continue
        after = _next_sound(reader, position, bad.skip, next_offset)
        yield DamagedBytes(position, after - position, _reason(reader, position, after, bad.reason))
        position = after


def _batch_at(reader: Reader, position: int) -> Batch:
    try:
        header = peek_header(reader.at(position, HEADER_BYTES), 0)
    except TruncatedBatch:
        raise
    except InvalidBatch as fault:
        raise _Bad(fault.reason) from None
    remaining = reader.size - position
    if header.size > remaining:
        raise TruncatedBatch(position, f"a batch of {header.size} bytes, {remaining} are there")
    content = reader.at(position, header.size)
    if len(content) < header.size:
        raise TruncatedBatch(position, "the file became shorter")
    crc = computed_crc(content, 0, header.size)
    if crc != header.crc:
        raise _Bad(f"checksum {header.crc:#010x} stored, {crc:#010x} computed", header.size)
    return Batch(position, header, content)


def _next_sound(reader: Reader, position: int, skip: int, next_offset: int) -> int:
    """Where the next sound batch begins behind a bad place; the file's end when there is none."""
    if skip and _is_sound(reader, position + skip, next_offset):
        return position + skip
    start = position + 1
    while start < reader.size:
        chunk = reader.at(start, min(_READ_BYTES, reader.size - start))
        if not chunk:
            break
        found = chunk.find(_MAGIC, _MAGIC_AT)
        while found >= 0:
            candidate = start + found - _MAGIC_AT
            if _is_sound(reader, candidate, next_offset):
                return candidate
            found = chunk.find(_MAGIC, found + 1)
        start += max(len(chunk) - _MAGIC_AT, 1)
    return reader.size


def _is_sound(reader: Reader, position: int, next_offset: int) -> bool:
    try:
        header = peek_header(reader.at(position, HEADER_BYTES), 0)
        if not next_offset <= header.base_offset < next_offset + _OFFSETS_AHEAD:
            return False
        _batch_at(reader, position)
    except (InvalidBatch, _Bad):
        return False
    return True


def _reason(reader: Reader, position: int, after: int, reason: str) -> str:
    if _all(reader, position, after, lambda chunk: not chunk.strip(b"\x00")):
        return "only zero bytes: room that was never written"
    return reason


def _all(reader: Reader, position: int, end: int, holds: Callable[[bytes], bool]) -> bool:
    while position < end:
        chunk = reader.at(position, min(_READ_BYTES, end - position))
        if not chunk or not holds(chunk):
            return False
        position += len(chunk)
    return True
