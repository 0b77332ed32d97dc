"""Framing: splits the bytes of a connection into requests.

`broker/net/connection.py` feeds the bytes that it received, and takes complete frames as
(buffer, start, end). A frame that arrived in one piece is not copied. The pieces of another are
kept until the last one has arrived, so a slow client costs no more memory than the bytes it sent,
whatever size it announced.

A size that is negative or above `socket.request.max.bytes` is `Malformed`, and nothing after it can
be read. So is a size above `rollcall.request.max.bytes` of a request that is not Produce, because
such a request takes more memory than its bytes. A size of 0 is a frame, too short to be a request.
Kafka's counterpart: `NetworkReceive`.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from protocol.names import ApiKey
from protocol.primitives import Malformed

_SIZE: Final = Struct(">i")

_SIZE_AND_KEY: Final = 6
_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")

_NOTHING: Final = bytearray()
"""Of every connection without a part of a frame. Nothing is added to it."""

Frame = tuple[bytes, int, int]


class FrameReader:
    """Splits one connection's bytes into frames."""

    __slots__ = ("_max_bytes", "_missing", "_ordinary_max_bytes", "_partial")

    def __init__(self, max_bytes: int, ordinary_max_bytes: int | None = None) -> None:
        """`ordinary_max_bytes` is the limit of all requests but Produce; None: the same."""
        self._max_bytes = max_bytes
        self._ordinary_max_bytes = min(max_bytes, ordinary_max_bytes or max_bytes)
        self._partial = _NOTHING  # What has arrived of an incomplete frame.
        self._missing = 0  # Bytes that must arrive before the next attempt.

    def set_limits(self, max_bytes: int, ordinary_max_bytes: int) -> None:
        """Of the frames from now on, those included whose size has not been read."""
        self._max_bytes = max_bytes
        self._ordinary_max_bytes = min(max_bytes, ordinary_max_bytes)

    @property
    def partial_bytes(self) -> int:
        """Bytes held of an incomplete frame."""
        return len(self._partial)

    def feed(self, data: bytes) -> Iterable[Frame]:
        """The complete frames, with these bytes added. Iterate over all of them at once.

        Raises `Malformed` at an invalid size, after the frames before it.
        """
        size = len(data) - _SIZE.size
        if (
            0 <= size <= self._ordinary_max_bytes
            and not self._partial
            and _SIZE.unpack_from(data)[0] == size
        ):
            return ((data, _SIZE.size, len(data)),)  # The usual case: one whole request.
        return self._cut(data)

    def _cut(self, data: bytes) -> Iterator[Frame]:
        if self._partial:
            self._partial += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(self._partial)
            self._partial = _NOTHING
        start, wanted = 0, _SIZE.size
        while (end := start + wanted) <= len(data):
            size = self._size_at(data, start)
            if size > self._ordinary_max_bytes and not self._may_be_large(data, start, size):
                end = start + _SIZE_AND_KEY
                break
            wanted = _SIZE.size + size
            if (end := start + wanted) > len(data):
                break
            yield data, start + _SIZE.size, end
            start, wanted = end, _SIZE.size
        if start < len(data):
            self._partial = bytearray(data[start:])
            self._missing = end - len(data)

    def _may_be_large(self, data: bytes, start: int, size: int) -> bool:
        """Is it a Produce? False while that is unknown; `Malformed` if it is not."""
        key = data[start + _SIZE.size : start + _SIZE_AND_KEY]
        if len(key) == _SIZE_AND_KEY - _SIZE.size and key != _PRODUCE:
            api_key = int.from_bytes(key, "big", signed=True)
            limit = self._ordinary_max_bytes
            raise Malformed(
                f"a request of {size} bytes with api key {api_key}, more than the {limit} allowed"
            )
        return key == _PRODUCE

    def _size_at(self, data: bytes, start: int) -> int:
        size: int = _SIZE.unpack_from(data, start)[0]
        if size < 0:
            raise Malformed(f"a frame of {size} bytes")
        if size > self._max_bytes:
            raise Malformed(f"a frame of {size} bytes, more than the {self._max_bytes} allowed")
        return size
