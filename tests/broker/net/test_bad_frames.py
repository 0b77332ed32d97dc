"""Bad frames: a peer that breaks the protocol gets what Kafka 4.3.1 gives it: nothing.

Every case runs beside a healthy connection, which must not notice, and leaves a named cause.
"""

import struct

import pytest

from broker.observe.events import PeerFault
from config.limits import ServerLimits
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.names import ApiKey, ErrorCode
from tests.broker.shell import Shell, heartbeat


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(api_key: int, version: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", api_key, version, 7, -1) + (b"\0" if flexible else b"")


CLOSED = {
    "a size of zero": (struct.pack(">i", 0), PeerFault.MALFORMED),
    "a negative size": (struct.pack(">i", -1), PeerFault.BAD_SIZE),
    "the least size": (struct.pack(">i", -(1 << 31)), PeerFault.BAD_SIZE),
    "a size above the limit": (struct.pack(">i", 1_048_577), PeerFault.BAD_SIZE),
    "a TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", PeerFault.BAD_SIZE),
    "an HTTP request": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", PeerFault.BAD_SIZE),
    "less than a header": (framed(b"\x00\x12\x00"), PeerFault.MALFORMED),
    "half a header": (framed(b"\x00\x12\x00\x00\x00\x00"), PeerFault.MALFORMED),
    "an unknown api key": (framed(header(999, 0)), PeerFault.UNKNOWN_API),
    "a negative api key": (framed(header(-1, 0)), PeerFault.UNKNOWN_API),
    "an unserved api key": (framed(header(76, 1) + bytes(8)), PeerFault.UNKNOWN_API),
    "an unserved version": (framed(header(3, 99)), PeerFault.UNKNOWN_VERSION),
    "a negative version": (framed(header(12, -1)), PeerFault.UNKNOWN_VERSION),
    "Produce in an offered but unserved version": (
        framed(header(0, 0) + bytes(10)),
        PeerFault.UNKNOWN_VERSION,
    ),
    "Fetch in a version of the past": (framed(header(1, 0) + bytes(16)), PeerFault.UNKNOWN_VERSION),
    "a body that ends early": (framed(header(12, 0) + b"\0\1g\0\0"), PeerFault.MALFORMED),
    "a null where none may be": (
        framed(header(12, 0) + b"\xff\xff\0\0\0\1\0\1m"),
        PeerFault.MALFORMED,
    ),
    "a client id longer than the request": (
        framed(struct.pack(">hhih", 18, 0, 7, 0x7FFF) + b"a"),
        PeerFault.MALFORMED,
    ),
    "an array longer than the request": (
        framed(header(3, 1) + b"\x7f\xff\xff\xff"),
        PeerFault.MALFORMED,
    ),
    "a varint without an end": (
        framed(header(12, 4, flexible=True) + b"\xff" * 12),
        PeerFault.MALFORMED,
    ),
}


@pytest.mark.parametrize(("sent", "fault"), CLOSED.values(), ids=CLOSED.keys())
async def test_the_line_is_cut_with_a_named_cause(sent: bytes, fault: PeerFault) -> None:
    async with Shell(ServerLimits(socket_request_max_bytes=1_048_576)) as shell:
        healthy, bad = await shell.client(), await shell.client()
        bad.ask(heartbeat())
        bad.send(sent)

        # What was asked before is answered; then the line is cut.
        await bad.answer()
        assert await bad.closed() == b""

        (dropped,) = shell.dropped()
        assert dropped.fault is fault
        assert dropped.peer.startswith("127.0.0.1:")
        assert dropped.detail
        await healthy.call(heartbeat())


async def test_a_bad_client_in_a_loop_gets_one_line_and_the_rest_is_counted() -> None:
    async with Shell() as shell:
        for _ in range(20):
            bad = await shell.client()
            bad.send(framed(header(999, 0)))
            await bad.closed()
        assert len(shell.dropped()) == 1
        assert shell.server.fault_log.counts[PeerFault.UNKNOWN_API] == 20


@pytest.mark.parametrize("version", [5, 9, 32_767, -1])
async def test_api_versions_of_an_unserved_version_is_answered_in_v0(version: int) -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.send(framed(header(18, version, flexible=version >= 3) + b"whatever"))
        assert await client.frame() == bytes.fromhex("00000007002300000001001200000004")

        # The connection is as good as before: the client asks again, in the version that it got.
        answer = await client.call(ApiVersionsRequest("a-client", "1.0"), 4)
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code is ErrorCode.NONE


@pytest.mark.parametrize(("name", "version"), [("a client", "1"), ("x", ""), ("", "1"), ("-", "1")])
async def test_a_client_that_does_not_name_its_software_gets_an_error(
    name: str, version: str
) -> None:
    async with Shell() as shell:
        client = await shell.client()
        answer = await client.call(ApiVersionsRequest(name, version), 3)
        assert answer == ApiVersionsResponse(ErrorCode.INVALID_REQUEST)


async def test_api_versions_offers_what_is_served_and_produce_from_0() -> None:
    async with Shell() as shell:
        client = await shell.client()
        answer = await client.call(ApiVersionsRequest("a-client", "1.0"), 4)
        assert isinstance(answer, ApiVersionsResponse)
        offered = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        assert offered[ApiKey.PRODUCE][0] == 0
        assert offered[ApiKey.JOIN_GROUP] == (0, 9)
        assert set(offered) == set(shell.dispatcher.routes)
        # Share groups are at level 0: they are not named.
        assert [(f.name, f.max_version_level) for f in answer.finalized_features] == [
            ("group.version", 1),
            ("metadata.version", 30),
            ("transaction.version", 2),
        ]
        assert [(f.name, f.max_version) for f in answer.supported_features] == [
            ("group.version", 1),
            ("metadata.version", 30),
            ("transaction.version", 2),
        ]
        older = await client.call(ApiVersionsRequest("a-client", "1.0"), 3)
        assert isinstance(older, ApiVersionsResponse)
        assert [f.name for f in older.supported_features] == ["metadata.version"]
        assert older.finalized_features == answer.finalized_features


async def test_trailing_bytes_are_ignored_as_kafka_ignores_them() -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.send(framed(header(12, 0) + b"\0\1g\0\0\0\1\0\1m" + b"zzz"))
        assert await client.frame() == bytes.fromhex("000000070000")


async def test_a_client_id_that_is_no_text_is_no_fault() -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.send(framed(struct.pack(">hhih", 12, 0, 7, 2) + b"\xff\xfe" + b"\0\1g\0\0\0\1\0\1m"))
        assert await client.frame() == bytes.fromhex("000000070000")
