"""Batch boundaries: where do the batches of a chunk begin, and are they intact?

Only a batch's length says where the next one begins, so a hop goes from one batch to the next and
computes its checksum: some 0.3 us per batch. That is little for a batch of a hundred records, and
more than everything else for a batch of one. So where batches are small, some hundred hops start at
once, each at the first position of its stretch that looks like a batch and leads to another. Each
stretch must end where the next one began, or the rest does not count. One checksum over all of them
verifies theirs (checksums.py). The remaining batches, and the whole chunk if the checksum does not
match, are processed one by one, which finds the damaged position. After damage the next batch is
searched for (resync.py).
"""

from array import array
from struct import Struct
from typing import Final, NamedTuple

import google_crc32c
import numpy as np

from pipeline.decode.checksums import are_right
from pipeline.decode.resync import ANY_OFFSET, OffsetBounds, next_batch
from pipeline.decode.vector_reads import Bytes, Ints
from storage.batch.record_batch import CRC_START, LOG_OVERHEAD

BATCH_HEADER_TYPE: Final = np.dtype(
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
"""A batch's header as stored on disk."""

_MAGIC_AT: Final = 16
_LENGTH_MIN: Final = BATCH_HEADER_TYPE.itemsize - LOG_OVERHEAD
_HOP: Final = Struct(">8xi4xbI")  # length, magic, crc
_UNCOVERED: Final = np.dtype(f"V{CRC_START}")

_PROBE_BYTES: Final = 16 << 10
_SMALL_BYTES: Final = 400
"""Batches of fewer bytes than this, in the mean, are found together."""

_STRETCH_BYTES: Final = 8 << 10
_PROBED_BYTES: Final = 1 << 10  # of a stretch, for a place to begin at
_LEADS: Final = 2  # batches in a row that such a place must lead to
RESYNC_BYTES: Final = 256 << 10
"""Of a chunk in which damage does not end, so much is looked at again with the next one."""

_STEPS_MAX: Final = 1_000
"""Some times what a stretch of the smallest takes: where few begin, one by one is faster."""


class Undecodable(NamedTuple):
    """Bytes that could not be read: where in the chunk, the base offset if known, and why."""

    position: int
    size: int
    base_offset: int
    reason: str


class Hops(NamedTuple):
    """Where the sound batches of a chunk begin; the rest as in `RecordExtents`."""

    positions: Ints
    consumed: int
    damage: list[Undecodable]


def hop(
    chunk: bytes,
    content: Bytes,
    *,
    is_last: bool,
    check_crc: bool,
    offsets: OffsetBounds = ANY_OFFSET,
) -> Hops:
    """`content` is the same chunk. `is_last`: a torn batch at the end is damage."""
    probe, *_ = _hop(chunk[:_PROBE_BYTES], 0, check_crc=False)
    sure = np.zeros(0, np.int64)
    position = 0
    if len(probe) * _SMALL_BYTES > _PROBE_BYTES:
        sure, position = _find_together(content, check_crc=check_crc)
    found = [sure]
    damage: list[Undecodable] = []
    end = consumed = len(chunk)
    while position < end:
        positions, position, fault = _hop(chunk, position, check_crc=check_crc)
        found.append(np.frombuffer(positions, np.int64))
        if fault is None:
            if position == end or not is_last:
                consumed = position
                break
            fault = _Fault(end, "a batch that was not written whole", has_form=False)
        elif fault.after is None and not any(chunk[position:]):
            break  # zeros are the end of an active segment, which may be preallocated
        after = next_batch(chunk, position + 1, fault.after or end, offsets)
        if after is None:
            after = fault.after
        if after is None:
            # Its end is not in this chunk; a batch that begins near the chunk's end may be sound.
            after = consumed = end if is_last else max(position + 1, end - RESYNC_BYTES)
            _add_damage(damage, chunk, position, after, fault)
            break
        _add_damage(damage, chunk, position, after, fault)
        position = after
    return Hops(np.concatenate(found), consumed, damage)


class _Fault(NamedTuple):
    """Why there is no sound batch; `after`: where it ends if its length is right, None: unknown."""

    after: int | None
    reason: str
    has_form: bool = True


def _add_damage(
    damage: list[Undecodable], chunk: bytes, position: int, after: int, fault: _Fault
) -> None:
    """The base offset is known of what has the form of a batch. What has not belongs to the damage
    before it, which hides where the next batch begins."""
    if damage and not fault.has_form and damage[-1].position + damage[-1].size == position:
        damage[-1] = damage[-1]._replace(size=after - damage[-1].position)
        return
    base_offset = -1
    if fault.has_form:
        base_offset = int.from_bytes(chunk[position : position + 8], signed=True)
    damage.append(Undecodable(position, after - position, base_offset, fault.reason))


def _hop(
    chunk: bytes, position: int, *, check_crc: bool
) -> "tuple[array[int], int, _Fault | None]":
    """(where sound batches begin, where this ended, why if not by the end of whole batches)"""
    positions = array("q")
    note, head_at, checksum = positions.append, _HOP.unpack_from, google_crc32c.value
    end = len(chunk)
    last = end - BATCH_HEADER_TYPE.itemsize
    while position <= last:
        length, magic, crc = head_at(chunk, position)
        if magic != 2 or length < _LENGTH_MIN:
            # Without a magic number it is not a batch, and the start of the next one is unknown.
            why = f"not a batch of format 2: magic {magic}, {length + LOG_OVERHEAD} bytes"
            return positions, position, _Fault(None, why, has_form=False)
        after = position + length + LOG_OVERHEAD
        if after > end:
            break
        if check_crc and checksum(chunk[position + CRC_START : after]) != crc:
            return positions, position, _Fault(after, "the checksum does not match")
        note(position)
        position = after
    return positions, position, None


def _find_together(content: Bytes, *, check_crc: bool) -> tuple[Ints, int]:
    """(where batches begin from the chunk's beginning on, where they end), as far as is sure."""
    starts = at = _starts(content)
    bounds = np.append(starts[1:], content.size)
    steps: list[Ints] = []
    while (at < bounds).any() and len(steps) < _STEPS_MAX:
        steps.append(at)
        # Whether it is a batch is checked afterwards; an invalid length leads to the end.
        length = content.int32(at + 8)
        after = np.where(length < _LENGTH_MIN, content.size, at + length + LOG_OVERHEAD)
        at = np.minimum(after, content.size)
    visited = np.array(steps, np.int64).T
    at = visited[visited < bounds[:, None]]
    length = content.int32(at + 8)
    after = at + length + LOG_OVERHEAD
    sound = (content.octets[at + _MAGIC_AT] == 2) & (length >= _LENGTH_MIN)
    sound &= (after <= content.size) & (np.concatenate([[0], after[:-1]]) == at)
    if not sound.all():
        count = int(np.argmin(sound))
        at, after = at[:count], after[:count]
    if len(at) and (not check_crc or _are_right(content, at, after)):
        return at, int(after[-1])
    return at[:0], 0


def _starts(content: Bytes) -> Ints:
    """The beginning, and of each later stretch the first place that looks like a batch."""
    count = content.size // _STRETCH_BYTES
    stretches = np.arange(count) * _STRETCH_BYTES
    probed = content.octets[_MAGIC_AT:][: count * _STRETCH_BYTES]
    probed = probed.reshape(count, _STRETCH_BYTES)[:, :_PROBED_BYTES]
    # Only words that have a magic number in them are looked into: few have.
    is_magic = np.ascontiguousarray(probed == 2).reshape(-1)
    words = np.flatnonzero(is_magic.view(np.uint64))
    found = np.flatnonzero(is_magic.view(np.bool_).reshape(-1, 8)[words])
    place = words[found // 8] * 8 + found % 8
    stretch = place // _PROBED_BYTES
    at = stretches[stretch] + place % _PROBED_BYTES
    possible = np.ones(len(at), np.bool_)
    after = at
    for _ in range(_LEADS):
        length = content.int32(after + 8)
        possible &= (length >= _LENGTH_MIN) & (length < _STRETCH_BYTES)
        after = np.minimum(after + np.where(possible, length, 0) + LOG_OVERHEAD, content.size)
        possible &= content.octets[after + _MAGIC_AT] == 2
    stretch, at = stretch[possible], at[possible]
    first = np.diff(stretch, prepend=0) > 0  # of the first stretch the beginning is known
    return np.concatenate([[0], at[first]])


def _are_right(content: Bytes, at: Ints, after: Ints) -> bool:
    stated = content.structs(at, BATCH_HEADER_TYPE)["crc"].astype(np.uint32)
    end = int(after[-1])
    octets = content.octets[:end]
    uncovered = np.ndarray((end - CRC_START + 1,), _UNCOVERED, octets, 0, (1,))
    said = uncovered[at]
    uncovered[at] = np.zeros((), _UNCOVERED)  # for as long as it takes: a copy costs more
    right = are_right(stated[::-1], octets, (end - after)[::-1], CRC_START)
    uncovered[at] = said
    return right
