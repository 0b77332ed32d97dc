"""Where do the batches of a chunk begin, and are they as they were written?

Only a batch's length tells where the next one begins, so they are hopped over one by one, and their
checksums are computed on the way: some 0.3 us for each batch, which is little for a batch of a
hundred records and more than all the rest for a batch of one. So where batches are small, all bytes
that may be the magic number of one are looked at together. What no other leads to is thrown out,
until only those are left that can be reached from the first; and one checksum over all of them
tells whether theirs are right (checksums.py). If not, they are hopped over after all, which names
the place.
"""

from array import array
from struct import Struct
from typing import Final, NamedTuple

import google_crc32c
import numpy as np

from pipeline.checksums import are_right
from pipeline.gather import Bytes, Flags, Ints
from storage.record_batch import CRC_START, LOG_OVERHEAD

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
"""A batch's header as it lies on the disk."""

_MAGIC_AT: Final = 16
_LENGTH_MIN: Final = HEADER.itemsize - LOG_OVERHEAD
_HOP: Final = Struct(">8xi4xbI")  # length, magic, crc
_UNCOVERED: Final = np.dtype(f"V{CRC_START}")

_PROBE_BYTES: Final = 16 << 10
_SMALL_BYTES: Final = 400
"""Batches of fewer bytes than this, in the mean, are found together."""


class Damage(NamedTuple):
    """Bytes that could not be read: where in the chunk, the base offset if known, and why."""

    position: int
    size: int
    base_offset: int
    reason: str


class Hops(NamedTuple):
    """Where the sound batches of a chunk begin; the rest as in `Found`."""

    positions: Ints
    consumed: int
    is_lost: bool
    damage: list[Damage]


def hop(chunk: bytes, content: Bytes, *, is_last: bool, check_crc: bool) -> Hops:
    """`content` is the same chunk. `is_last`: a torn batch at the end is damage."""
    probe, *_ = _hop(chunk[:_PROBE_BYTES], 0, check_crc=False)
    sure = np.zeros(0, np.int64)
    begin = 0
    if len(probe) * _SMALL_BYTES > _PROBE_BYTES:
        sure, begin = _leap(content, check_crc=check_crc)
    found, damage, position, why_lost = _hop(chunk, begin, check_crc=check_crc)
    end = len(chunk)
    # Zeros are the end of an active segment, which may be preallocated.
    is_lost = why_lost is not None and any(chunk[position:])
    if why_lost is not None and is_lost:
        damage.append(Damage(position, end - position, -1, why_lost))
    elif why_lost is None and is_last and position < end:
        damage.append(Damage(position, end - position, -1, "a batch that was not written whole"))
    positions = np.concatenate([sure, np.frombuffer(found, np.int64)])
    consumed = end if is_last or why_lost is not None else position
    return Hops(positions, consumed, is_lost, damage)


def _hop(
    chunk: bytes, position: int, *, check_crc: bool
) -> "tuple[array[int], list[Damage], int, str | None]":
    """(where sound batches begin, which are not sound, where this ended, why if by no batch)"""
    positions = array("q")
    damage: list[Damage] = []
    note, head_at, checksum = positions.append, _HOP.unpack_from, google_crc32c.value
    end = len(chunk)
    last = end - HEADER.itemsize
    while position <= last:
        length, magic, crc = head_at(chunk, position)
        if magic != 2 or length < _LENGTH_MIN:
            # What has no magic number is no batch, and nothing tells where the next one begins.
            why = f"no batch of format 2: magic {magic}, {length + LOG_OVERHEAD} bytes"
            return positions, damage, position, why
        after = position + length + LOG_OVERHEAD
        if after > end:
            break
        if check_crc and checksum(chunk[position + CRC_START : after]) != crc:
            base_offset = int.from_bytes(chunk[position : position + 8], signed=True)
            reason = "the checksum does not match"
            damage.append(Damage(position, after - position, base_offset, reason))
        else:
            note(position)
        position = after
    return positions, damage, position, None


def _leap(content: Bytes, *, check_crc: bool) -> tuple[Ints, int]:
    """(where batches begin from the chunk's beginning on, where they end), if all are sound."""
    end = content.size
    last = end - HEADER.itemsize
    at = _set(content.octets[_MAGIC_AT : last + 1 + _MAGIC_AT] == 2)
    after = at + content.int32(at + 8) + LOG_OVERHEAD
    possible = (after >= at + HEADER.itemsize) & (after <= end)
    leads_to = np.zeros(end + 1, np.bool_)
    while not possible.all():
        at, after = at[possible], after[possible]
        leads_to[:] = False
        leads_to[0] = True
        leads_to[after] = True
        possible = leads_to[at]
    # Each of them is where the one before it ends, back to the first.
    if len(at) and (not check_crc or _are_right(content, at, after)):
        return at, int(after[-1])
    return at[:0], 0


def _set(flags: Flags) -> Ints:
    """Where they are set, which is nearly nowhere: only words that have one are looked into."""
    width = 8
    short = len(flags) % width
    words = flags[: len(flags) - short].view(np.uint64)
    some = np.flatnonzero(words != 0)
    found = np.flatnonzero(words[some].view(np.bool_))
    behind = np.flatnonzero(flags[len(flags) - short :]) + len(flags) - short
    return np.concatenate([some[found // width] * width + found % width, behind])


def _are_right(content: Bytes, at: Ints, after: Ints) -> bool:
    stated = content.structs(at, HEADER)["crc"].astype(np.uint32)
    end = int(after[-1])
    octets = content.octets[:end].copy()
    uncovered = np.ndarray((end - CRC_START + 1,), _UNCOVERED, octets, 0, (1,))
    uncovered[at] = np.zeros((), _UNCOVERED)
    return are_right(stated[::-1], octets.tobytes(), (end - after)[::-1], CRC_START)
