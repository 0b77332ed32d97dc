"""Which records does a piece of a segment hold? Batches and their records, found all at once.

Input is a chunk of a `.log` file that begins at a batch. The batches are hopped over one by one
(only a length tells where the next begins), and their checksums are computed one by one; all else
is done for all of them together. Records are found *in lockstep*, step k finding record k of every
batch, since within a batch a record's place is known only from the one before it. Compressed
batches are opened into a second piece of the same buffer.

What cannot be read is never dropped in silence: `Damage` says where and why. A batch with a false
checksum, or with records that do not fit it, is set aside as a whole. Kafka's counterparts:
DefaultRecordBatch, DefaultRecord, and what `kafka-dump-log` checks.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from pipeline.gather import Bytes, Flags, Ints
from storage.compression import decompress

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

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

_LOG_OVERHEAD: Final = 12
_CRC_START: Final = 21
_LENGTH: Final = Struct(">i")

_LOCKSTEP_MIN: Final = 6
"""With fewer batches than this in step, a record costs less in plain Python than in numpy."""

Headers = npt.NDArray[np.void]


class Damage(NamedTuple):
    """Bytes that could not be read: where in the chunk, the base offset if known, and why."""

    position: int
    size: int
    base_offset: int
    reason: str


@dataclass(slots=True)
class Batches:
    """The sound batches of a chunk; one entry of each array for each batch."""

    headers: Headers
    position: Ints  # in the chunk
    begin: Ints  # of the records, in the buffer
    end: Ints

    def __len__(self) -> int:
        return len(self.position)

    def column(self, field: str) -> Ints:
        return self.headers[field].astype(np.int64)

    def where(self, keep: Flags) -> "Batches":
        return Batches(self.headers[keep], self.position[keep], self.begin[keep], self.end[keep])

    def without(self, sound: Flags, reason: str, damage: list[Damage]) -> "Batches":
        """Those that are sound; of the others is noted why not."""
        damage.extend(self.damage(index, reason) for index in np.flatnonzero(~sound).tolist())
        return self.where(sound)

    def damage(self, index: int, reason: str) -> Damage:
        header = self.headers[index]
        size = int(header["length"]) + _LOG_OVERHEAD
        return Damage(int(self.position[index]), size, int(header["base_offset"]), reason)


@dataclass(slots=True)
class Found:
    """All records of a chunk, in the order of the log; every array has one entry for each."""

    content: Bytes
    batches: Batches
    damage: list[Damage]
    consumed: int  # bytes of whole batches; what follows belongs to the next chunk
    is_lost: bool  # where batches begin after this chunk cannot be known
    batch: Ints  # index into `batches`
    offset: Ints
    timestamp_ms: Ints
    key_at: Ints
    key_bytes: Ints  # -1: no key
    value_at: Ints
    value_bytes: Ints  # -1: a tombstone

    def of_batches(self, field: str) -> Ints:
        """A header's field for every record."""
        return self.batches.column(field)[self.batch]


def find_records(chunk: bytes, *, is_last: bool, check_crc: bool = True) -> Found:
    """Everything in the chunk's whole batches. `is_last`: a torn batch at the end is damage."""
    hops = _hop(chunk, is_last=is_last)
    positions, damage = hops.positions, hops.damage
    content = Bytes(chunk)
    batches = _headers(content, positions)
    sound = batches.headers["magic"] == 2
    if not sound.all():
        # What has no magic number is no batch, and the hops after it cannot be trusted either.
        first = int(np.argmin(sound))
        at = int(positions[first])
        reason = f"no batch of format 2: magic {batches.headers['magic'][first]}"
        damage = [Damage(at, len(chunk) - at, int(batches.headers["base_offset"][first]), reason)]
        hops = hops._replace(consumed=len(chunk), is_lost=True)
        batches = batches.where(np.arange(len(batches)) < first)
    if check_crc:
        batches = _check(chunk, batches, damage)
    possible = (batches.headers["count"] >= 0) & (batches.headers["last_offset_delta"] >= 0)
    batches = batches.without(possible, "a negative count of records or offsets", damage)
    content, batches = _open(chunk, content, batches, damage)
    while True:
        found = _read(content, batches, damage, hops)
        if isinstance(found, Found):
            damage.sort()
            return found
        damage.append(batches.damage(found, "its records are not what its header says"))
        batches = batches.where(np.arange(len(batches)) != found)


class _Hops(NamedTuple):
    """Where the batches of a chunk begin; `consumed` and `is_lost` as in `Found`."""

    positions: Ints
    consumed: int
    is_lost: bool
    damage: list[Damage]


def _hop(chunk: bytes, *, is_last: bool) -> _Hops:
    positions: list[int] = []
    note = positions.append
    length_at = _LENGTH.unpack_from
    position, end = 0, len(chunk)
    damage: list[Damage] = []
    is_lost = False
    while position + HEADER.itemsize <= end:
        size = length_at(chunk, position + 8)[0] + _LOG_OVERHEAD
        if size < HEADER.itemsize:
            if any(chunk[position:]):
                damage = [Damage(position, end - position, -1, f"a batch of {size} bytes")]
                is_lost = True
            # Else: an active segment may be preallocated, and zeros are its end.
            position = end
            break
        if position + size > end:
            break
        note(position)
        position += size
    if is_last and position < end:
        damage = [Damage(position, end - position, -1, "a batch that was not written whole")]
        position = end
    return _Hops(np.array(positions, np.int64), position, is_lost, damage)


