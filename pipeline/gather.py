"""How are a million numbers read out of a byte buffer at once? Gathers with numpy.

The decoders of this package never look at one record: they know where a field begins in each of
many records and read it from all of them in one step. `Bytes` holds the buffer, padded, so that a
read that begins inside it never leaves it; whoever reads a position must have checked that the
field lies within its record.

Numbers are big-endian, as everything of Kafka's; varints are LEB128, zig-zag where Kafka says so.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]

PADDING: Final = 64
"""Bytes after the buffer: the widest single read, a batch's header, and then some."""

_CONTINUES: Final = np.uint64(0x8080_8080_8080_8080)
_SEVEN: Final = [np.uint64(0x7F << (7 * group)) for group in range(8)]
_ONE: Final = np.uint64(1)


class Bytes:
    """A buffer to gather from."""

    def __init__(self, content: bytes | memoryview | Octets) -> None:
        view = np.frombuffer(content, np.uint8) if not isinstance(content, np.ndarray) else content
        self.size = len(view)
        self.octets: Octets = np.concatenate((view, np.zeros(PADDING, np.uint8)))
        # One array for each width, with a number beginning at every byte: a gather is one index.
        self._int16 = self._numbers(">i2")
        self._int32 = self._numbers(">i4")
        self._int64 = self._numbers(">i8")
        self._words = self._numbers("<u8")

    def _numbers(self, kind: str) -> npt.NDArray[np.int64]:
        width = np.dtype(kind).itemsize
        return np.ndarray((len(self.octets) - width + 1,), kind, self.octets, 0, (1,))

    def rows(self, positions: Ints, width: int) -> Octets:
        """`width` bytes each, as the rows of a matrix."""
        windows = np.lib.stride_tricks.sliding_window_view(self.octets, width)
        return np.ascontiguousarray(windows[positions])

    def int8(self, positions: Ints) -> Ints:
        return self.octets[positions].view(np.int8).astype(np.int64)

    def int16(self, positions: Ints) -> Ints:
        return self._int16[positions].astype(np.int64)

    def int32(self, positions: Ints) -> Ints:
        return self._int32[positions].astype(np.int64)

    def int64(self, positions: Ints) -> Ints:
        return self._int64[positions].astype(np.int64)

    def uvarint(self, positions: Ints) -> tuple[Ints, Ints]:
        """(number, bytes that it takes); zero bytes where it has no end within eight."""
        number = self.octets[positions].astype(np.int64)
        size = np.ones(len(positions), np.int64)
        # Nearly all are of one byte or two.
        more = np.flatnonzero(number >= 0x80)
        if len(more):
            second = self.octets[positions[more] + 1].astype(np.int64)
            number[more] += (second << 7) - 0x80
            size[more] = 2
            if (second >= 0x80).any():
                long = more[second >= 0x80]
                number[long], size[long] = self._long_uvarint(positions[long])
        return number, size

    def _long_uvarint(self, positions: Ints) -> tuple[Ints, Ints]:
        words = self._words[positions].astype(np.uint64)
        ends = ~words & _CONTINUES
        last = ends & (~ends + _ONE)  # the lowest such bit: the top of the number's last byte
        size = np.where(ends == 0, 0, np.bitwise_count(last - _ONE) // 8 + 1).astype(np.int64)
        payload = words & (last - _ONE)
        number = payload & _SEVEN[0]
        for group in range(1, 8):
            number |= (payload >> np.uint64(group)) & _SEVEN[group]
        return number.astype(np.int64), size

    def varint(self, positions: Ints) -> tuple[Ints, Ints]:
        """The same for zig-zag numbers, of 32 bits or 64 (up to 56 of them used)."""
        number, size = self.uvarint(positions)
        return (number >> 1) ^ -(number & 1), size

    def one_varint(self, position: int) -> tuple[int, int]:
        """The same for a single one, of 32 bits."""
        number = 0
        for width, octet in enumerate(self.octets[position : position + 5].tolist()):
            number |= (octet & 0x7F) << (7 * width)
            if octet < 0x80:
                return (number >> 1) ^ -(number & 1), width + 1
        return 0, 0

    def one_blob(self, position: int, length: int) -> bytes | None:
        """One byte string; null where its length is negative."""
        return None if length < 0 else self.octets[position : position + length].tobytes()

    def texts(self, positions: Ints, lengths: Ints) -> pa.Array:
        """UTF-8 strings, copied once by Arrow; what is no UTF-8 gets replacement characters."""
        binary = self.blobs(positions, lengths)
        try:
            return binary.cast(pa.string())
        except pa.ArrowInvalid:
            words = [blob.decode("utf-8", "replace") for blob in binary.to_pylist()]
            return pa.array(words, pa.string())

    def blobs(self, positions: Ints, lengths: Ints) -> pa.Array:
        """Byte strings by position and length."""
        count = len(positions)
        if not count:
            return pa.array([], pa.binary())
        ends = positions + lengths
        order = None
        if np.any(positions[1:] < ends[:-1]):
            # Records of compressed batches lie elsewhere: Arrow wants them in the buffer's order.
            order = np.lexsort((ends, positions))
            positions, ends = positions[order], ends[order]
            if np.any(positions[1:] < ends[:-1]):
                raise AssertionError("fields that overlap were never checked")
        # One array of 2n-1 elements: the fields, and between them the gaps, which nobody takes.
        bounds = np.empty(2 * count, np.int64)
        bounds[0::2] = positions
        bounds[1::2] = ends
        whole = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(),
            2 * count - 1,
            [None, pa.py_buffer(bounds), pa.py_buffer(self.octets)],
        )
        wanted = 2 * np.arange(count, dtype=np.int64)
        if order is not None:
            wanted[order] = wanted.copy()
        return whole.take(pa.array(wanted)).cast(pa.binary())


def each(mask: Flags, where: Ints, read: Callable[[Ints], Ints], out: Ints) -> None:
    """`out[mask] = read(where[mask])`, and nothing if the mask is empty."""
    if mask.any():
        out[mask] = read(where[mask])
