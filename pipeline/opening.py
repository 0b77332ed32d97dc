"""What is inside compressed batches? Small ones are opened many at once.

To begin with a frame of zstd costs more than all the rest of a batch of a hundred records (some
20 us), with one of lz4 half as much. But frames may follow one another: so those of some dozen
batches become one stream, and between each two of them goes a frame with a mark that nobody can
have guessed; where it comes out is where a batch ends. Should anything be wrong with one of them,
each is opened alone, as the daemon would, which tells of which. Gzip takes its time wherever a
member begins, and snappy none.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final

import pyarrow as pa

from storage.compression import COMPRESSION_NAMES, LZ4, ZSTD, decompress

_JOINED: Final = (LZ4, ZSTD)
_SMALL_BYTES: Final = 4 << 10
"""Of larger ones, compressed, each costs more than its beginning."""

_TOGETHER: Final = 32
_ROOM_BYTES: Final = 4 << 20  # for so many; where they need more they are opened one by one
_MARK_BYTES: Final = 16


def open_each(batches: Iterable[tuple[bytes, int]]) -> Iterator[bytes | ValueError]:
    """Of each (bytes, codec), in their order: what is in them, or why that cannot be had."""

    def kind(batch: tuple[bytes, int]) -> tuple[int, bool]:
        return batch[1], len(batch[0]) <= _SMALL_BYTES

    for (codec, is_small), alike in groupby(batches, kind):
        while some := [blob for blob, _ in islice(alike, _TOGETHER)]:
            joined = is_small and codec in _JOINED and len(some) > 1 and all(some)
            plain = _open_together(some, COMPRESSION_NAMES[codec]) if joined else None
            yield from plain or (_open_alone(blob, codec) for blob in some)


def _open_together(blobs: Sequence[bytes], codec: str) -> list[bytes] | None:
    """None if that cannot be done."""
    mark = os.urandom(_MARK_BYTES)
    between: bytes = pa.compress(mark, codec=codec, asbytes=True)
    stream = pa.BufferReader(between.join(blobs))
    try:
        content: bytes = pa.CompressedInputStream(stream, codec).read(_ROOM_BYTES)
    except OSError:
        return None
    plain = content.split(mark)
    return plain if len(content) < _ROOM_BYTES and len(plain) == len(blobs) else None


def _open_alone(blob: bytes, codec: int) -> bytes | ValueError:
    try:
        return decompress(blob, codec)
    except ValueError as fault:
        return fault
