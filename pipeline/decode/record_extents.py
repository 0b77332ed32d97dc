"""Record extents: finds all records of a piece of a segment at once.

Input is a chunk of a `.log` file that begins at a batch. First its batches are found and their
checksums verified (batch_boundaries.py), then all records of all batches together (lockstep.py).
Compressed batches are decompressed into a second part of the same buffer, limited by the memory to
use.

Unreadable data is never dropped silently: `Undecodable` says where it is, and why. A batch with a
wrong checksum, or with records that do not fit it, is set aside as a whole. Kafka's counterparts:
DefaultRecordBatch, DefaultRecord, and what `kafka-dump-log` checks.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from pipeline.decode.batch_boundaries import BATCH_HEADER_TYPE, Hops, Undecodable, hop
from pipeline.decode.decompression import open_each
from pipeline.decode.lockstep import read_fields, walk_records
from pipeline.decode.resync import ANY_OFFSET, OffsetBounds, in_rising_order
from pipeline.decode.vector_reads import Bytes, Flags, Ints, Structs
from storage.batch.record_batch import COMPRESSION_MASK, LOG_APPEND_TIME, LOG_OVERHEAD

OPENED_BYTES: Final = 6 << 20
"""Of compressed batches: what is not opened any more belongs to the next chunk. One may be more."""


class Batches(Struct, frozen=True):
    """The sound batches of a chunk; one entry of each array for each batch."""

    headers: Structs
    position: Ints  # in the chunk
    begin: Ints  # of the records, in the buffer
    end: Ints

    def __len__(self) -> int:
        return len(self.position)

    def column(self, field: str) -> Ints:
        return self.headers[field].astype(np.int64)

    def where(self, keep: Flags) -> "Batches":
        return Batches(self.headers[keep], self.position[keep], self.begin[keep], self.end[keep])

    def without(self, sound: Flags, reason: str, damage: list[Undecodable]) -> "Batches":
        """Those that are sound; of the others is noted why not."""
        if sound.all():
            return self
        damage.extend(self.damage(index, reason) for index in np.flatnonzero(~sound).tolist())
        return self.where(sound)

    def damage(self, index: int, reason: str) -> Undecodable:
        header = self.headers[index]
        size = int(header["length"]) + LOG_OVERHEAD
        return Undecodable(int(self.position[index]), size, int(header["base_offset"]), reason)


class BatchExtents(Struct, frozen=True):
    """The sound batches of a chunk, decompressed; their records were not looked at."""

    content: Bytes
    batches: Batches
    hops: Hops

    @property
    def consumed(self) -> int:
        """Bytes of whole batches; what follows belongs to the next chunk."""
        return self.hops.consumed


class RecordExtents(Struct, frozen=True):
    """All records of a chunk, in the order of the log; every array has one entry for each."""

    content: Bytes
    batches: Batches
    damage: list[Undecodable]
    consumed: int  # bytes of whole batches; what follows belongs to the next chunk
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


def find_records(
    chunk: bytes,
    *,
    is_last: bool,
    check_crc: bool = True,
    offsets: OffsetBounds = ANY_OFFSET,
) -> RecordExtents:
    """Everything in the chunk's whole batches; as `find_batches` and `records_in`."""
    return records_in(find_batches(chunk, is_last=is_last, check_crc=check_crc, offsets=offsets))


def find_batches(
    chunk: bytes,
    *,
    is_last: bool,
    check_crc: bool = True,
    offsets: OffsetBounds = ANY_OFFSET,
) -> BatchExtents:
    """The whole batches of a chunk. `is_last`: a torn batch at the end is damage. `offsets`: that
    batches may have here."""
    content = Bytes(chunk)
    hops = hop(chunk, content, is_last=is_last, check_crc=check_crc, offsets=offsets)
    damage = hops.damage
    batches = _headers(content, hops.positions)
    possible = (batches.headers["count"] >= 0) & (batches.headers["last_offset_delta"] >= 0)
    batches = batches.without(possible, "a negative count of records or offsets", damage)
    batches = _rising(batches, offsets, damage)
    return BatchExtents(*_open(chunk, content, batches, hops))


