"""Vectorized reads: a million numbers out of a byte buffer at once, with numpy.

The decoders of this package never handle single records: they know where a field begins in each of
many records, and read it from all of them in one step. `Bytes` holds the buffer. Its padding is
large enough that an unchecked length, and a second one after it, cannot lead to a read outside of
it; such values are discarded after the check.

Numbers are big-endian, as everywhere in Kafka; varints are LEB128, zig-zag where Kafka uses it.
Costs (nanoseconds per number): a gather 5, of any width up to 32 bytes, so adjacent fields are read
together; arithmetic 0.3; `np.where` and an index of flags 5.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Structs = npt.NDArray[np.void]

PADDING: Final = 80 << 10
"""Zeros after the buffer: two lengths of 16 bits, and the widest single read."""

_CONTINUES: Final = np.uint64(0x8080_8080_8080_8080)
_SEVEN: Final = [np.uint64(0x7F << (7 * group)) for group in range(8)]
_BIT: Final = np.uint64(1)


class Bytes:
    """A buffer to gather from."""

    def __init__(self, content: bytes | memoryview) -> None:
        self.size = len(content)
        self.octets: Octets = np.empty(self.size + PADDING, np.uint8)
        self.octets[: self.size] = np.frombuffer(content, np.uint8)
        self.octets[self.size :] = 0
        # One array for each width, with a number beginning at every byte: a gather is one index.
        self._int16 = self.everywhere(">i2")
        self._int32 = self.everywhere(">i4")
        self._int64 = self.everywhere(">i8")
        self._words = self.everywhere("<u8")

    def everywhere(self, kind: str) -> Ints:
        """An array of this type (numbers, to the caller) with an element at every byte."""
        width = np.dtype(kind).itemsize
        return np.ndarray((len(self.octets) - width + 1,), kind, self.octets, 0, (1,))

    def structs(self, positions: Ints, kind: np.dtype[np.void]) -> Structs:
        """Fields that stand together, one struct for each position."""
        return self.everywhere(f"V{kind.itemsize}")[positions].view(kind)

    def words(self, positions: Ints) -> Words:
        """Eight bytes each, the first one lowest."""
        return self._words[positions].astype(np.uint64)

    def int16(self, positions: Ints) -> Ints:
        return self._int16[positions].astype(np.int64)

    def int32(self, positions: Ints) -> Ints:
        return self._int32[positions].astype(np.int64)

    def int64(self, positions: Ints) -> Ints:
        return self._int64[positions].astype(np.int64)

    def uvarint(self, positions: Ints) -> tuple[Ints, Ints]:
        """(number, bytes that it takes); zero bytes where it has no end within eight."""
        words = self.words(positions)
        ends = ~words & _CONTINUES
        last = ends & (~ends + _BIT)  # the lowest such bit: the top of the number's last byte
        size = np.where(ends == 0, 0, np.bitwise_count(last - _BIT) // 8 + 1).astype(np.int64)
        payload = words & (last - _BIT)
        number = payload & _SEVEN[0]
        for group in range(1, 8):
            number |= (payload >> np.uint64(group)) & _SEVEN[group]
        return number.astype(np.int64), size

    def one_blob(self, position: int, length: int) -> bytes | None:
        """One byte string; null where its length is negative."""
        return None if length < 0 else self.octets[position : position + length].tobytes()

    def texts(self, positions: Ints, lengths: Ints) -> pa.Array:
        """UTF-8 strings, copied once by Arrow; invalid UTF-8 gets replacement characters."""
        binary = self.blobs(positions, lengths)
        _, bounds, content = binary.buffers()
        if content is None or np.frombuffer(content, np.int8).min(initial=0) >= 0:
            # Nothing but ASCII needs no look at each.
            return pa.StringArray.from_buffers(len(binary), bounds, content)
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
            # Records of compressed batches are elsewhere: Arrow needs them in the buffer's order.
            order = np.lexsort((ends, positions))
            positions, ends = positions[order], ends[order]
            if np.any(positions[1:] < ends[:-1]):
                raise AssertionError("fields that overlap were never checked")
        # One array of 2n-1 elements: the fields, and between them the gaps, which are unused.
        bounds = np.empty(2 * count, np.int32)
        bounds[0::2] = positions
        bounds[1::2] = ends
        parts = [None, pa.py_buffer(bounds), pa.py_buffer(self.octets)]
        whole = pa.Array.from_buffers(pa.binary(), 2 * count - 1, parts)
        wanted = np.arange(0, 2 * count, 2, dtype=np.int64)
        if order is not None:
            wanted[order] = wanted.copy()
        return whole.take(pa.array(wanted))


def _make_pairs() -> Ints:
    """By two bytes: the zig-zag number that they begin with << 8 | the bits that it takes."""
    pairs = np.arange(1 << 16)
    first, second = pairs & 0xFF, pairs >> 8
    is_one, is_two = first < 0x80, second < 0x80
    number = np.where(is_one, first, (first & 0x7F) | second << 7)
    bits = np.where(is_one, 8, np.where(is_two, 16, _LONG))
    return (((number >> 1) ^ -(number & 1)) << 8 | bits).astype(np.int32)


_WORD_BITS: Final = 64
_LONG: Final = _WORD_BITS + 8  # nothing is left of the word

PAIRS: Final = _make_pairs()


class ShortVarints:
    """Varints that follow one another, eight bytes of each record: nearly all are of one or two."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._bits: Ints = np.zeros(len(words), np.int64)

    def next(self) -> Ints:
        """The next of each, zig-zag; what it says of a `long` one is to be thrown away."""
        found = PAIRS.take((self._words & 0xFFFF).view(np.int64))
        bits = (found & 0xFF).astype(np.int64)
        self._words = self._words >> bits.view(np.uint64)
        self._bits += bits
        return (found >> 8).astype(np.int64)

    def skip(self, octets: int) -> None:
        self._words = self._words >> np.uint64(8 * octets)
        self._bits += 8 * octets

    def taken(self) -> Ints:
        """Bytes of each."""
        return self._bits >> 3

    def long(self) -> Flags:
        """Which ones have a longer number, or continue after the eight bytes."""
        return self._bits > _WORD_BITS


def validity(present: Flags) -> pa.Buffer | None:
    """Arrow's bitmap of what is not null."""
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


def numbers(column: Ints, kind: pa.DataType, present: pa.Buffer | None = None) -> pa.Array:
    """An Arrow array, null where `present` says so: in one piece, not one by one."""
    content = np.ascontiguousarray(column, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(content), [present, pa.py_buffer(content)])
