"""Segments: where are a topic's segments, and how are they split into even pieces?

A path is a data directory (with `<topic>-<n>` folders in it), such a folder itself, or one segment.
A segment that is longer than a piece is split at batch boundaries, which the log's own sparse index
gives; without a usable index its batch headers are walked. Only names and indexes are read here, on
the driver. Kafka's counterparts: LocalLog, OffsetIndex.
"""

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

import numpy as np

from pipeline.decode.resync import (
    ANY_OFFSET,
    OFFSETS_OF_A_SEGMENT,
    OffsetBounds,
    in_rising_order,
    next_batch,
)
from pipeline.read.identity import LogBeginning
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
_EXTENT: Final = Struct(">qi4xb")  # base offset, length, magic
_HEAD: Final = Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_WINDOW_BYTES: Final = 64 << 10
_INDEX_BLOCK_BYTES: Final = 8 << 10
_RESYNC_WINDOW_BYTES: Final = 8 << 20
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
    next_offset: int | None = None  # the base offset of the segment after it

    @property
    def offsets(self) -> OffsetBounds:
        """That its batches may have."""
        high = self.base_offset + OFFSETS_OF_A_SEGMENT
        return self.base_offset, min(high, self.next_offset or high)


class Piece(NamedTuple):
    """Bytes `start` to `end` of a segment; both are where a batch begins, or its end."""

    path: str
    topic: str
    partition: int
    start: int
    end: int
    is_last: bool  # of its segment: what is torn there stays torn
    offsets: OffsetBounds = ANY_OFFSET


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
    found.sort(key=lambda segment: (segment.partition, segment.base_offset))
    return [
        segment._replace(next_offset=after.base_offset)
        if after is not None and after.partition == segment.partition
        else segment
        for segment, after in zip(found, [*found[1:], None], strict=True)
    ]


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


def log_beginnings(found: Sequence[LogSegment]) -> dict[int, LogBeginning]:
    """By partition, the first batch that is there; none of a log without batches."""
    begins: dict[int, LogBeginning] = {}
    for segment in found:
        if segment.partition not in begins:
            with Path(segment.path).open("rb") as log:
                beginning = log_beginning(log.read(_RESYNC_WINDOW_BYTES), segment.offsets)
            if beginning is not None:
                begins[segment.partition] = beginning
    return begins


def log_beginning(content: bytes, offsets: OffsetBounds) -> LogBeginning | None:
    """Of a log that begins with this content; None if there is no sound batch."""
    at = next_batch(content, 0, len(content), offsets)
    if at is None:
        return None
    header = read_header(content, at)
    return LogBeginning(header.base_offset, header.base_timestamp, header.max_timestamp)


def cluster_id_of(path: str) -> str | None:
    """Of the data directory, also if the path is one of its partitions or segments; None: it is a
    copy without meta.properties."""
    root = Path(path.removeprefix("file://").removeprefix("file:")).resolve()
    for folder in (root, *root.parents[:2]):
        try:
            lines = (folder / "meta.properties").read_text(errors="replace").splitlines()
        except OSError:
            continue
        return cluster_id_in(lines)
    return None


def cluster_id_in(lines: Iterable[str]) -> str | None:
    """In the lines of a meta.properties."""
    found = (line.partition("=")[2].strip() for line in lines if line.startswith("cluster.id="))
    return next(found, None) or None


def log_ends(found: Sequence[LogSegment]) -> dict[int, int]:
    """By partition, the offset after the last whole batch that is there now."""
    newest = {segment.partition: segment for segment in found}
    return {partition: end_offset(segment) for partition, segment in newest.items()}


def end_offset(segment: LogSegment) -> int:
    """After its last whole batch; its base offset if there is none. Raises OSError."""
    with Path(segment.path).open("rb") as log:

        def read(size: int, position: int) -> bytes:
            return os.pread(log.fileno(), size, position)

        indexed = reversed(_indexed(segment))
        start = next((entry.position for entry in indexed if _leads(read, entry, segment)), 0)
        return end_of_log(read, start, segment.size, segment.offsets)


def end_of_log(read: ReadAt, start: int, size: int, offsets: OffsetBounds) -> int:
    """The offset after the last whole batch from `start` on; the first of `offsets` if there is
    none. Batches whose base offset or length cannot be do not count."""
    bases, lasts = array("q"), array("q")
    while len(head := read(_HEAD.size, start)) == _HEAD.size:
        base_offset, length, magic, last_delta = _HEAD.unpack(head)
        after = start + length + LOG_OVERHEAD
        if magic != 2 or length < _LENGTH_MIN or after > size:
            found = _resync(read, start, size, offsets)
            if found is None:
                break
            start = found
            continue
        bases.append(base_offset)
        lasts.append(min(base_offset + last_delta, offsets[1]) if base_offset >= 0 else -1)
        start = after
    rows = np.frombuffer(bases, np.int64), np.frombuffer(lasts, np.int64)
    sound = np.flatnonzero(in_rising_order(*rows, offsets))
    return int(rows[1][sound[-1]]) + 1 if len(sound) else offsets[0]


