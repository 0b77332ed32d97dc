"""Batch rewrite: the changes that a broker makes to a producer's batch, timestamps and compression.

Kafka makes only these besides offsets: the header gets the greatest timestamp that is really in the
batch, or the time of the append; and a topic with a compression.type of its own has its batches
recompressed. The records themselves stay as they came, byte for byte.
Kafka's counterpart: `DefaultRecordBatch.setMaxTimestamp`, and `LogValidator` where it rebuilds.
"""

from struct import Struct
from typing import Final

import google_crc32c

from storage.batch.compression import (
    COMPRESSION_NAMES,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    codec_library,
    decompress,
)
from storage.batch.record_batch import (
    BATCH_PREFIX,
    COMPRESSION_MASK,
    CRC_COVERED,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    BatchHeader,
)

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + bytes((0, 0, 0, 1, 0, 0, 0, 1))
_XERIAL_BLOCK: Final = 32 << 10
_CHUNK_LENGTH: Final = Struct(">i")


def restamped(
    batch: bytes, header: BatchHeader, *, max_timestamp: int, log_append_time: bool
) -> bytes:
    """The same batch with this greatest timestamp, of this type."""
    attributes = header.attributes & ~LOG_APPEND_TIME
    if log_append_time:
        attributes |= LOG_APPEND_TIME
    changed = header._replace(attributes=attributes, max_timestamp=max_timestamp)
    return assemble(changed, batch[HEADER_BYTES : header.size])


def recompressed(batch: bytes, header: BatchHeader, compression: int, level: int | None) -> bytes:
    """The same batch with its records compressed so; ValueError if they cannot be read."""
    records = batch[HEADER_BYTES : header.size]
    if header.compression != NONE:
        records = decompress(records, header.compression)
    if compression != NONE:
        records = compress(records, compression, level)
    changed = header._replace(
        attributes=header.attributes & ~COMPRESSION_MASK | compression,
        batch_length=HEADER_BYTES - LOG_OVERHEAD + len(records),
    )
    return assemble(changed, records)


def assemble(header: BatchHeader, records: bytes) -> bytes:
    """A batch of these fields and records, with a new checksum."""
    covered = (
        CRC_COVERED.pack(
            header.attributes, header.last_offset_delta, header.base_timestamp,
            header.max_timestamp, header.producer_id, header.producer_epoch,
            header.base_sequence, header.records_count,
        )
        + records
    )  # fmt: skip
    return (
        BATCH_PREFIX.pack(
            header.base_offset,
            header.batch_length,
            header.partition_leader_epoch,
            header.magic,
            google_crc32c.value(covered),
        )
        + covered
    )


def compress(records: bytes, compression: int, level: int | None) -> bytes:
    """As a batch holds them; without a level, at the codec's own."""
    library = codec_library()
    if compression == GZIP:
        return bytes(library.gzip.compress(records, level if level and level > 0 else 6))
    if compression == SNAPPY:
        return _xerial(records)
    if compression == LZ4:
        # Java reads no blocks that depend on each other, which is the library's default.
        frame = library.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        frame.compress(records)
        return bytes(frame.finish())
    assert COMPRESSION_NAMES[compression] == "zstd"
    return bytes(library.zstd.compress(records, 3 if level is None else level))


def _xerial(records: bytes) -> bytes:
    """Snappy in the framing of the Java client's library, which every client reads."""
    snappy = codec_library().snappy
    parts = [_XERIAL_HEADER]
    for start in range(0, len(records), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(records[start : start + _XERIAL_BLOCK]))
        parts += (_CHUNK_LENGTH.pack(len(block)), block)
    return b"".join(parts)
