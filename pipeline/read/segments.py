"""Segments: where are a topic's segments, and how are they split into even pieces?

A path is a data directory (with `<topic>-<n>` folders in it), such a folder itself, or one segment.
A segment that is longer than a piece is split at batch boundaries, which the log's own sparse index
gives; without a usable index its batch headers are walked. Only names and indexes are read here, on
the driver. Kafka's counterparts: LocalLog, OffsetIndex.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from seams.operator_error import WrongInput
from storage.batch.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    InvalidBatch,
    computed_crc,
    read_header,
)
from storage.log.partition_folders import parse_folder_name
from storage.log.segment import LOG_SUFFIX

PIECE_BYTES: Final = 32 << 20
"""Bytes of log that one task decodes."""

_INDEX_ENTRY: Final = Struct(">ii")
_EXTENT: Final = Struct(">qi")
_HEAD: Final = Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_WINDOW_BYTES: Final = 64 << 10
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD  # of a batch that is nothing but its header

ReadAt = Callable[[int, int], bytes]
"""(size, position) to the bytes there, fewer where the log ends."""


class NoSegments(WrongInput):
    """There is nothing of the topic there; the message is for people."""


class LogSegment(NamedTuple):
    path: str
    topic: str
    partition: int
    base_offset: int
    size: int


class Piece(NamedTuple):
    """Bytes `start` to `end` of a segment; both are where a batch begins, or its end."""

    path: str
    topic: str
    partition: int
    start: int
    end: int
    is_last: bool  # of its segment: what is torn there stays torn


def segments(path: str, topic: str) -> list[LogSegment]:
    """All segments of the topic, in order. Raises NoSegments, OSError."""
    root = Path(path.removeprefix("file://").removeprefix("file:"))
    if root.suffix == LOG_SUFFIX and root.is_file():
        found = list(_of_folder([root], root.resolve().parent.name, topic))
    elif parse_folder_name(root.resolve().name) and any(root.glob(f"*{LOG_SUFFIX}")):
        found = list(_of_folder(root.glob(f"*{LOG_SUFFIX}"), root.resolve().name, topic))
    elif root.is_dir():
        found = [
            segment
            for folder in root.glob(f"{topic}-*")
            for segment in _of_folder(folder.glob(f"*{LOG_SUFFIX}"), folder.name, topic)
        ]
    else:
        raise NoSegments(f"{path}: no such folder or segment")
    if not found:
        raise NoSegments(f"{path} has no segment of {topic}")
    return sorted(found, key=lambda segment: (segment.partition, segment.base_offset))


def with_records_from(found: Sequence[LogSegment], begins: Mapping[int, int]) -> list[LogSegment]:
    """Of segments in order, those that may have records from these offsets on."""
    following = [*found[1:], None]
    return [
        segment
        for segment, after in zip(found, following, strict=True)
        if after is None
        or after.partition != segment.partition
        or after.base_offset > begins.get(segment.partition, 0)
    ]


def _of_folder(
    files: Iterator[Path] | Sequence[Path], name: str, topic: str
) -> Iterator[LogSegment]:
    key = parse_folder_name(name)
    if key is None or key.topic != topic:
        return
    for file in files:
        if file.stem.isdecimal():
            size = file.stat().st_size
            yield LogSegment(str(file), topic, key.partition, int(file.stem), size)


def log_ends(found: Sequence[LogSegment]) -> dict[int, int]:
    """By partition, the offset after the last whole batch that is there now."""
    newest = {segment.partition: segment for segment in found}
    return {partition: _end_offset(segment) for partition, segment in newest.items()}


def _end_offset(segment: LogSegment) -> int:
    indexed = _indexed(Path(segment.path).with_suffix(".index"), segment.size)
    with Path(segment.path).open("rb") as log:
        start = indexed[-1] if indexed else 0

        def read(size: int, position: int) -> bytes:
            return os.pread(log.fileno(), size, position)

        if start and not _begins_batch(read, start, segment):
            start = 0
        return end_of_log(read, start, segment.size, segment.base_offset)


def end_of_log(read: ReadAt, start: int, size: int, base_offset: int) -> int:
    """The offset after the last whole batch from `start` on; `base_offset` if there is none."""
    end = base_offset
    while len(head := read(_HEAD.size, start)) == _HEAD.size:
        batch_offset, length, magic, last_delta = _HEAD.unpack(head)
        if magic != 2 or length < _LENGTH_MIN or start + length + LOG_OVERHEAD > size:
            break
        end = batch_offset + last_delta + 1
        start += length + LOG_OVERHEAD
    return end


def pieces(segment: LogSegment, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """The segment in pieces of about this size."""
    cuts = [0]
    if segment.size > piece_bytes:
        for position in _boundaries(segment):
            if position - cuts[-1] >= piece_bytes and segment.size - position > piece_bytes // 4:
                cuts.append(position)
    ends = [*cuts[1:], segment.size]
    return [
        Piece(segment.path, segment.topic, segment.partition, start, end, end == segment.size)
        for start, end in zip(cuts, ends, strict=True)
        if end > start
    ]


def _boundaries(segment: LogSegment) -> Iterator[int]:
    """Rising positions where batches begin: some of them, or all."""
    indexed = _indexed(Path(segment.path).with_suffix(".index"), segment.size)
    with Path(segment.path).open("rb") as log:

        def read(size: int, position: int) -> bytes:
            return os.pread(log.fileno(), size, position)

        if indexed and all(_begins_batch(read, position, segment) for position in indexed):
            yield from indexed
        else:
            yield from _hops(read, segment.size)


def _hops(read: ReadAt, end: int) -> Iterator[int]:
    """Every position where a batch begins, from header to header."""
    position, window, content = 0, 0, b""
    while position + _EXTENT.size <= end:
        if position + _EXTENT.size > window + len(content):
            window, content = position, read(_WINDOW_BYTES, position)
            if len(content) < _EXTENT.size:
                return
        _, length = _EXTENT.unpack_from(content, position - window)
        if length <= 0:
            return
        yield position
        position += length + LOG_OVERHEAD


def batch_extent(content: bytes) -> tuple[int, int]:
    """(base offset, bytes) of the batch that begins here; its header alone must be there."""
    base_offset, length = _EXTENT.unpack_from(content)
    return base_offset, length + LOG_OVERHEAD


def _indexed(index: Path, size: int) -> list[int]:
    """Positions from the sparse index, thinned out; empty when it is missing or makes no sense."""
    try:
        content = index.read_bytes()
    except OSError:
        return []
    whole = len(content) - len(content) % _INDEX_ENTRY.size
    positions = [position for _, position in _INDEX_ENTRY.iter_unpack(content[:whole]) if position]
    rising = all(a < b for a, b in pairwise(positions))
    if not positions or not rising or positions[-1] >= size:
        return []
    step = max(1, len(positions) * (1 << 20) // size)  # one for each MiB is enough
    return positions[::step]


def _begins_batch(read: ReadAt, position: int, segment: LogSegment) -> bool:
    """By all that is known of a batch: an index may be of another segment, or be damaged."""
    head = read(HEADER_BYTES, position)
    if len(head) < HEADER_BYTES:
        return False
    base_offset, size = batch_extent(head)
    if position + size > segment.size or base_offset < segment.base_offset:
        return False
    batch = read(max(size, 0), position)
    try:
        return read_header(batch).crc == computed_crc(batch, 0, size)
    except InvalidBatch:
        return False
