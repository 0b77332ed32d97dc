"""Timed batches: encodes records that each have a timestamp of their own.

A coordinator's own batches have one timestamp for all their records. Imported records keep their
timestamps, so these batches store each record's delta from the first one. No batch is larger than a
broker accepts, and a group's records follow one another.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import google_crc32c

from storage.batch.record_batch import (
    BATCH_PREFIX,
    CRC_COVERED,
    CRC_START,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    encode_varint,
)


class TimedRecord(NamedTuple):
    """A keyed record with a time of its own; `value is None` is a tombstone."""

    timestamp_ms: int
    key: bytes
    value: bytes | None


TIMED_BATCH_BYTES: Final = 512 << 10
"""A batch is closed when it would grow beyond this: half of what Kafka's default takes."""

_RECORD_OVERHEAD: Final = 32  # no record has more around its key and value
_NO_SEQUENCE: Final = -1


def timed_batches(records: Iterable[TimedRecord]) -> Iterator[tuple[bytes, int]]:
    """Batches that begin at offset 0, each with its number of records."""
    pending: list[TimedRecord] = []
    size = 0
    for record in records:
        bytes_more = len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD
        if pending and size + bytes_more > TIMED_BATCH_BYTES:
            yield encode_timed_batch(pending), len(pending)
            pending, size = [], 0
        pending.append(record)
        size += bytes_more
    if pending:
        yield encode_timed_batch(pending), len(pending)


def encode_timed_batch(records: Sequence[TimedRecord]) -> bytes:
    """One uncompressed batch; at least one record."""
    base_ms = records[0].timestamp_ms
    parts = [b""]
    for delta, record in enumerate(records):
        key, value = record.key, record.value
        body = b"".join(
            (
                b"\x00",
                encode_varint(record.timestamp_ms - base_ms),
                encode_varint(delta),
                encode_varint(len(key)),
                key,
                encode_varint(-1) if value is None else encode_varint(len(value)) + value,
                b"\x00",
            )
        )
        parts += (encode_varint(len(body)), body)
    count = len(records)
    parts[0] = CRC_COVERED.pack(
        0, count - 1, base_ms, max(record.timestamp_ms for record in records),
        NO_PRODUCER_ID, NO_PRODUCER_EPOCH, _NO_SEQUENCE, count,
    )  # fmt: skip
    covered = b"".join(parts)
    length = len(covered) + CRC_START - LOG_OVERHEAD
    return BATCH_PREFIX.pack(0, length, 0, 2, google_crc32c.value(covered)) + covered
