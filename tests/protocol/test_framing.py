"""Framing: frames come out whole and in order, however the bytes were split on their way."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.framing import FrameReader
from protocol.primitives import Malformed

MAX_BYTES = 1_000


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def payloads(reader: FrameReader, data: bytes) -> list[bytes]:
    return [buf[start:end] for buf, start, end in reader.feed(data)]


@settings(deadline=None)
@given(
    sent=st.lists(st.binary(max_size=40), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_any_cutting_of_the_stream_gives_the_same_frames(
    sent: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(framed, sent))
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reader = FrameReader(MAX_BYTES)

    received = [
        payload for start, end in pairwise(edges) for payload in payloads(reader, stream[start:end])
    ]

    assert received == sent
    assert reader.partial_bytes == 0


def test_a_frame_that_arrived_whole_is_not_copied() -> None:
    data = framed(b"one") + framed(b"two")
    reader = FrameReader(MAX_BYTES)

    assert all(buf is data for buf, _, _ in reader.feed(data))
    alone = framed(b"three")
    assert [buf is alone for buf, _, _ in reader.feed(alone)] == [True]


def test_one_byte_at_a_time() -> None:
    reader = FrameReader(MAX_BYTES)
    stream = framed(b"a" * MAX_BYTES) + framed(b"") + framed(b"b")

    received = [p for i in range(len(stream)) for p in payloads(reader, stream[i : i + 1])]

    assert received == [b"a" * MAX_BYTES, b"", b"b"]


def test_only_what_was_sent_is_held() -> None:
    reader = FrameReader(1 << 30)

    assert payloads(reader, (1 << 30).to_bytes(4, "big") + b"x") == []

    assert reader.partial_bytes == 5


@pytest.mark.parametrize(
    ("size", "cause"),
    [
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (b"\x80\x00\x00\x00", "a frame of -2147483648 bytes"),
        (b"\x00\x00\x03\xe9", "a frame of 1001 bytes, more than the 1000 allowed"),
        (b"GET ", "a frame of 1195725856 bytes, more than the 1000 allowed"),
    ],
)
@pytest.mark.parametrize("cut", [0, 2, 4, 8, 9, 11])
def test_a_bad_size_is_malformed_after_the_frames_before_it(
    size: bytes, cause: str, cut: int
) -> None:
    reader = FrameReader(MAX_BYTES)
    stream = framed(b"good") + size
    received: list[bytes] = []

    with pytest.raises(Malformed, match=f"^{cause}$"):
        take(reader, (stream[:cut], stream[cut:]), received)

    assert received == [b"good"]


def take(reader: FrameReader, chunks: tuple[bytes, ...], received: list[bytes]) -> None:
    for chunk in chunks:
        received.extend(buf[start:end] for buf, start, end in reader.feed(chunk))


def test_the_largest_frame_is_allowed() -> None:
    assert payloads(FrameReader(3), framed(b"abc")) == [b"abc"]


def test_only_a_produce_may_be_longer_than_an_ordinary_request() -> None:
    produce, heartbeat = b"\x00\x00" + bytes(8), b"\x00\x0c" + bytes(8)
    assert payloads(FrameReader(10, 9), framed(produce)) == [produce]
    assert payloads(FrameReader(10, 10), framed(heartbeat)) == [heartbeat]
    three = framed(heartbeat[:9]) + framed(produce) + framed(heartbeat[:9])
    assert payloads(FrameReader(10, 9), three) == [
        heartbeat[:9],
        produce,
        heartbeat[:9],
    ]
    with pytest.raises(Malformed, match="10 bytes with api key 12, more than the 9 allowed"):
        payloads(FrameReader(10, 9), framed(heartbeat))
    with pytest.raises(Malformed, match="more than the 10 allowed"):
        payloads(FrameReader(10, 9), framed(produce + b"x"))


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_long_frame_in_pieces_is_refused_once_its_key_is_there(cut: int) -> None:
    for payload, allowed in ((b"\x00\x00" + bytes(8), True), (b"\x00\x0c" + bytes(8), False)):
        data, reader, received = framed(payload), FrameReader(10, 9), []
        if allowed or cut < 6:
            received += payloads(reader, data[:cut])
            assert received == []
        else:
            with pytest.raises(Malformed):
                payloads(reader, data[:cut])
            continue
        if allowed:
            assert payloads(reader, data[cut:]) == [payload]
        else:
            with pytest.raises(Malformed):
                payloads(reader, data[cut:])


def test_a_long_frame_that_comes_byte_by_byte_is_read_once() -> None:
    payload = b"\x00\x00" + bytes(100)
    reader, received = FrameReader(200, 9), []
    for byte in framed(payload) + framed(payload):
        received += payloads(reader, bytes([byte]))
    assert received == [payload, payload]
