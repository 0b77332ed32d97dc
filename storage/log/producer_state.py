"""Producer state in Kafka's format: the content of the `.snapshot` files beside segments.

i16 version, u32 crc32c of what follows it, i32 count, then entries of 46 bytes: producer id, epoch,
last sequence, last offset, its distance to the first offset of the batch, timestamp, coordinator
epoch, first offset of the open transaction. A file of this broker ends with a signature.
Kafka's counterpart: ProducerStateManager.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

import google_crc32c

from storage.api import StoredProducer
from storage.batch.record_batch import NO_PRODUCER_ID

_FRONT: Final = Struct(">hII")
_CRC_START: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")
_NONE: Final = -1
_KNOWN_VERSION: Final = 1  # later ones may be longer


def fault_in(content: bytes) -> tuple[int, str] | None:
    """Where it is damaged, and how; None when it is whole."""
    if len(content) < _FRONT.size:
        return 0, f"{len(content)} bytes are too few"
    version, crc, count = _FRONT.unpack_from(content)
    computed = google_crc32c.value(content[_CRC_START:])
    if crc != computed:
        return 2, f"checksum {crc:#010x} stored, {computed:#010x} computed"
    size = len(content.removesuffix(SIGNATURE))
    if version == _KNOWN_VERSION and size != _FRONT.size + count * _ENTRY.size:
        return _CRC_START, f"{count} entries in {len(content)} bytes"
    return None


SIGNATURE: Final = b"rollcall"
"""Ends a snapshot that this broker wrote. Kafka reads as many entries as the count says."""


def is_signed(content: bytes) -> bool:
    """Was it written by this broker?"""
    return content.endswith(SIGNATURE) and fault_in(content) is None


def greatest_producer_id(content: bytes) -> int:
    """-1 if it names none, or is not whole: Kafka does not go by such a file either."""
    if fault_in(content) is not None or _FRONT.unpack_from(content)[0] != _KNOWN_VERSION:
        return NO_PRODUCER_ID
    count = _FRONT.unpack_from(content)[2]
    entries = _ENTRY.iter_unpack(content[_FRONT.size : _FRONT.size + count * _ENTRY.size])
    return max((producer_id for producer_id, *_ in entries), default=NO_PRODUCER_ID)


def encode_producers(producers: Sequence[StoredProducer]) -> bytes:
    """The content of a file of this broker."""
    entries = [
        _ENTRY.pack(*producer[:-1], _NONE if first_offset is None else first_offset)
        for producer in producers
        for first_offset in (producer.transaction_first_offset,)
    ]
    covered = b"".join([len(entries).to_bytes(4, "big"), *entries, SIGNATURE])
    return _FRONT.pack(_KNOWN_VERSION, google_crc32c.value(covered), len(entries)) + covered[4:]


def decode_producers(content: bytes) -> list[StoredProducer] | None:
    """The producers of any broker's file; None if it is not whole, or of a later version."""
    if fault_in(content) is not None or _FRONT.unpack_from(content)[0] != _KNOWN_VERSION:
        return None
    count = _FRONT.unpack_from(content)[2]
    entries = _ENTRY.iter_unpack(content[_FRONT.size : _FRONT.size + count * _ENTRY.size])
    return [
        StoredProducer._make([*fields, None if first_offset == _NONE else first_offset])
        for *fields, first_offset in entries
    ]
