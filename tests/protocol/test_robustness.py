"""Can a peer make us do anything but answer or close the connection?

Whatever is cut off, flipped or made up, reading it either gives a message or raises `Malformed`.
"""

import tracemalloc
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.codec import RequestHeader, decode_request, encode_request
from protocol.compiler import reader, writer
from protocol.messages import REQUESTS
from protocol.messages.join_group import JoinGroupRequest
from protocol.names import ApiKey
from protocol.primitives import Malformed
from protocol.schema import Message
from tests.protocol.samples import EVERY_MESSAGE, message_id, sample

every_message = st.sampled_from(EVERY_MESSAGE)
every_request = st.sampled_from(
    [(api_key, version) for api_key, cls in REQUESTS.items() for version in cls.VERSIONS]
)


@settings(max_examples=500, deadline=None)
@given(kind=every_message, random=st.randoms(use_true_random=False))
def test_what_is_written_is_read_back(kind: tuple[type[Message], int], random: Random) -> None:
    cls, version = kind
    message = sample(cls, version, random)
    raw = writer(cls, version)(message)

    assert reader(cls, version)(b"before" + raw + b"after", 6, 6 + len(raw)) == message


@pytest.mark.parametrize(("cls", "version"), EVERY_MESSAGE, ids=message_id)
def test_a_message_cut_off_anywhere_is_malformed(cls: type[Message], version: int) -> None:
    raw = writer(cls, version)(sample(cls, version, Random(f"cut {cls} {version}")))
    read = reader(cls, version)

    for end in range(len(raw)):
        with pytest.raises(Malformed):
            read(raw[:end], 0, end)
        with pytest.raises(Malformed):
            read(raw, 0, end)  # The buffer goes on, with what belongs to the next frame.


@settings(max_examples=500, deadline=None)
@given(
    kind=every_request,
    random=st.randoms(use_true_random=False),
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 7)), min_size=1, max_size=4),
)
def test_flipped_bits_give_a_request_or_malformed(
    kind: tuple[ApiKey, int], random: Random, flips: list[tuple[int, int]]
) -> None:
    api_key, version = kind
    header = RequestHeader(api_key, version, 7, "client")
    frame = bytearray(encode_request(header, sample(REQUESTS[api_key], version, random)))
    for position, bit in flips:
        frame[4 + position % (len(frame) - 4)] ^= 1 << bit

    read_or_refuse(bytes(frame))


@settings(max_examples=500, deadline=None)
@given(kind=every_request, body=st.binary(max_size=200))
def test_made_up_bytes_give_a_request_or_malformed(kind: tuple[ApiKey, int], body: bytes) -> None:
    api_key, version = kind
    head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4)

    read_or_refuse(bytes(4) + head + body)
    read_or_refuse(bytes(4) + head + b"\xff\xff\x00" + body)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_give_a_request_or_malformed(payload: bytes) -> None:
    read_or_refuse(bytes(4) + payload)


def read_or_refuse(frame: bytes) -> None:
    with suppress(Malformed):
        header, request = decode_request(frame, 4, len(frame))
        assert type(request) is REQUESTS[header.api_key]


@pytest.mark.parametrize("version", [5, 6], ids=["plain", "compact"])
def test_a_count_or_length_that_lies_allocates_nothing(version: int) -> None:
    """A length is worth no more than the bytes that follow it."""
    raw = writer(JoinGroupRequest, version)(JoinGroupRequest(protocol_type="consumer"))
    lie = b"\xff\xff\xff\xff\x07" if version == 6 else b"\x7f\xff\xff\xff"
    lies = [raw[:end] + lie + bytes(100) for end in range(len(raw))]
    read = reader(JoinGroupRequest, version)

    tracemalloc.start()
    try:
        for liar in lies:
            with suppress(Malformed):
                read(liar, 0, len(liar))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 100_000
