"""Decompression: many batches opened at once give the same as the daemon's one by one."""

import random
from collections.abc import Sequence
from unittest.mock import patch

import cramjam
import pytest

from pipeline.decode import decompression as opening
from pipeline.decode.decompression import open_each
from storage.batch.compression import GZIP, LZ4, SNAPPY, ZSTD, decompress

COMPRESS = {
    GZIP: cramjam.gzip.compress,
    SNAPPY: cramjam.snappy.compress_raw,
    LZ4: cramjam.lz4.compress,
    ZSTD: cramjam.zstd.compress,
}


def contents(count: int, seed: int = 3) -> list[bytes]:
    """Of records, more or less: some of them empty, some of them much alike."""
    rng = random.Random(seed)
    return [rng.randbytes(rng.randint(0, 40)) * rng.randint(0, 30) for _ in range(count)]


def packed(plain: Sequence[bytes], codecs: Sequence[int]) -> list[tuple[bytes, int]]:
    return [
        (bytes(COMPRESS[codec](content)), codec)
        for content, codec in zip(plain, codecs, strict=True)
    ]


@pytest.mark.parametrize("codecs", [[GZIP], [SNAPPY], [LZ4], [ZSTD], [LZ4, ZSTD, ZSTD, GZIP]])
def test_what_was_packed_comes_out_in_its_order(codecs: list[int]) -> None:
    plain = contents(100)
    plain[50] = random.Random(1).randbytes(20_000)  # stays large: it is opened alone

    found = list(open_each(packed(plain, (codecs * 100)[:100])))

    assert found == plain


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_small_ones_of_a_codec_are_opened_together(codec: int) -> None:
    plain = contents(100)

    with patch.object(opening, "decompress", None):
        found = list(open_each(packed(plain, [codec] * 100)))

    assert found == plain


def by_the_daemon(blob: bytes, codec: int) -> str:
    try:
        return str(decompress(blob, codec))
    except ValueError as fault:
        return str(fault)


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
@pytest.mark.parametrize("spoil", ["cut", "changed", "nothing", "more"])
def test_a_damaged_batch_is_reported_and_its_neighbours_are_read(codec: int, spoil: str) -> None:
    plain = contents(40)
    plain[17] = bytes(range(200))
    batches = packed(plain, [codec] * 40)
    whole = batches[17][0]
    spoilt = {
        "cut": whole[:-9],
        "changed": b"\xff" + whole[1:],
        "nothing": b"",
        "more": whole + b"what is this",
    }[spoil]
    batches[17] = spoilt, codec

    found = list(open_each(batches))

    assert found[:17] + found[18:] == plain[:17] + plain[18:]
    assert str(found[17]) == by_the_daemon(spoilt, codec)


def test_what_unpacks_to_more_than_there_is_room_is_opened_one_by_one() -> None:
    plain = [bytes(3_000)] * 40

    with patch.object(opening, "_ROOM_BYTES", 32 * 3_000):
        assert list(open_each(packed(plain, [ZSTD] * 40))) == plain


def test_no_more_is_opened_than_is_taken() -> None:
    batches = iter(packed([b"x"] * 100, [ZSTD] * 100))

    assert next(open_each(batches)) == b"x"

    assert len(list(batches)) > 100 - 2 * opening._TOGETHER
