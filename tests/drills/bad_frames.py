"""Bad frames: what a broken or hostile client sends before and after it is authenticated.

A frame is drawn from a seed: valid requests with bits flipped, cut, doubled or with another size;
SASL tokens with odd content; pieces of TLS records; noise.
"""

import random
import struct
from collections.abc import Sequence

from protocol.codec import RequestHeader, encode_request
from protocol.messages import REQUESTS, Request
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "plain", "GSSAPI", "", "x" * 300)
TOKENS = (
    b"",
    b"\0alice\0wrong",
    b"\0" * 50,
    b"alice\0bob\0secret",
    b"n,,n=alice,r=abc",
    b"n,,n==2C=3D,r=",
    b"y,,n=a,r=b,c=d",
    b"p=tls-unique,,n=a,r=b",
    b"n,a=bob,n=alice,r=abc",
    b"c=biws,r=abc,p=AAAA",
    b"n,,\x01auth=Bearer a.b.c\x01\x01",
    b"\xff\xfe\xfd",
    b"\x01",
)
CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(32) + b"\x00" * 160


class BadFrames:
    """`frame` is the next one; `opening` what a connection may begin with."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def opening(self) -> bytes:
        """The valid beginning of an exchange, or nothing."""
        kind = self._random.randrange(4)
        if kind == 0:
            return b""
        requests: list[Request] = [ApiVersionsRequest("fuzz", "1")] if kind > 1 else []
        if kind == 3:
            requests.append(SaslHandshakeRequest(self._random.choice(MECHANISMS[:3])))
        return b"".join(self._encoded(request) for request in requests)

    def frame(self) -> bytes:
        choose = self._random.randrange(10)
        if choose == 0:
            return self._random.randbytes(self._random.randrange(1, 200))
        if choose == 1:
            return struct.pack(">i", self._random.choice((-1, 0, 1, 8, 600_000, 2**31 - 1)))
        if choose == 2:
            return self._mutated(CLIENT_HELLO)
        frame = self._encoded(self._request())
        return frame if choose < 5 else self._mutated(frame)

    def _request(self) -> Request:
        token = self._random.choice(TOKENS) + self._random.randbytes(self._random.randrange(4))
        requests: Sequence[Request] = (
            SaslAuthenticateRequest(token),
            SaslAuthenticateRequest(token),
            SaslHandshakeRequest(self._random.choice(MECHANISMS)),
            ApiVersionsRequest("\x7f" * self._random.randrange(200), "1"),
            HeartbeatRequest(),
            JoinGroupRequest(),
            MetadataRequest(()),
        )
        return self._random.choice(requests)

    def _encoded(self, request: Request) -> bytes:
        versions = REQUESTS[request.API_KEY].VERSIONS
        version = self._random.choice(versions)
        number = self._random.randrange(2**31)
        return encode_request(RequestHeader(request.API_KEY, version, number, "fuzz"), request)

    def _mutated(self, frame: bytes) -> bytes:
        changed = bytearray(frame)
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(changed))
            match self._random.randrange(4):
                case 0:
                    changed[at] ^= 1 << self._random.randrange(8)
                case 1:
                    del changed[at + 1 :]
                case 2:
                    changed[at:at] = changed[: self._random.randrange(1, 20)]
                case _:
                    changed[at] = self._random.choice((0, 0x7F, 0x80, 0xFF))
        return bytes(changed)
