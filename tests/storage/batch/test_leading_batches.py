"""Leading batches: the walk in C finds what the one in Python does, up to one that is not sound."""

from random import Random
from typing import cast

import pytest

from storage.batch.batch_walk import leading_batches, leading_places, whole_batches
from storage.batch.record_batch import InvalidBatch, batch_offsets, check_crc, encode_batch
from storage.disk import File
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")


class _Bytes:
    """A file in memory that is only read."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def pread(self, size: int, position: int) -> bytes:
        return self.content[position : position + size]


def file_of(content: bytes) -> File:
    return cast("File", _Bytes(content))


def sound(content: bytes) -> list[bytes]:
    """By the walk in Python."""
    found: list[bytes] = []
    try:
        for _, header, batch in whole_batches(file_of(content), 0, len(content)):
            check_crc(batch, 0, header)
            found.append(batch)
    except InvalidBatch:
        pass
    return found


def test_whole_and_damaged_files() -> None:
    dice = Random(20261128)
    for _ in range(500):
        batches = [
            encode_batch([(b"key", dice.randbytes(size))] * dice.randrange(1, 4), size, 7)
            for size in dice.sample(range(60), dice.randrange(5))
        ]
        content = bytearray(b"".join(batches))
        assert leading_batches(file_of(bytes(content)), 0, len(content)) == batches
        for _ in range(dice.randrange(3) if content else 0):
            content[dice.randrange(len(content))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        del content[len(content) - dice.choice((0, 0, 1, 40, 61)) :]

        found = leading_batches(file_of(bytes(content)), 0, len(content))

        assert found == sound(bytes(content))
        assert leading_places(file_of(bytes(content)), 0, len(content)) == [
            (len(batch), *batch_offsets(batch)) for batch in found
        ]


@pytest.mark.parametrize("length", [-1, 0, 48, 49, 0x7FFFFFFF])
def test_lengths_that_no_batch_has(length: int) -> None:
    batch = bytearray(encode_batch([(b"key", b"value")], 0, 7))
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    assert leading_batches(file_of(bytes(batch)), 0, len(batch)) == []
    assert leading_places(file_of(bytes(batch)), 0, len(batch)) == []
