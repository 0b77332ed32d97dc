"""Offset map: the newest offset of each key, built by the log cleaner before it copies.

Reads the dirty part of a log once, checks every batch's checksum, and notes for each key the last
offset it was written at. Memory is bounded by `map_bytes`: a full map ends with the batches that
were read by then, and the pass cleans only up to there, as Kafka's does. Ours keeps the keys
themselves where Kafka keeps their MD5: two keys never collide, and an entry costs ENTRY_BYTES and
its key instead of 24 bytes.

Records that no reader may see do not count: those of aborted transactions, and control records.
Kafka's counterparts: Cleaner.buildOffsetMap, SkimpyOffsetMap.
"""

from collections.abc import Iterable
from typing import Final

import google_crc32c
from msgspec import Struct, field

from storage.batch.chunks import (
    READ_CHUNK_BYTES,
    SegmentSource,
    Throttle,
    read_segment_chunks,
)
from storage.batch.record_batch import (
    BATCH_HEADER,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_START,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    BadChecksum,
    BadRecords,
    BatchHeader,
    InvalidBatch,
    read_header,
)
from storage.batch.record_spans import records_of, spans_in
from storage.disk import Disk
from storage.log.transaction_ends import CleanedTransactions, TransactionsFound

ENTRY_BYTES: Final = 220
"""What CPython takes for an entry besides the key's bytes: a dict's slot, a bytes and an int
object, and a slot in the set of newest offsets that is made of the map."""

LOAD_FACTOR: Final = 0.9  # Kafka's log.cleaner.io.buffer.load.factor

_SMALLEST_CHUNK: Final = 4 << 10
_CHUNKS_IN_MAP: Final = 16  # so that what one chunk adds is little against the limit

NOT_PLAIN: Final = COMPRESSION_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG
"""Attributes of a batch that must be looked at more closely."""


class OffsetMap(Struct):
    """key -> last offset, of the records in [start, end)."""

    start: int
    end: int  # everything from here on is kept as it is, and is cleaned another time
    map_bytes: int
    offsets: dict[bytes, int] = field(default_factory=dict)
    used_bytes: int = 0
    bytes_read: int = 0
    records_read: int = 0
    records_without_key: int = 0

    @property
    def utilization(self) -> float:
        return min(self.used_bytes / self.map_bytes, 1.0)


def build_offset_map(
    disk: Disk,
    sources: Iterable[SegmentSource],
    *,
    start: int,
    end: int,
    map_bytes: int,
    transactions: CleanedTransactions | None,
    throttle: Throttle,
) -> OffsetMap:
    """The map over [start, end), or over its first part if it gets full.

    Without `transactions` the first transactional batch raises TransactionsFound. Raises Corrupt
    and OSError as well.
    """
    builder = _Builder(OffsetMap(start, start, map_bytes), transactions)
    chunk_bytes = min(max(map_bytes // _CHUNKS_IN_MAP, _SMALLEST_CHUNK), READ_CHUNK_BYTES)
    for source in sources:
        if source.next_base <= start or source.base_offset >= end:
            continue
        builder.next_offset = source.base_offset
        try:
            read_segment_chunks(disk, source, builder.take, throttle, chunk_bytes)
        except _MapFull:
            break
        # Also past a gap at the segment's end, which an earlier pass has left.
        builder.map.end = min(source.next_base, end)
    return builder.map


class _MapFull(Exception):
    pass


class _Builder:
    def __init__(self, offset_map: OffsetMap, transactions: CleanedTransactions | None) -> None:
        self.map = offset_map
        self.next_offset = 0
        self._transactions = transactions
        self._most_bytes = int(offset_map.map_bytes * LOAD_FACTOR)
        self._keys_seen = 0
        self._key_bytes_seen = 0

    def take(self, chunk: bytes, _position: int) -> int:
        """Note the keys of every whole batch in the chunk; how many bytes those are."""
        try:
            taken = self._take(chunk)
        except IndexError:
            raise BadRecords(0, "a record runs past the end of its batch") from None
        self.map.bytes_read += taken
        entries = len(self.map.offsets)
        mean_key_bytes = self._key_bytes_seen // max(self._keys_seen, 1)
        self.map.used_bytes = entries * (ENTRY_BYTES + mean_key_bytes)
        if self.map.used_bytes >= self._most_bytes:
            self.map.end = max(self.next_offset, self.map.start)
            raise _MapFull
        return taken

    def _take(self, chunk: bytes) -> int:
        offsets, start = self.map.offsets, self.map.start
        unpack, crc32c = BATCH_HEADER.unpack_from, google_crc32c.value
        at, end, last = 0, len(chunk), len(chunk) - HEADER_BYTES
        next_offset = self.next_offset
        keys = key_bytes = records = 0
        while at <= last:
            (base_offset, length, _, magic, crc, attributes, last_delta, _, _, _, _, _, count) = (
                unpack(chunk, at)
            )
            after = at + length + LOG_OVERHEAD
            if magic != 2 or length < HEADER_BYTES - LOG_OVERHEAD or last_delta < 0 or count < 0:
                read_header(chunk, at)  # raises what is wrong
            if after > end:
                break
            if crc32c(chunk[at + CRC_START : after]) != crc:
                raise BadChecksum(at, f"stored crc {crc}, the content has another one")
            if base_offset < next_offset:
                raise InvalidBatch(at, f"offset {base_offset} comes after {next_offset - 1}")
            next_offset = base_offset + last_delta + 1
            records += count
            if count == 1 and not last_delta and not attributes & NOT_PLAIN:
                # Most of what a coordinator writes, and none of the rest may cost it anything: one
                # record, whose key follows a length, three zeros and the key's own length.
                spot = at + (62 if chunk[at + 61] < 0x80 else 63)
                if chunk.startswith(b"\0\0\0", spot):
                    spot += 4
                    size = chunk[spot - 1]
                    if size >= 0x80:
                        size = size & 0x7F | chunk[spot] << 7
                        spot += 1
                    key_end = spot + (size >> 1)
                    if not (size & 1 or size >= 0x4000 or key_end >= after):
                        if base_offset >= start:
                            offsets[chunk[spot:key_end]] = base_offset
                            keys += 1
                            key_bytes += size >> 1
                        at = after
                        continue
            if next_offset > start:
                self._note(BatchHeader._make(unpack(chunk, at)), chunk[at:after], at)
            at = after
        self.next_offset = next_offset
        self._keys_seen += keys
        self._key_bytes_seen += key_bytes
        self.map.records_read += records
        return at

    def _note(self, header: BatchHeader, batch: bytes, position: int) -> None:
        """The keys of a batch of any kind."""
        offsets, start, base = self.map.offsets, self.map.start, header.base_offset
        try:
            if header.attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG) and not self._counts(
                header, batch
            ):
                return
            for span in spans_in(records_of(batch, header), header.records_count):
                if base + span.offset_delta < start:
                    continue
                if span.key is None:
                    self.map.records_without_key += 1
                    continue
                offsets[span.key] = base + span.offset_delta
                self._keys_seen += 1
                self._key_bytes_seen += len(span.key)
        except InvalidBatch as fault:
            raise InvalidBatch(position, fault.reason) from None

    def _counts(self, header: BatchHeader, batch: bytes) -> bool:
        if self._transactions is not None:
            return not self._transactions.may_discard(header, batch) and not header.is_control
        if not header.is_control:
            raise TransactionsFound
        return False
