"""Batch checksums: one CRC-32C over thousands of small batches, and algebra.

A call per batch costs more than everything else for a batch of one record. But a CRC is linear. If
the bytes that no checksum covers are taken as zeros, the CRC of the whole piece is the sum of those
of the batches, each shifted by the bytes after it (multiplied by x^8 as many times, in the field of
two elements, modulo the polynomial). So the checksums stated by the batches give the one that the
piece must have. A single wrong batch always makes a difference. Several can cancel each other out
with a probability of one in 2^32, the same as for a damaged batch with a matching checksum.
"""

from functools import cache
from typing import Final

import google_crc32c
import numpy as np
import numpy.typing as npt

from pipeline.decode.vector_reads import Ints, Octets

Crcs = npt.NDArray[np.uint32]

_POLYNOMIAL: Final = np.uint32(0x82F6_3B78)  # the lowest power is the highest bit
_UNIT: Final = np.uint32(0x8000_0000)
_ALL: Final = 0xFFFF_FFFF
_NEAR_BITS: Final = 11
_NEAR: Final = 1 << _NEAR_BITS
_STEP_BITS: Final = 5
_STEP: Final = 1 << _STEP_BITS


def are_right(covered: Crcs, octets: Octets, after: Ints, uncovered: int) -> bool:
    """Do the parts of the octets have the checksums that they should, `covered`?

    Each part comes after `uncovered` zeros; `after` is how many bytes come after it. They are given
    from the last to the first, whose number is the greatest.
    """
    near, far = _powers()
    group = after >> _NEAR_BITS
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    moved = far[group[begins]]
    within = after & (_NEAR - 1)

    def total(values: Crcs) -> int:
        by_group = np.bitwise_xor.reduceat(values, begins)
        return int(np.bitwise_xor.reduce(_multiply(by_group, moved)))

    # The state of a checksum begins with all ones; for a part that is where the one before it ends
    # and `uncovered` later, for the first at the very beginning.
    whole = _power(len(octets))
    of_stated = total(near[within]) ^ int(_UNIT) ^ whole
    states = total(_moved(~covered, within))
    computed = google_crc32c.value(octets) ^ _ALL ^ _times(whole, _ALL)
    return _times(computed ^ states, _power(uncovered)) == _times(of_stated, _ALL)


@cache
def _powers() -> tuple[Crcs, Crcs]:
    """x^8 to every power below `_NEAR`, and to the multiples of it."""
    near = _geometric(int(_UNIT) >> 8, _NEAR)
    step = _times(int(near[-1]), int(near[1]))
    return near, _geometric(step, 1 << 16)


def _moved(values: Crcs, counts: Ints) -> Crcs:
    """Each by so many bytes, which are fewer than `_NEAR`: in two steps, of eight look-ups all in
    all. To multiply bit by bit takes four times as long."""
    small, large = _tables()
    for table, step in ((small, counts & (_STEP - 1)), (large, counts >> _STEP_BITS)):
        octets = values.astype("<u4").view(np.uint8).reshape(-1, 4)
        row = step * (4 << 8)
        values = table.take(row + octets[:, 0])
        for place in (1, 2, 3):
            values ^= table.take(row + (octets[:, place] + np.int64(place << 8)))
    return values


@cache
def _tables() -> tuple[Crcs, Crcs]:
    """What each octet of a value becomes, by its place in it, moved by 0, 1, 2, ... bytes, and by
    the multiples of `_STEP`."""
    near, _ = _powers()
    octets = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32)[:, None])

    def table(powers: Crcs) -> Crcs:
        shape = (len(powers), 4, 256)
        values, moved = (
            np.broadcast_to(octets, shape),
            np.broadcast_to(powers[:, None, None], shape),
        )
        return _multiply(values.ravel(), moved.ravel())

    return table(near[:_STEP]), table(near[::_STEP])


def _power(count: int) -> int:
    near, far = _powers()
    return _times(int(near[count & (_NEAR - 1)]), int(far[count >> _NEAR_BITS]))


def _geometric(step: int, count: int) -> Crcs:
    powers = np.array([_UNIT], np.uint32)
    while len(powers) < count:
        powers = np.concatenate([powers, _multiply(powers, np.full_like(powers, step))])
        step = _times(step, step)
    return powers


def _multiply(a: Crcs, b: Crcs) -> Crcs:
    """Each of the one by each of the other."""
    product, unit = np.zeros_like(a), np.uint32(1)
    for bit in range(31, -1, -1):
        product ^= b * ((a >> np.uint32(bit)) & unit)
        b = (b >> unit) ^ (_POLYNOMIAL * (b & unit))
    return product


def _times(a: int, b: int) -> int:
    """One by one."""
    product = 0
    for bit in range(31, -1, -1):
        product ^= b * (a >> bit & 1)
        b = b >> 1 ^ int(_POLYNOMIAL) * (b & 1)
    return product