def _resync(read: ReadAt, start: int, size: int, offsets: OffsetBounds) -> int | None:
    """Where the next sound batch begins; the room that is preallocated has none."""
    while start + HEADER_BYTES < size:
        window = read(min(_RESYNC_WINDOW_BYTES, size - start), start)
        if not any(window):
            return None
        found = next_batch(window, 1, len(window), offsets)
        if found is not None:
            return start + found
        if len(window) < _RESYNC_WINDOW_BYTES:
            return None
        start += len(window) // 2  # a batch of up to half a window is in one of two
    return None


def pieces(segment: LogSegment, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """The segment in pieces of about this size."""
    cuts = [0]
    if segment.size > piece_bytes:
        for position in _boundaries(segment):
            if position - cuts[-1] >= piece_bytes and segment.size - position > piece_bytes // 4:
                cuts.append(position)
    ends = [*cuts[1:], segment.size]
    return [
        Piece(
            segment.path,
            segment.topic,
            segment.partition,
            start,
            end,
            end == segment.size,
            segment.offsets,
        )
        for start, end in zip(cuts, ends, strict=True)
        if end > start
    ]


def _boundaries(segment: LogSegment) -> Iterator[int]:
    """Rising positions where batches begin: some of them, or all."""
    with Path(segment.path).open("rb") as log:

        def read(size: int, position: int) -> bytes:
            return os.pread(log.fileno(), size, position)

        sound = [entry.position for entry in _indexed(segment) if _leads(read, entry, segment)]
        yield from sound or _hops(read, segment.size)


def _hops(read: ReadAt, end: int) -> Iterator[int]:
    """Positions where a batch begins, from header to header, up to the first that cannot be one."""
    position, window, content = 0, 0, b""
    while position + _EXTENT.size <= end:
        if position + _EXTENT.size > window + len(content):
            window, content = position, read(_WINDOW_BYTES, position)
            if len(content) < _EXTENT.size:
                return
        _, length, magic = _EXTENT.unpack_from(content, position - window)
        if length < _LENGTH_MIN or magic != 2:
            return
        yield position
        position += length + LOG_OVERHEAD


def batch_extent(content: bytes) -> tuple[int, int]:
    """(base offset, bytes) of the batch that begins here; its header alone must be there."""
    base_offset, length, _ = _EXTENT.unpack_from(content)
    return base_offset, length + LOG_OVERHEAD


class _IndexEntry(NamedTuple):
    """A batch of the sparse index: one of its offsets, relative to the segment's, and its place."""

    relative_offset: int
    position: int


def _indexed(segment: LogSegment) -> list[_IndexEntry]:
    """Of the sparse index, thinned out; empty when it is missing or makes no sense."""
    try:
        with Path(segment.path).with_suffix(".index").open("rb") as index:
            content = _up_to_room(index)
    except OSError:
        return []
    whole = len(content) - len(content) % _INDEX_ENTRY.size
    entries = [_IndexEntry(*entry) for entry in _INDEX_ENTRY.iter_unpack(content[:whole])]
    entries = [entry for entry in entries if entry.position]
    rising = all(a.position < b.position for a, b in pairwise(entries))
    if not entries or not rising or entries[-1].position >= segment.size:
        return []
    step = max(1, len(entries) * (1 << 20) // segment.size)  # one for each MiB is enough
    return entries[::step]


def _up_to_room(index: BinaryIO) -> bytes:
    """A broker that runs has made room for 10 MiB of entries: zeros, and as many for each of its
    logs."""
    blocks = []
    while any(block := index.read(_INDEX_BLOCK_BYTES)):
        blocks.append(block)
    return b"".join(blocks)


def _leads(read: ReadAt, entry: _IndexEntry, segment: LogSegment) -> bool:
    """To a sound batch with this offset: an index may be of another segment, or be damaged."""
    head = read(HEADER_BYTES, entry.position)
    if len(head) < HEADER_BYTES:
        return False
    _, size = batch_extent(head)
    if size < HEADER_BYTES or entry.position + size > segment.size:
        return False
    batch = read(size, entry.position)
    try:
        header = read_header(batch)
    except InvalidBatch:
        return False
    offset = segment.base_offset + entry.relative_offset
    has_it = header.base_offset <= offset <= header.base_offset + header.last_offset_delta
    return has_it and header.crc == computed_crc(batch, 0, size)
