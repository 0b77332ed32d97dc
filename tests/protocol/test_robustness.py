"""Robustness: whatever a peer sends, it gets an answer or a closed connection.

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
from protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.names import ApiKey
from protocol.primitives import Malformed, uvarint
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


def frame_of(api_key: ApiKey, version: int, body: bytes, tags: bytes = b"\0") -> bytes:
    """A frame without its size, of a flexible version; `tags` are the header's."""
    head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    return head + tags + body


MANY = 1 << 21
FLOODS = {
    "names": frame_of(ApiKey.DESCRIBE_GROUPS, 5, uvarint(MANY + 1) + b"\1" * MANY + b"\0\0"),
    "nulls": frame_of(ApiKey.METADATA, 9, uvarint(MANY + 1) + b"\0\0" * MANY),
    "protocols": frame_of(
        ApiKey.JOIN_GROUP, 6, b"\2g" + bytes(8) + b"\1\0\1" + uvarint(1_002) + b"\1\1\0" * 1_001
    ),
    "partitions": frame_of(
        ApiKey.OFFSET_FETCH,
        8,
        b"\3" + (b"\2g\2\2t" + uvarint(600_001) + bytes(4 * 600_000) + b"\0\0") * 2 + b"\0\0",
    ),
    "tags of a header": frame_of(ApiKey.HEARTBEAT, 4, b"", uvarint(MANY) + b"\0\0" * MANY),
    "tags of a body": frame_of(
        ApiKey.HEARTBEAT, 4, b"\2g" + bytes(4) + b"\2m\0" + uvarint(MANY) + b"\0\0" * MANY
    ),
    "tags where some are known": frame_of(
        ApiKey.FETCH, 12, bytes(25) + b"\1\1\1" + uvarint(MANY) + b"\x63\0" * MANY
    ),
    "tags of an unknown version": frame_of(
        ApiKey.API_VERSIONS, 99, b"", uvarint(MANY) + b"\0\0" * MANY
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_small_elements_is_refused_before_anything_is_made_of_them(name: str) -> None:
    frame = FLOODS[name]
    with suppress(Malformed):
        decode_request(frame[:20], 0, 20)  # the reader is compiled outside of what is measured
    tracemalloc.start()
    try:
        with pytest.raises(Malformed, match=r"more t(han|ags)|elements"):
            decode_request(frame, 0, len(frame))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(frame)


def test_a_commit_of_a_million_partitions_is_read() -> None:
    """As large as one may be; the offsets topic's message.max.bytes will refuse it."""
    count = 1_000_000
    partition = bytes(16) + b"\1\0"
    body = b"\2g" + bytes(4) + b"\1\0\2\2t" + uvarint(count + 1) + partition * count + b"\0\0"
    _, request = decode_request(frame := frame_of(ApiKey.OFFSET_COMMIT, 9, body), 0, len(frame))
    assert isinstance(request, OffsetCommitRequest)
    assert len(request.topics[0].partitions) == count


def test_answers_and_records_have_no_such_limit() -> None:
    """What we wrote ourselves, or ask a broker for, may be as long as it is."""
    many = (ListedGroup(),) * 300_000
    raw = writer(ListGroupsResponse, 5)(ListGroupsResponse(groups=many))
    assert len(reader(ListGroupsResponse, 5)(raw, 0, len(raw)).groups) == len(many)
