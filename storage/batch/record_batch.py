"""Record batch v2: reads the bytes of a batch, and encodes a coordinator's records as one.

Kafka's record batch v2 (magic 2), the one format on disk and on the wire. Pure: bytes to bytes, no
I/O and no clock. `storage/journal/journaled_log.py` encodes what a shard appends; `topics/` checks
what a producer sent; `segment.py` walks batches by their headers and never reads the records.

A header is a NamedTuple made directly from one `Struct.unpack_from`, and encoding makes no object
for a record: both are on the path of an offset commit. Batches are read at their `position` in a
buffer, and copied only where a checksum or a decompressor needs bytes of its own.

The two older formats (message sets, magic 0 and 1) are refused by name: Kafka 4 neither takes them
from clients nor keeps them. Kafka's counterpart: DefaultRecordBatch, DefaultRecord, MemoryRecords.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import google_crc32c

from storage.api import RecordPair, StoredRecord
from storage.batch.compiled_batch import ENCODE_BATCH_IN_C
from storage.batch.compression import NONE, decompress

HEADER_BYTES = 61
LOG_OVERHEAD = 12  # base offset and length: what comes before the bytes that the length counts
CRC_START = 21  # the checksum covers everything from the attributes on

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1  # or any smaller number
NO_PRODUCER_EPOCH = -1
COORDINATOR_SEQUENCE = 0  # what Kafka's coordinators write, though without a producer id it is idle

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

Headers = tuple[tuple[bytes, bytes | None], ...]
"""A record's headers; keys as the bytes that they are (UTF-8 by convention, not by check)."""

RecordFields = tuple[int, int, bytes | None, bytes | None, Headers]
"""(offset, timestamp ms, key, value, headers): a plain tuple, as loads read millions."""

BATCH_HEADER = Struct(">qiibIhiqqqhii")
"""The 61 bytes before the records, as BatchHeader names them."""

BATCH_PREFIX = Struct(">qiibI")  # base offset, length, leader epoch, magic, crc
CRC_COVERED = Struct(">hiqqqhii")  # what the checksum covers before the records

_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_EXTENT = Struct(">qiib")
_PLACING = Struct(">q15xi8xq")
_COUNT = Struct(">i")

_NULL_LENGTH = 1  # -1, zig-zag

_crc32c = google_crc32c.value


