"""Decompression of batches: small ones are decompressed many at once.

Starting a zstd frame costs more than everything else for a batch of a hundred records (some 20 us);
starting an lz4 frame costs half as much. But frames can be concatenated. So the frames of some
dozen batches become one stream, with a frame between each two of them that holds an unguessable
mark; the mark in the output shows where a batch ends. If any of them is damaged, each is
decompressed alone, as the daemon does it, which finds the damaged one. Gzip is slow at each member,
and snappy has no such cost.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final

import pyarrow as pa

from storage.batch.compression import COMPRESSION_NAMES, LZ4, ZSTD, decompress

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

    for (codec, is_small), run in groupby(batches, kind):
        while some := [blob for blob, _ in islice(run, _TOGETHER)]:
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
