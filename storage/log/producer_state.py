"""Producer state of a Kafka: reads the `.snapshot` files beside its segments.

Rollcall keeps its own (`topics/producer_snapshot.py`). This is for a look into Kafka's folders: is
the file whole, and which is the greatest producer id in it? i16 version, u32 crc32c of what follows
it, i32 count, then entries of 46 bytes.
Kafka's counterpart: ProducerStateManager.
"""

from struct import Struct
from typing import Final

import google_crc32c

from storage.batch.record_batch import NO_PRODUCER_ID

_FRONT: Final = Struct(">hII")
_CRC_START: Final = 6
_ENTRY: Final = Struct(">q38x")  # producer id, then what is not asked for here
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
    return max((producer_id for (producer_id,) in entries), default=NO_PRODUCER_ID)