class InvalidBatch(Exception):
    """These bytes are no usable v2 batch; `position` is where in the buffer the batch begins."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"record batch at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class TruncatedBatch(InvalidBatch):
    """The buffer ends before the batch does."""


class OldFormat(InvalidBatch):
    """A message set of magic 0 or 1 (UNSUPPORTED_FOR_MESSAGE_FORMAT), or a magic yet unknown."""


class BadChecksum(InvalidBatch):
    """The CRC-32C does not match (CORRUPT_MESSAGE)."""


class BadRecords(InvalidBatch):
    """The header is sound but the records are not what it says (INVALID_RECORD)."""


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, in their order on the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, this header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0


# --- reading -----------------------------------------------------------------------------------


def read_header(buffer: bytes, position: int = 0) -> BatchHeader:
    """Parse the header at `position`; the whole batch must be in the buffer."""
    remaining = len(buffer) - position
    if remaining >= HEADER_BYTES:
        header = BatchHeader._make(BATCH_HEADER.unpack_from(buffer, position))
        if (
            header.magic == 2
            and HEADER_BYTES <= header.batch_length + LOG_OVERHEAD <= remaining
            and header.last_offset_delta >= 0
            and header.records_count >= 0
        ):
            return header
    raise _header_fault(buffer, position)


def _header_fault(buffer: bytes, position: int) -> InvalidBatch:
    """Say why there is no v2 batch at `position`; apart, to keep `read_header` short."""
    remaining = len(buffer) - position
    if remaining < _EXTENT.size:
        return TruncatedBatch(position, f"{remaining} bytes are too few for a header")
    _, batch_length, _, magic = _EXTENT.unpack_from(buffer, position)
    if magic != 2:
        # The magic byte has been at offset 16 since the first format, so this is safe to name.
        return OldFormat(position, f"magic {magic}, only magic 2 is supported")
    size = batch_length + LOG_OVERHEAD
    if size < HEADER_BYTES:
        return InvalidBatch(position, f"length {batch_length} is below the header's own")
    if remaining < size:
        return TruncatedBatch(position, f"{size} bytes long, {remaining} are there")
    return InvalidBatch(position, "negative record count or last offset delta")


def peek_header(buffer: bytes, position: int) -> BatchHeader:
    """Parse a header whose records need not be in the buffer: for walking a file by its headers."""
    if len(buffer) - position >= HEADER_BYTES:
        header = BatchHeader._make(BATCH_HEADER.unpack_from(buffer, position))
        if (
            header.magic == 2
            and header.batch_length + LOG_OVERHEAD >= HEADER_BYTES
            and header.last_offset_delta >= 0
        ):
            return header
    raise _header_fault(buffer, position)


def batch_offsets(batch: bytes) -> tuple[int, int, int]:
    """(base offset, last offset, greatest timestamp) of a batch that is known to be sound."""
    if len(batch) < HEADER_BYTES:
        raise TruncatedBatch(0, f"{len(batch)} bytes are too few for a header")
    base_offset, last_offset_delta, max_timestamp = _PLACING.unpack_from(batch)
    return base_offset, base_offset + last_offset_delta, max_timestamp


def records_count(batch: bytes) -> int:
    """How many records a batch that is known to be sound says it has."""
    count: int = _COUNT.unpack_from(batch, HEADER_BYTES - _COUNT.size)[0]
    return count


def iter_batches(buffer: bytes, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch of back-to-back batches, as (position, header); raises where one is not whole."""
    end = len(buffer)
    while position < end:
        header = read_header(buffer, position)
        yield position, header
        position += header.batch_length + LOG_OVERHEAD


def computed_crc(buffer: bytes, position: int, size: int) -> int:
    crc: int = _crc32c(bytes(buffer[position + CRC_START : position + size]))
    return crc


def check_crc(buffer: bytes, position: int = 0, header: BatchHeader | None = None) -> BatchHeader:
    """The header of the batch at `position`, whose checksum holds; raises BadChecksum otherwise.

    A caller that has parsed the header passes it, here and to `read_records`.
    """
    header = header or read_header(buffer, position)
    crc = computed_crc(buffer, position, header.size)
    if crc != header.crc:
        raise BadChecksum(position, f"stored crc {header.crc}, computed crc {crc}")
    return header


def read_records(
    batch: bytes, position: int = 0, header: BatchHeader | None = None
) -> list[RecordFields]:
    """Every record of one batch, decompressed; BadRecords if they are not what the header says."""
    header = header or read_header(batch, position)
    if not header.records_count and header.size == HEADER_BYTES:
        return []  # the log cleaner has emptied it
    if header.compression == NONE:
        return _read_fields(bytes(batch), position + HEADER_BYTES, position, header)
    blob = bytes(batch[position + HEADER_BYTES : position + header.size])
    try:
        blob = decompress(blob, header.compression)
    except ValueError as fault:
        raise BadRecords(position, str(fault)) from None
    return _read_fields(blob, 0, position, header)


def stored_records(batch: bytes) -> list[StoredRecord]:
    """The records of a batch for the load of a shard; a control batch has none."""
    if read_header(batch).is_control:
        return []
    return [StoredRecord(*fields[:4]) for fields in read_records(batch)]


