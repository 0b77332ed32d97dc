"""Index entries: the columns of a segment index, and the bytes that a file has of them.

A segment of 1 GB has some 260,000 entries, and others run beside the thread that reads or writes
them. So nothing is done for each entry in Python, and what is done in C is done for a piece at a
time. This module stays a source: only between the pieces of a loop that is interpreted, not
compiled, do other threads get the interpreter.
"""

import sys
from array import array
from itertools import islice
from operator import lt
from typing import Final

PIECE: Final = 32_768
"""Entries; a millisecond, or less."""

_WORD_BYTES: Final = 4


def rises(numbers: "array[int]") -> bool:
    """Whether each is greater than the one before, and none negative."""
    if numbers and numbers[0] < 0:
        return False
    for at in range(0, len(numbers), PIECE):
        piece = numbers[at : at + PIECE + 1]
        if not all(map(lt, piece, islice(piece, 1, None))):
            return False
    return True


def decode_columns(content: bytes, count: int) -> list["array[int]"]:
    """The columns of entries that are so many unsigned numbers of 32 bits."""
    columns = [array("I") for _ in range(count)]
    step = PIECE * count * _WORD_BYTES
    for at in range(0, len(content), step):
        words = array("I", content[at : at + step])
        if sys.byteorder == "little":
            words.byteswap()
        for number, column in enumerate(columns):
            column.extend(words[number::count])
    return columns


def encode_columns(*columns: "array[int]") -> bytes:
    """The opposite."""
    rows = []
    for at in range(0, len(columns[0]), PIECE):
        pieces = [column[at : at + PIECE] for column in columns]
        words = array("I", bytes(_WORD_BYTES * len(pieces) * len(pieces[0])))
        for number, piece in enumerate(pieces):
            words[number :: len(pieces)] = piece
        if sys.byteorder == "little":
            words.byteswap()
        rows.append(words.tobytes())
    return b"".join(rows)


def halves_of(numbers: "array[int]") -> tuple["array[int]", "array[int]"]:
    """The upper and the lower halves of numbers of 64 bits."""
    halves = array("I", numbers.tobytes())
    upper = int(sys.byteorder == "little")
    return halves[upper::2], halves[1 - upper :: 2]


def of_halves(upper: "array[int]", lower: "array[int]") -> "array[int]":
    """The opposite."""
    halves = array("I", bytes(2 * _WORD_BYTES * len(upper)))
    is_little = int(sys.byteorder == "little")
    halves[is_little::2], halves[1 - is_little :: 2] = upper, lower
    return array("q", halves.tobytes())
