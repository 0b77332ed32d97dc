"""Batches as producers send them: built by the client libraries' own record builders.

`batch` is kafka-python's, `sent_by_aiokafka` is aiokafka's. `damaged` changes fields of a header as
no library would, and gives it a checksum that holds, so that the check behind it is reached.
"""

import struct
from typing import Any

import google_crc32c
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record import MemoryRecordsBuilder

from storage.batch.record_batch import BatchHeader, read_header

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BATCH_SIZE = 10_000_000


def batch(
    *values: bytes | None,
    key: bytes | None = b"k",
    timestamp: int = 1_000,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
) -> bytes:
    """One batch of records with these values (one record if none are given)."""
    builder: Any = MemoryRecordsBuilder(
        magic=2,
        compression_type=CODECS[codec],
        batch_size=_BATCH_SIZE,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )
    for value in values or (b"v",):
        builder.append(timestamp=timestamp, key=key, value=value)
    builder.close()
    return bytes(builder.buffer())


def at_times(*timestamps: int) -> bytes:
    """One batch of records with these timestamps."""
    builder: Any = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=_BATCH_SIZE)
    for timestamp in timestamps:
        builder.append(timestamp=timestamp, key=b"k", value=b"v")
    builder.close()
    return bytes(builder.buffer())


def sent_by_aiokafka(*values: bytes, timestamp: int = 1_000, codec: str = "none") -> bytes:
    builder: Any = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, _BATCH_SIZE)
    for offset, value in enumerate(values):
        assert builder.append(offset, timestamp, b"k", value, [("h", b"1")])
    return bytes(builder.build())


def damaged(sound: bytes, *, crc: int | None = None, **fields: int) -> bytes:
    """The same batch with these header fields, and the checksum that goes with them."""
    header = BatchHeader._make(_HEADER.unpack_from(sound))._replace(**fields)
    changed = _HEADER.pack(*header) + sound[_HEADER.size :]
    if crc is None:
        crc = google_crc32c.value(changed[21:])
    return changed[:17] + struct.pack(">I", crc) + changed[21:]


def values_of(records: bytes) -> list[bytes | None]:
    """What a consumer reads from fetched records, by kafka-python's reader."""
    from kafka.record import MemoryRecords

    found: list[bytes | None] = []
    reader: Any = MemoryRecords(records)
    while reader.has_next():
        batch = reader.next_batch()
        assert batch.validate_crc()
        found += [record.value for record in batch]
    return found


def offsets_of(records: bytes) -> list[int]:
    """The base offsets of fetched batches."""
    offsets, position = [], 0
    while position < len(records):
        header = read_header(records, position)
        offsets.append(header.base_offset)
        position += header.size
    return offsets