def records_in(found: BatchExtents) -> RecordExtents:
    """Everything in these batches."""
    batches, damage = found.batches, found.hops.damage
    while True:
        read = _read(found.content, batches, found.hops)
        if isinstance(read, RecordExtents):
            damage.sort()
            return read
        batches = batches.without(read, "its records are not what its header says", damage)


def _rising(batches: Batches, offsets: OffsetBounds, damage: list[Undecodable]) -> Batches:
    """Those whose base offset fits the others. No checksum covers it; of a wrong one is noted where
    the batch would be."""
    bases = batches.column("base_offset")
    lasts = bases + batches.column("last_offset_delta")
    rising = in_rising_order(bases, lasts, offsets)
    if rising.all():
        return batches
    for index in np.flatnonzero(~rising).tolist():
        earlier = lasts[:index][rising[:index]]
        expected = int(earlier[-1]) + 1 if len(earlier) else offsets[0]
        reason = f"its base offset, {bases[index]}, is out of order: {expected} or more is expected"
        damage.append(batches.damage(index, reason)._replace(base_offset=expected))
    return batches.where(rising)


def _headers(content: Bytes, positions: Ints) -> Batches:
    headers = content.structs(positions, BATCH_HEADER_TYPE)
    sizes = headers["length"].astype(np.int64) + LOG_OVERHEAD
    return Batches(headers, positions, positions + BATCH_HEADER_TYPE.itemsize, positions + sizes)


def _open(
    chunk: bytes, content: Bytes, batches: Batches, hops: Hops
) -> tuple[Bytes, Batches, Hops]:
    """Decompress what is compressed; the records are then after the chunk."""
    codec = batches.column("attributes") & COMPRESSION_MASK
    compressed = np.flatnonzero((codec != 0) & (batches.headers["count"] > 0))
    if not len(compressed):
        return content, batches, hops
    opened = [chunk]
    after = len(chunk)
    keep = np.ones(len(batches), np.bool_)
    extents = zip(batches.begin[compressed], batches.end[compressed], strict=True)
    contents = (chunk[begin:end] for begin, end in extents)
    opening = open_each(zip(contents, codec[compressed].tolist(), strict=True))
    for index in compressed.tolist():
        if after >= len(chunk) + OPENED_BYTES:
            keep[index:] = False
            hops = _cut(hops, int(batches.position[index]))
            break
        plain = next(opening)
        if isinstance(plain, ValueError):
            hops.damage.append(batches.damage(index, str(plain)))
            keep[index] = False
        else:
            opened.append(plain)
            batches.begin[index], batches.end[index] = after, after + len(plain)
            after += len(plain)
    return Bytes(b"".join(opened)), batches.where(keep), hops


def _cut(hops: Hops, position: int) -> Hops:
    """As if the chunk ended here; the damage is the same list."""
    hops.damage[:] = [damage for damage in hops.damage if damage.position < position]
    return hops._replace(consumed=position)


def _read(content: Bytes, batches: Batches, hops: Hops) -> RecordExtents | Flags:
    """What each record says; or which of the batches are sound, if not all are."""
    extents = walk_records(content, batches.begin, batches.end, batches.column("count"))
    if not extents.sound.all():
        return extents.sound
    of = extents.batch
    fields, wrong = read_fields(content, extents.start, extents.end)
    if len(wrong):
        sound = np.ones(len(batches), np.bool_)
        sound[of[wrong]] = False
        return sound
    timestamp = batches.column("base_timestamp")[of] + fields.timestamp_delta
    stamped = batches.column("attributes") & LOG_APPEND_TIME != 0
    if stamped.any():
        rows = np.flatnonzero(stamped[of])
        timestamp[rows] = batches.column("max_timestamp")[of[rows]]
    offset = batches.column("base_offset")[of] + fields.offset_delta
    return RecordExtents(
        content, batches, hops.damage, hops.consumed, of, offset, timestamp,
        fields.key_at, fields.key_bytes, fields.value_at, fields.value_bytes,
    )  # fmt: skip