def _headers(content: Bytes, positions: Ints) -> Batches:
    headers = content.rows(positions, HEADER.itemsize).view(HEADER).reshape(-1)
    sizes = headers["length"].astype(np.int64) + _LOG_OVERHEAD
    return Batches(headers, positions, positions + HEADER.itemsize, positions + sizes)


def _check(chunk: bytes, batches: Batches, damage: list[Damage]) -> Batches:
    value = google_crc32c.value
    computed = [
        value(chunk[begin + _CRC_START : end])
        for begin, end in zip(batches.position.tolist(), batches.end.tolist(), strict=True)
    ]
    right = batches.headers["crc"] == np.array(computed, np.uint32)
    return batches.without(right, "the checksum does not match", damage)


def _open(
    chunk: bytes, content: Bytes, batches: Batches, damage: list[Damage]
) -> tuple[Bytes, Batches]:
    """Decompress what is compressed; the records then lie behind the chunk."""
    codec = batches.column("attributes") & COMPRESSION_MASK
    compressed = np.flatnonzero((codec != 0) & (batches.headers["count"] > 0))
    if not len(compressed):
        return content, batches
    opened = [chunk]
    after = len(chunk)
    readable = np.ones(len(batches), np.bool_)
    for index in compressed.tolist():
        try:
            plain = decompress(chunk[batches.begin[index] : batches.end[index]], int(codec[index]))
        except ValueError as fault:
            damage.append(batches.damage(index, str(fault)))
            readable[index] = False
        else:
            opened.append(plain)
            batches.begin[index], batches.end[index] = after, after + len(plain)
            after += len(plain)
    return Bytes(b"".join(opened)), batches.where(readable)


def _read(content: Bytes, batches: Batches, damage: list[Damage], hops: _Hops) -> Found | int:
    """What each record says; or the index of a batch whose records are not right."""
    counts = batches.column("count")
    starts, sizes, bad = _walk(content, batches, counts)
    if bad is not None:
        return bad
    of = np.repeat(np.arange(len(batches), dtype=np.int64), counts)
    ends = starts + sizes
    wrong: Flags = sizes < 1
    timestamp_delta, at, wrong = _next(content, starts + 1, ends, wrong)  # after the attributes
    offset_delta, at, wrong = _next(content, at, ends, wrong)
    key_bytes, key_at, wrong = _next(content, at, ends, wrong)
    at = key_at + np.maximum(key_bytes, 0)
    value_bytes, value_at, wrong = _next(content, at, ends, wrong)
    at = value_at + np.maximum(value_bytes, 0)
    _, at, wrong = _next(content, at, ends, wrong)  # how many headers; they are not read
    wrong |= (key_bytes < -1) | (value_bytes < -1)
    if wrong.any():
        return int(of[np.argmax(wrong)])
    stamped = batches.column("attributes") & LOG_APPEND_TIME != 0
    timestamp = np.where(
        stamped[of],
        batches.column("max_timestamp")[of],
        batches.column("base_timestamp")[of] + timestamp_delta,
    )
    offset = batches.column("base_offset")[of] + offset_delta
    return Found(
        content, batches, damage, hops.consumed, hops.is_lost, of, offset, timestamp,
        key_at, key_bytes, value_at, value_bytes,
    )  # fmt: skip


def _walk(content: Bytes, batches: Batches, counts: Ints) -> tuple[Ints, Ints, int | None]:
    """(where each record's fields begin, their bytes, None), or the index of a bad batch."""
    claimed = counts > batches.end - batches.begin  # before anything is reserved for them
    if claimed.any():
        return counts, counts, int(np.argmax(claimed))
    total = int(counts.sum())
    starts, sizes = np.zeros(total, np.int64), np.zeros(total, np.int64)
    order = np.argsort(-counts, kind="stable")
    first = (np.cumsum(counts) - counts)[order]
    at, ends, counts = batches.begin[order], batches.end[order], counts[order]
    active = int(np.count_nonzero(counts))
    step = 0
    while active >= _LOCKSTEP_MIN:
        length, width = content.varint(at[:active])
        begin = at[:active] + width
        after = begin + length
        wrong = (width == 0) | (length < 0) | (after > ends[:active])
        if wrong.any():
            return starts, sizes, int(order[np.argmax(wrong)])
        slots = first[:active] + step
        starts[slots], sizes[slots] = begin, length
        at[:active] = after
        step += 1
        active = int(np.searchsorted(-counts[:active], -step))
    for row in range(active):
        position = int(at[row])
        for slot in range(int(first[row]) + step, int(first[row] + counts[row])):
            size, took = content.one_varint(position)
            starts[slot], sizes[slot] = position + took, size
            position += took + size
            if took == 0 or size < 0 or position > ends[row]:
                return starts, sizes, int(order[row])
        at[row] = position
    unread = at != ends
    return starts, sizes, int(order[np.argmax(unread)]) if unread.any() else None


def _next(content: Bytes, at: Ints, ends: Ints, wrong: Flags) -> tuple[Ints, Ints, Flags]:
    """The varint at each place, the place after it, and who is wrong by now."""
    wrong = wrong | (at >= ends)
    number, width = content.varint(np.where(wrong, 0, at))
    after = at + width
    return number, after, wrong | (width == 0) | (after > ends)
