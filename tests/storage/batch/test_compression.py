"""Compressed input is never trusted: not its claims, not its shape, not its size."""

import zlib

import cramjam
import pytest

from storage.batch import compression
from storage.batch.compression import GZIP, LZ4, SNAPPY, ZSTD, decompress

BOMB_BYTES = 40 << 20


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", 1 << 20)


def gzip(content: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(content) + packer.flush()


@pytest.mark.usefixtures("low_limit")
def test_a_bomb_is_refused_by_every_codec() -> None:
    zeros = bytes(BOMB_BYTES)
    for codec, blob in (
        (GZIP, gzip(zeros)),
        (SNAPPY, bytes(cramjam.snappy.compress_raw(zeros))),
        (LZ4, bytes(cramjam.lz4.compress(zeros))),
        (ZSTD, bytes(cramjam.zstd.compress(zeros))),
    ):
        with pytest.raises(ValueError, match="cannot decompress"):
            decompress(blob, codec)


@pytest.mark.usefixtures("low_limit")
def test_what_is_as_large_as_the_limit_is_not_refused() -> None:
    content = bytes(1 << 20)
    assert decompress(gzip(content), GZIP) == content
    assert decompress(bytes(cramjam.lz4.compress(content)), LZ4) == content
    assert decompress(bytes(cramjam.zstd.compress(content)), ZSTD) == content
    assert decompress(bytes(cramjam.snappy.compress_raw(content)), SNAPPY) == content


@pytest.mark.usefixtures("low_limit")
def test_snappy_chunks_share_one_limit() -> None:
    raw = bytes(cramjam.snappy.compress_raw(bytes(600 << 10)))
    chunk = len(raw).to_bytes(4, "big") + raw
    header = b"\x82SNAPPY\x00" + bytes(8)
    assert len(decompress(header + chunk, SNAPPY)) == 600 << 10
    with pytest.raises(ValueError, match="more than"):
        decompress(header + chunk * 2, SNAPPY)


def test_a_snappy_block_that_lies_about_its_size_allocates_nothing() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"a"  # four gigabytes
    with pytest.raises(ValueError, match="cannot decompress snappy"):
        decompress(claim, SNAPPY)


def test_several_gzip_members_are_one_stream() -> None:
    assert decompress(gzip(b"one ") + gzip(b"two"), GZIP) == b"one two"


def test_cut_streams_are_refused() -> None:
    content = b"some words " * 100
    raw = bytes(cramjam.snappy.compress_raw(content))
    xerial = b"\x82SNAPPY\x00" + bytes(8) + len(raw).to_bytes(4, "big") + raw
    for codec, blob in (
        (GZIP, gzip(content)),
        (SNAPPY, raw),
        (SNAPPY, xerial),
        (LZ4, bytes(cramjam.lz4.compress(content))),
        (ZSTD, bytes(cramjam.zstd.compress(content))),
    ):
        assert decompress(blob, codec) == content
        with pytest.raises(ValueError, match="cannot decompress"):
            decompress(blob[:-2], codec)
    with pytest.raises(ValueError, match="ends early"):
        decompress(xerial + b"\x00", SNAPPY)
    with pytest.raises(ValueError, match="chunk of 0"):
        decompress(xerial + bytes(4), SNAPPY)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_named(codec: int) -> None:
    with pytest.raises(ValueError, match=f"unknown compression type {codec}"):
        decompress(b"", codec)
