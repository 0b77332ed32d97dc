"""Compression: the four codecs of Kafka's record batches, with a limit on the decompressed size.

The broker stores and returns compressed batches as they came. It decompresses only to check what a
producer sent and to find a record by its time, and never more than MAX_DECOMPRESSED_BYTES: a few
kilobytes can claim to be gigabytes. Any fault of the input is a ValueError. The library is imported
by the first compressed batch: it is 1.6 MB, and a coordinator's own records are not compressed.
Kafka's counterparts: CompressionType and the Compression classes.
"""

import zlib
from collections.abc import Callable
from struct import Struct
from types import ModuleType

MAX_DECOMPRESSED_BYTES = 64 << 20  # of one batch; a larger one is a mistake or an attack

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
COMPRESSION_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # the magic and two version numbers
_CHUNK_LENGTH = Struct(">i")

_FIRST_BUFFER_BYTES = 64 << 10
_BUFFER_GROWTH = 8
_NO_ROOM = "failed to write whole buffer"  # cramjam's words; a test tells when they change


def decompress(blob: bytes, compression: int) -> bytes:
    """The bytes of a batch's records; ValueError when they cannot be had."""
    return bytes(unpack(blob, compression))


def codec_library() -> ModuleType:
    """cramjam, loaded for the first compressed batch: most daemons never see one."""
    import cramjam

    library: ModuleType = cramjam
    return library


def unpack(blob: bytes, compression: int) -> bytes | bytearray:
    """The same without a last copy, for who only looks at them."""
    if not GZIP <= compression <= ZSTD:
        raise ValueError(f"unknown compression type {compression}")
    library = codec_library()
    try:
        if compression == GZIP:
            return _gunzip(blob)
        if compression == SNAPPY:
            return _unsnappy(blob)
        codec = library.lz4 if compression == LZ4 else library.zstd
        return _into_buffer(codec.decompress_into, blob)
    except (zlib.error, library.DecompressionError, ValueError) as fault:
        name = COMPRESSION_NAMES[compression]
        raise ValueError(f"cannot decompress {name}: {fault}") from None


def _gunzip(blob: bytes) -> bytes:
    parts: list[bytes] = []
    room = MAX_DECOMPRESSED_BYTES
    while blob:  # a gzip stream may be several members
        member = zlib.decompressobj(wbits=31)
        part = member.decompress(blob, room + 1)
        room -= len(part)
        if room < 0:
            raise ValueError(_too_large())
        if not member.eof:
            raise ValueError("the stream ends early")
        parts.append(part)
        blob = member.unused_data
    return b"".join(parts)


def _unsnappy(blob: bytes) -> bytes:
    """Raw snappy (librdkafka) or the framing of the Java client's xerial stream."""
    if not blob.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(blob, MAX_DECOMPRESSED_BYTES)
    parts: list[bytes] = []
    room = MAX_DECOMPRESSED_BYTES
    position = _XERIAL_HEADER_BYTES
    while position < len(blob):
        if len(blob) - position < _CHUNK_LENGTH.size:
            raise ValueError("the stream ends early")
        (length,) = _CHUNK_LENGTH.unpack_from(blob, position)
        position += _CHUNK_LENGTH.size
        if not 0 < length <= len(blob) - position:
            raise ValueError(f"a chunk of {length} bytes, {len(blob) - position} are left")
        part = _unsnappy_block(blob[position : position + length], room)
        room -= len(part)
        parts.append(part)
        position += length
    return b"".join(parts)


def _unsnappy_block(block: bytes, room: int) -> bytes:
    snappy = codec_library().snappy
    if snappy.decompress_raw_len(block) > room:
        raise ValueError(_too_large())
    return bytes(snappy.decompress_raw(block))


def _into_buffer(decompress: Callable[[bytes, bytearray], int], blob: bytes) -> bytearray:
    """Decompress into a buffer of our own: the library must never choose how much to allocate.

    Where the buffer turns out too small it grows, a few times, up to the limit.
    """
    failure = codec_library().DecompressionError
    size = max(_FIRST_BUFFER_BYTES, len(blob) * 4)
    while True:
        size = min(size, MAX_DECOMPRESSED_BYTES)
        buffer = bytearray(size)
        try:
            written = decompress(blob, buffer)
        except failure as fault:
            if str(fault) != _NO_ROOM or size == MAX_DECOMPRESSED_BYTES:
                raise
            size *= _BUFFER_GROWTH
            continue
        del buffer[written:]
        return buffer


def _too_large() -> str:
    return f"more than {MAX_DECOMPRESSED_BYTES} bytes"
