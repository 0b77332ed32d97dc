"""Headers, versions and frames: what a request says of itself, and which answer it can get."""

import pytest

from protocol.api_names import api_name
from protocol.codec import (
    Malformed,
    RequestDecoder,
    RequestHeader,
    ResponseHeader,
    UnknownApiKey,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from protocol.messages import REQUESTS, RESPONSES
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchRequest
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.names import ApiKey, ErrorCode, GenerationId, GroupId, MemberId, TopicName

EVERY_API_AND_VERSION = [
    (api_key, version) for api_key, cls in REQUESTS.items() for version in cls.VERSIONS
]


def request_bytes(hex_bytes: str) -> tuple[bytes, int, int]:
    """A frame in the middle of a buffer."""
    payload = bytes.fromhex(hex_bytes)
    return b"\xee" * 3 + payload + b"\xee" * 9, 3, 3 + len(payload)


def test_a_request_is_read_where_it_lies() -> None:
    frame = request_bytes(
        "000c 0004 00000007 0002 6331 00"  # api key, version, correlation id, client id, tags
        "02 67 00000005 04 6d2d31 00 00"  # group, generation, member, no instance id, tags
    )

    assert decode_request(*frame) == (
        RequestHeader(ApiKey.HEARTBEAT, 4, 7, "c1"),
        HeartbeatRequest(GroupId("g"), GenerationId(5), MemberId("m-1"), None),
    )


@pytest.mark.parametrize("version", [3, 4])
def test_no_client_id_is_an_empty_one(version: int) -> None:
    body = "0001 67 00000005 0001 6d ffff" if version == 3 else "00 02 67 00000005 02 6d 00 00"
    header, _ = decode_request(*request_bytes(f"000c 000{version} 00000007 ffff {body}"))

    assert header == RequestHeader(ApiKey.HEARTBEAT, version, 7, "")


def test_unknown_tags_are_skipped() -> None:
    frame = request_bytes(
        "000c 0004 00000007 0000 01 63 02 aaaa"  # tag 99 in the header
        "02 67 00000005 02 6d 00 02 00 00 ac02 03 aabbcc"  # tags 0 and 300 in the body
    )

    _, request = decode_request(*frame)

    assert request == HeartbeatRequest(GroupId("g"), GenerationId(5), MemberId("m"), None)


def test_the_size_of_a_known_tag_is_ignored() -> None:
    body = "ffffffff 00000000 00000001 00000001 00 00000000 ffffffff 01 01 01"
    frame = request_bytes(f"0001 000c 00000007 0000 00 {body} 01 00 7f 02 61")

    _, request = decode_request(*frame)

    assert isinstance(request, FetchRequest)
    assert request.cluster_id == "a"


def test_bytes_after_a_whole_request_are_ignored() -> None:
    buf, start, end = request_bytes("000c 0000 00000007 0000 0001 67 00000005 0001 6d 0bad")

    _, request = decode_request(buf, start, end)

    assert request == HeartbeatRequest(GroupId("g"), GenerationId(5), MemberId("m"))


BAD_REQUESTS = {
    "": "a request of 0 bytes",
    "000c": "a request of 2 bytes",
    "000c 0004": "HeartbeatRequest v4 ends too early",
    "000c 0004 00000007 0005 6162": "HeartbeatRequest v4 ends too early",
    "000c 0000 00000007 0000 ffff": "HeartbeatRequest v0: group_id is null",
    "000c 0000 00000007 0000 8000": "HeartbeatRequest v0: group_id is null",
    "000c 0004 00000007 0000 00 00": "HeartbeatRequest v4: group_id is null",
    "000c 0004 00000007 0000 00 818002 00": "HeartbeatRequest v4: a string of 32768 bytes",
    "000c 0004 00000007 0000 00 ffffffffff": "HeartbeatRequest v4: a varint of more than 31 bits",
    "000c 0004 00000007 0000 01 05 7f 00": "HeartbeatRequest v4 ends too early",
    "000f 0000 00000007 0000 ffffffff": "DescribeGroupsRequest v0: groups is null",
    "000f 0000 00000007 0000 7fffffff": "DescribeGroupsRequest v0: 2147483647 groups cannot fit",
    "000f 0005 00000007 0000 00 ffffffff07 00": "DescribeGroupsRequest v5: 2147483646 groups cannot"
    " fit",
    "0013 0005 00000007 0000 00 01": "CreateTopicsRequest v5 ends too early",
    "0001 000d 00000007 0000 00": "FetchRequest v13 ends too early",
    "0004 0000 00000007 0000": "LeaderAndIsr (api key 4), version 0, client id ''",
    "ffff 0000 00000007 0000": "api key -1, version 0, client id ''",
    "005d 0000 00000007 0000": "api key 93, version 0, client id ''",
    "004c 0000 00000007 0002 6331 00": "ShareGroupHeartbeat (api key 76), version 0, "
    "client id 'c1'",
    "004e 0001 00000007 ffff": "ShareFetch (api key 78), version 1",
    "004e 0001 00000007": "ShareFetch (api key 78), version 1",
    "004e 0001 00000007 0003 6331": "ShareFetch (api key 78), version 1",
    "004e 0001 00000007 0002 1bff": "ShareFetch (api key 78), version 1, client id '\\x1b\ufffd'",
    f"004e 0001 00000007 0200 {'61' * 512}": "ShareFetch (api key 78), version 1, "
    f"client id '{'a' * 80}...'",
    "000c 0005 00000007 0000": "Heartbeat (api key 12), version 5, client id ''",
    "000c ffff 00000007 0000": "Heartbeat (api key 12), version -1, client id ''",
    "0000 0002 00000007 0000": "Produce (api key 0), version 2, client id ''",
    "0016 0006 00000007 0000": "InitProducerId (api key 22), version 6, client id ''",
}


@pytest.mark.parametrize(("hex_bytes", "cause"), BAD_REQUESTS.items())
def test_each_fault_of_the_peer_has_a_name(hex_bytes: str, cause: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode_request(*request_bytes(hex_bytes))

    assert str(refused.value) == cause


def test_unknown_apis_and_unserved_versions_are_distinct_errors() -> None:
    with pytest.raises(UnknownApiKey):
        decode_request(*request_bytes("0004 0000 00000007 0000"))
    with pytest.raises(UnsupportedVersion):
        decode_request(*request_bytes("000c 0005 00000007 0000"))


def test_an_api_without_a_handler_is_unknown_and_its_body_is_not_decoded() -> None:
    decoder = RequestDecoder({ApiKey.HEARTBEAT})
    unserved = request_bytes("001a 0000 00000007 0002 6331 00")

    with pytest.raises(UnknownApiKey, match=r"^EndTxn \(api key 26\), version 0, client id 'c1'$"):
        decoder.decode(*unserved)
    with pytest.raises(Malformed, match=r"^EndTxnRequest v0 ends too early$"):
        decode_request(*unserved)


def test_what_is_declared_is_named_as_kafka_names_it() -> None:
    for api_key in ApiKey:
        assert api_name(api_key).split()[0].upper() == api_key.name.replace("_", "")


@pytest.mark.parametrize(("api_key", "version"), EVERY_API_AND_VERSION)
def test_headers_go_with_their_bodies(api_key: ApiKey, version: int) -> None:
    header = RequestHeader(api_key, version, -3, "client")
    request, response = REQUESTS[api_key](), RESPONSES[api_key]()

    asked = encode_request(header, request)
    answered = encode_response(api_key, version, -3, response)

    assert asked[:4] == (len(asked) - 4).to_bytes(4, "big")
    assert decode_request(asked, 4, len(asked)) == (header, request)
    assert answered[:8] == (len(answered) - 4).to_bytes(4, "big") + b"\xff\xff\xff\xfd"
    assert decode_response(api_key, version, answered, 4, len(answered)) == (
        ResponseHeader(-3),
        response,
    )


def test_the_bytes_of_an_answer() -> None:
    plain = encode_response(ApiKey.HEARTBEAT, 0, 7, HeartbeatResponse(0, ErrorCode.NONE))
    response = HeartbeatResponse(1, ErrorCode.REBALANCE_IN_PROGRESS)
    flexible = encode_response(ApiKey.HEARTBEAT, 4, 7, response)

    assert plain.hex(" ", 2) == "0000 0006 0000 0007 0000"
    assert flexible.hex() == "0000000c000000070000000001001b00"


def test_a_large_payload_is_framed_like_a_small_one() -> None:
    header = RequestHeader(ApiKey.PRODUCE, 9, 1, "p")
    for records in (None, b"", b"r" * 100_000):
        frame = encode_request(header, _produce(records))

        assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
        assert decode_request(frame, 4, len(frame))[1] == _produce(records)


def _produce(records: bytes | None) -> ProduceRequest:
    partitions = (PartitionProduceData(0, records), PartitionProduceData(1, b"x"))
    topic = TopicProduceData(TopicName("t"), partition_data=partitions)
    return ProduceRequest(None, -1, 30_000, (topic,))


class TestUnservedApiVersions:
    """A client opens with its newest version; it must be able to read the answer."""

    @pytest.mark.parametrize("version", [5, 9, 32767])
    def test_only_the_header_is_read(self, version: int) -> None:
        frame = request_bytes(f"0012 {version:04x} 00000007 0002 6331 00 deadbeef")

        header, request = decode_request(*frame)

        assert header == RequestHeader(ApiKey.API_VERSIONS, version, 7, "c1")
        assert request == ApiVersionsRequest()

    def test_a_negative_version_has_the_old_header(self) -> None:
        header, _ = decode_request(*request_bytes("0012 ffff 00000007 0002 6331"))

        assert header == RequestHeader(ApiKey.API_VERSIONS, -1, 7, "c1")

    def test_a_header_that_is_cut_off_is_malformed(self) -> None:
        with pytest.raises(Malformed, match="RequestHeader v2 ends too early"):
            decode_request(*request_bytes("0012 0009 00000007 0009 6331"))

    @pytest.mark.parametrize("version", [5, 9, -1])
    def test_the_answer_is_in_v0(self, version: int) -> None:
        response = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, (ApiVersion(18, 0, 4),))

        frame = encode_response(ApiKey.API_VERSIONS, version, 7, response)

        assert frame.hex() == ("0000001000000007002300000001001200000004")


def test_the_header_of_an_api_versions_answer_has_no_tags() -> None:
    frame = encode_response(ApiKey.API_VERSIONS, 3, 7, ApiVersionsResponse())

    assert frame.hex() == "0000000c000000070000010000000000"
