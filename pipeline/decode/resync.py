"""Resynchronization: where does the next batch begin after damage, and whose base offset is wrong?

Two fields of a batch are outside its checksum. A wrong *length* hides where the next batch begins:
it is searched for, byte by byte, and must have a matching checksum and lead to another batch, so
that a value with the bytes of a batch in it is not taken for one. A wrong *base offset* is noticed
by the order: offsets of a segment rise, and are within 2^31 of its own.
"""

from bisect import bisect_left
from struct import Struct
from typing import Final

import google_crc32c
import numpy as np

from pipeline.decode.vector_reads import Flags, Ints
from storage.batch.record_batch import CRC_START, HEADER_BYTES, LOG_OVERHEAD

OFFSETS_OF_A_SEGMENT: Final = 1 << 31
"""An index has offsets relative to that of the segment, in 32 bits."""

OffsetBounds = tuple[int, int]
"""The first offset that a batch of these bytes may have, and one above the last."""

ANY_OFFSET: Final[OffsetBounds] = (0, (1 << 63) - 1)

_MAGIC_AT: Final = 16
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD
_PREFIX: Final = Struct(">qi4xbI")  # base offset, length, magic, crc


def next_batch(chunk: bytes, begin: int, end: int, offsets: OffsetBounds) -> int | None:
    """The first position in [begin, end) at which a whole and sound batch begins."""
    octets = np.frombuffer(chunk, np.uint8)
    magic = octets[begin + _MAGIC_AT : end + _MAGIC_AT] == 2
    for position in (np.flatnonzero(magic) + begin).tolist():
        if _is_batch(chunk, position, offsets):
            return int(position)
    return None


def _is_batch(chunk: bytes, position: int, offsets: OffsetBounds) -> bool:
    if position + HEADER_BYTES > len(chunk):
        return False
    base_offset, length, magic, crc = _PREFIX.unpack_from(chunk, position)
    after = position + length + LOG_OVERHEAD
    if magic != 2 or length < _LENGTH_MIN or after > len(chunk):
        return False
    if not offsets[0] <= base_offset < offsets[1] or not _may_begin(chunk, after):
        return False
    return bool(google_crc32c.value(chunk[position + CRC_START : after]) == crc)


def _may_begin(chunk: bytes, position: int) -> bool:
    """Whether a batch may begin here, or the log may end, as far as the chunk shows."""
    if position + _PREFIX.size > len(chunk):
        return True
    _, length, magic, _ = _PREFIX.unpack_from(chunk, position)
    return (magic == 2 and length >= _LENGTH_MIN) or not any(chunk[position:])


def in_rising_order(bases: Ints, lasts: Ints, offsets: OffsetBounds) -> Flags:
    """Which of the batches have base offsets that fit the others: the most that rise together."""
    low, high = offsets
    fits: Flags = (bases >= low) & (lasts < high) & (lasts >= bases)
    sure = np.flatnonzero(fits)
    if (bases[sure][1:] > lasts[sure][:-1]).all():
        return fits
    # The longest rising chain: of its ends by length, the smallest last offset of each.
    ends: list[int] = []
    at_end: list[int] = []
    before = np.full(len(bases), -1, np.int64)
    for index in sure.tolist():
        length = bisect_left(ends, int(bases[index]))
        before[index] = at_end[length - 1] if length else -1
        if length == len(ends):
            ends.append(int(lasts[index]))
            at_end.append(index)
        elif int(lasts[index]) < ends[length]:
            ends[length], at_end[length] = int(lasts[index]), index
    rising = np.zeros(len(bases), np.bool_)
    index = at_end[-1]
    while index >= 0:
        rising[index] = True
        index = int(before[index])
    return rising