def read_keys(batch: bytes, count: int) -> list[bytes] | None:
    """The keys of a plain batch of so many records, if each has a key and a value; else None.

    Plain: not compressed, of no transaction, no control batch. A fraction of `read_records`, for
    callers that mostly need the keys alone. None for lengths of 8 KiB and more too.
    """
    keys: list[bytes] = []
    after = HEADER_BYTES
    try:
        for _ in range(count):
            length, at = batch[after], after + 1
            if length >= 0x80:
                length = length & 0x7F | batch[at] << 7
                at += 1
            after = at + (length >> 1)
            at += 1  # the attributes of a record
            while batch[at] >= 0x80:  # the timestamp's delta
                at += 1
            at += 1
            while batch[at] >= 0x80:  # the offset's
                at += 1
            size = batch[at + 1]
            at += 2
            if size >= 0x80:
                size = size & 0x7F | batch[at] << 7
                at += 1
            end = at + (size >> 1)
            if (length | size) >= 0x4000 or (length | size) & 1 or batch[end] == _NULL_LENGTH:
                return None
            keys.append(batch[at:end])
    except IndexError:
        return None  # `read_records` reports what is wrong
    return keys


def read_sole_key(batch: bytes) -> bytes | None:
    """The same of a plain batch of one record, most of what a coordinator writes; or None.

    Its key follows a length, three zeros and the key's own length.
    """
    try:
        at = 62 if batch[61] < 0x80 else 63
        if not batch.startswith(b"\0\0\0", at):
            return None
        size = batch[at + 3]
        at += 4
        if size >= 0x80:
            size = size & 0x7F | batch[at] << 7
            at += 1
        end = at + (size >> 1)
        if size & 1 or size >= 0x4000 or batch[end] & 1:
            return None
    except IndexError:
        return None
    return batch[at:end]


def _read_fields(
    blob: bytes, start: int, batch_position: int, header: BatchHeader
) -> list[RecordFields]:
    end = len(blob) if header.compression else batch_position + header.size
    try:
        records, position = _walk(blob, start, end, header)
    except IndexError:
        raise BadRecords(batch_position, "a record runs past the end of its batch") from None
    except ValueError as fault:
        raise BadRecords(batch_position, str(fault)) from None
    if position != end:
        raise BadRecords(
            batch_position, f"{end - position} bytes left after {header.records_count} records"
        )
    return records


def _walk(
    blob: bytes, position: int, end: int, header: BatchHeader
) -> tuple[list[RecordFields], int]:
    """Read `records_count` records; varints of one byte, which are most, without a call."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.log_append_time else None
    records: list[RecordFields] = []
    for _ in range(header.records_count):
        length, position = read_varint(blob, position)
        record_end = position + length
        if length < 0 or record_end > end:
            raise ValueError(f"a record claims {length} bytes, {end - position} are left")
        position += 1  # the attributes of a record: unused, Kafka ignores them
        byte = blob[position]
        if byte < 0x80:
            delta, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            delta, position = read_varint(blob, position)
        timestamp = base_timestamp + delta if append_time is None else append_time
        byte = blob[position]
        if byte < 0x80:
            delta, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            delta, position = read_varint(blob, position)
        key, position = _read_bytes(blob, position, record_end)
        value, position = _read_bytes(blob, position, record_end)
        if blob[position]:
            headers, position = _read_headers(blob, position, record_end)
        else:
            headers, position = (), position + 1
        if position != record_end:
            raise ValueError(f"a record of {length} bytes ends {record_end - position} bytes early")
        records.append((base_offset + delta, timestamp, key, value, headers))
    return records, position


def read_varint(blob: bytes | bytearray, position: int) -> tuple[int, int]:
    """A zig-zag varint or varlong and the position after it."""
    byte = blob[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    number = byte & 0x7F
    shift = 7
    while True:
        byte = blob[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a varint of more than ten bytes")


def _read_bytes(blob: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    byte = blob[position]
    if byte < 0x80:
        length, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        length, position = read_varint(blob, position)
    if length < 0:
        if length != -1:
            raise ValueError(f"a length of {length}")
        return None, position
    after = position + length
    if after > end:
        raise ValueError(f"{length} bytes are claimed, the record has {end - position} left")
    return blob[position:after], after


def _read_headers(blob: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(blob, position)
    if not 0 <= count <= end - position:
        raise ValueError(f"{count} headers in {end - position} bytes")
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        key, position = _read_bytes(blob, position, end)
        if key is None:
            raise ValueError("a header without a key")
        value, position = _read_bytes(blob, position, end)
        headers.append((key, value))
    return tuple(headers), position


# --- writing -----------------------------------------------------------------------------------


def encode_varint(number: int) -> bytes:
    """A zig-zag varint (or varlong: the bytes are the same)."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_DELTAS_KEPT = 1_024
