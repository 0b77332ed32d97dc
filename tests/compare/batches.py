"""Record batches of scenarios: small ones, the same on every run."""

import struct
from typing import Final, NamedTuple

import google_crc32c

AT_MS: Final = 1_700_000_000_000
"""The timestamp of every record that a scenario produces, unless it gives another one."""

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20


class Producer(NamedTuple):
    """Who wrote a batch, and the number of its first record in the partition."""

    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    attributes: int = 0


NOBODY: Final = Producer()


def a_batch(
    *values: bytes, key: bytes | None = None, at_ms: int = AT_MS, producer: Producer = NOBODY
) -> bytes:
    """A v2 batch of these values, written out by hand: the broker's own writer is under test."""
    values = values or (b"value",)
    records = b"".join(_record(number, key, value) for number, value in enumerate(values))
    after_crc = (
        struct.pack(
            ">hiqqqhii",
            producer.attributes,
            len(values) - 1,
            at_ms,
            at_ms,
            producer.producer_id,
            producer.epoch,
            producer.sequence,
            len(values),
        )
        + records
    )
    crc = google_crc32c.value(after_crc)
    body = struct.pack(">ibI", -1, 2, crc) + after_crc
    return struct.pack(">qi", 0, len(body)) + body


def _record(number: int, key: bytes | None, value: bytes) -> bytes:
    key_part = _varint(-1) if key is None else _varint(len(key)) + key
    body = b"\x00" + _varint(0) + _varint(number) + key_part + _varint(len(value)) + value
    body += _varint(0)
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    written = bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)
