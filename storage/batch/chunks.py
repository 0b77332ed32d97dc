"""Chunked reads: a whole log file in large pieces, each of whole batches.

The log cleaner reads segments with it: one call for many batches, so that the loops over the
batches stay in one function (a generator's step for each of a million batches would cost as much
as the work on it). Damage is Corrupt, with file and position.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from storage.api import Corrupt
from storage.batch.record_batch import HEADER_BYTES, InvalidBatch, peek_header
from storage.disk import Disk

READ_CHUNK_BYTES: Final = 1 << 20

Throttle = Callable[[int], None]
"""Called with the bytes that were read or written; may hold the caller up."""

ChunkReader = Callable[[bytes, int], int]
"""(chunk, its position in the file) -> bytes taken: up to the first batch that is not whole."""


class SegmentSource(NamedTuple):
    """A segment to read: its file, where its offsets begin, where the next one's do, its bytes."""

    path: str
    base_offset: int
    next_base: int
    size: int


def no_throttle(_bytes: int) -> None:
    """For tests and for people who wait."""


def read_segment_chunks(
    disk: Disk,
    source: SegmentSource,
    take: ChunkReader,
    throttle: Throttle,
    chunk_bytes: int = READ_CHUNK_BYTES,
) -> None:
    """Hand a segment's bytes to `take`, some batches at a time. Raises Corrupt, OSError."""
    path, size = source.path, source.size
    file = disk.open(path)
    position = 0
    try:
        while position < size:
            chunk = file.pread(min(chunk_bytes, size - position), position)
            taken = take(chunk, position)
            if not taken:
                chunk = file.pread(_whole(path, chunk, position, size), position)
                taken = take(chunk, position)
                if not taken:
                    raise Corrupt(path, position, "the file is shorter than its log")
            throttle(taken)
            position += taken
    except InvalidBatch as fault:
        raise Corrupt(path, position + fault.position, fault.reason) from None
    finally:
        file.close()


def _whole(path: str, chunk: bytes, position: int, size: int) -> int:
    """The size of the batch that a chunk begins with and does not hold."""
    if len(chunk) < HEADER_BYTES:
        raise Corrupt(path, position, f"{size - position} bytes are no batch")
    wanted = peek_header(chunk, 0).size
    if wanted > size - position:
        reason = f"a batch of {wanted} bytes, the log has {size - position} left"
        raise Corrupt(path, position, reason)
    return wanted
