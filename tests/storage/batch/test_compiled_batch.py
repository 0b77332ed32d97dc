"""Compiled batch: the encoder in C writes what the one in Python writes, and has its faults."""

import random

import pytest

from storage.api import Record, RecordPair
from storage.batch.compiled_batch import ENCODE_BATCH_IN_C
from storage.batch.record_batch import check_crc, encode_batch, encode_batch_in_python, read_records
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

Placing = tuple[int, int, int, int, int, int, int]
"""Base offset, timestamp, leader epoch, producer id and epoch, base sequence, attributes."""

PLACING: Placing = (5, 1_700_000_000_000, 3, -1, -1, 0, 0)
EDGES = (0, 1, 62, 63, 64, 65, 8_190, 8_191, 8_192, 8_193, 1 << 20)


def outcome(records: list[RecordPair], placing: Placing, *, in_python: bool) -> object:
    encode = encode_batch_in_python if in_python else encode_batch
    try:
        return encode(records, *placing)
    except Exception as fault:
        return repr(fault)


def assert_same(records: list[RecordPair], placing: Placing = PLACING) -> None:
    assert outcome(records, placing, in_python=False) == outcome(records, placing, in_python=True)


@pytest.mark.parametrize("size", EDGES)
def test_lengths_where_a_varint_grows(size: int) -> None:
    assert_same([(b"k" * size, None), (b"", b"v" * size), Record(b"k" * size, b"v" * size)])


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 8_191, 8_192, 8_193])
def test_counts_where_a_delta_grows(count: int) -> None:
    assert_same([(b"key", b"value")] * count)


def test_any_records() -> None:
    dice = random.Random(20261128)
    for _ in range(500):
        records = [
            (dice.randbytes(dice.randrange(90)), dice.choice((None, dice.randbytes(70), b"")))
            for _ in range(dice.randrange(1, 90))
        ]
        placing = (
            dice.randrange(1 << 63),
            dice.randrange(-1, 1 << 62),
            dice.randrange(1 << 31),
            dice.randrange(-1, 1 << 63),
            dice.randrange(-1, 1 << 15),
            dice.randrange(-1, 1 << 31),
            dice.choice((0, 0x10, 0x20, 0x30)),
        )
        assert ENCODE_BATCH_IN_C is not None
        assert isinstance(ENCODE_BATCH_IN_C(records, *placing), bytes), "not left to the oracle"
        assert_same(records, placing)
        batch = encode_batch(records, *placing)
        check_crc(batch)
        assert [record[2:4] for record in read_records(batch)] == records


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("value", [1 << 15, 1 << 31, 1 << 63, -(1 << 63) - 1, 1 << 70])
def test_numbers_that_do_not_fit(place: int, value: int) -> None:
    placing = list(PLACING)
    placing[place] = value
    assert_same([(b"key", b"value")], (*placing,))  # type: ignore[arg-type]


def test_what_is_no_pair_of_bytes() -> None:
    odd: list[object] = [
        (None, b"v"), ("key", b"v"), (b"k", "v"), (b"k",), (b"k", b"v", b"w"), 7, bytearray(b"ab"),
        (bytearray(b"k"), b"v"), (b"k", memoryview(b"v")),
    ]  # fmt: skip
    for pair in odd:
        assert_same([(b"key", b"value"), pair])  # type: ignore[list-item]
