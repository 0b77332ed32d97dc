"""TLS records: cuts received bytes at the ends of records, and counts the records.

OpenSSL handles all records that it is given in one call, until one has data. A record without data
costs up to 40 µs (a KeyUpdate changes a key) and 27 bytes, so it is given a few at a time, and a
client that sends too many of them is cut off. Only the heads are read, which are not encrypted.
"""

from typing import Final

RECORDS_A_SLICE: Final = 32
BYTES_A_SLICE: Final = 65_536

_HEAD_BYTES: Final = 5
_TYPES: Final = frozenset((20, 21, 22, 23, 24))
_CONTENT_BYTES_MAX: Final = 16_384 + 2_048


class RecordCutter:
    """`count`: the records that were begun."""

    __slots__ = ("_left", "count")

    def __init__(self) -> None:
        self.count = 0
        self._left = 0  # bytes of the current record that have not come yet

    def take(self, received: bytearray) -> bytes:
        """Remove the next records from `received`; empty if the next head is not complete.

        What is no record is given as it is: OpenSSL refuses it.
        """
        size = len(received)
        at = min(self._left, size)
        self._left -= at
        for _ in range(RECORDS_A_SLICE):
            if size - at < _HEAD_BYTES or at >= BYTES_A_SLICE:
                break
            content_bytes = received[at + 3] << 8 | received[at + 4]
            if received[at] not in _TYPES or content_bytes > _CONTENT_BYTES_MAX:
                at = size
                break
            self.count += 1
            at += _HEAD_BYTES + content_bytes
            if at > size:
                self._left = at - size
                at = size
        taken = bytes(memoryview(received)[:at])
        del received[:at]
        return taken