_DELTAS = [encode_varint(number) for number in range(_DELTAS_KEPT)]
_FRAMES_CACHED = 4_096


@lru_cache(maxsize=_FRAMES_CACHED)
def _frame(delta_bytes: int, key_bytes: int, value_bytes: int) -> tuple[bytes, bytes, bytes]:
    """The bytes before a record's offset delta, before its key, and before its value.

    For these lengths; a null value has length -1.
    """
    key_length, value_length = encode_varint(key_bytes), encode_varint(value_bytes)
    # Attributes and the timestamp's delta, two zeros, come first; a third one, no headers, is last.
    size = 3 + delta_bytes + len(key_length) + key_bytes + len(value_length) + max(value_bytes, 0)
    return encode_varint(size) + b"\x00\x00", key_length, value_length


def encode_batch(
    records: Sequence[RecordPair],
    base_offset: int,
    timestamp_ms: int,
    leader_epoch: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = COORDINATOR_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """One uncompressed batch of keyed records that share a timestamp, as a coordinator writes them.

    `attributes` may carry TRANSACTIONAL and CONTROL. There must be at least one record.
    """
    if ENCODE_BATCH_IN_C is not None:
        try:
            encoded: bytes | None = ENCODE_BATCH_IN_C(
                records, base_offset, timestamp_ms, leader_epoch,
                producer_id, producer_epoch, base_sequence, attributes,
            )  # fmt: skip
        except OverflowError:
            encoded = None
        if encoded is not None:
            return encoded
    return encode_batch_in_python(
        records, base_offset, timestamp_ms, leader_epoch,
        producer_id, producer_epoch, base_sequence, attributes,
    )  # fmt: skip


def encode_batch_in_python(
    records: Sequence[RecordPair],
    base_offset: int,
    timestamp_ms: int,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    attributes: int,
) -> bytes:
    """The oracle of the encoder in C, and the only encoder of a build without it."""
    count = len(records)
    assert count, "a batch needs a record"
    covered = CRC_COVERED.pack(
        attributes, count - 1, timestamp_ms, timestamp_ms,
        producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    if count == 1:  # most commits
        key, value = records[0]
        front, key_length, value_length = _frame(1, len(key), -1 if value is None else len(value))
        covered = b"".join(
            (covered, front, b"\x00", key_length, key, value_length, value or b"", b"\x00")
        )
    else:
        covered = b"".join([covered, *_framed(records)])
    length = len(covered) + CRC_START - LOG_OVERHEAD
    return BATCH_PREFIX.pack(base_offset, length, leader_epoch, 2, _crc32c(covered)) + covered


def _framed(records: Sequence[RecordPair]) -> list[bytes]:
    """Each record's bytes."""
    join = b"".join
    framed: list[bytes] = []
    delta_bytes, longer_at = 1, 64
    key_bytes = value_bytes = -1
    front = key_length = value_length = b""
    for number, (key, value) in enumerate(records):
        if number == longer_at:
            delta_bytes, longer_at, key_bytes = delta_bytes + 1, longer_at << 7, -1
        if len(key) != key_bytes or value is None or len(value) != value_bytes:
            # Most records of a batch are as long as the one before.
            key_bytes, value_bytes = len(key), -1 if value is None else len(value)
            front, key_length, value_length = _frame(delta_bytes, key_bytes, value_bytes)
        delta = _DELTAS[number] if number < _DELTAS_KEPT else encode_varint(number)
        framed.append(join((front, delta, key_length, key, value_length, value or b"", b"\x00")))
    return framed


def with_offsets(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The same batch at another offset; the checksum covers neither field."""
    return b"".join(
        (_BASE_OFFSET.pack(base_offset), batch[8:12], _LEADER_EPOCH.pack(leader_epoch), batch[16:])
    )
