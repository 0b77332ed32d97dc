"""Hostile clients: a live daemon and malicious or broken clients; no other client notices."""

import asyncio
import contextlib
import random
import socket
import struct

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.codec import RequestHeader, Unwritable, encode_request
from protocol.names import ErrorCode
from tests.broker.daemon import Daemon
from tests.broker.members import Member, make_topic
from tests.broker.net.test_bad_frames import CLOSED
from tests.broker.shell import Client, Shell, heartbeat
from tests.coordinator.frames import Frames
from tests.protocol.samples import EVERY_MESSAGE, sample


async def test_the_whole_corpus_beside_a_healthy_member(daemon: Daemon) -> None:
    client = await Client.connect(daemon.port)
    await make_topic(client)
    member = Member(client)
    await member.enter()
    for offset, (name, (sent, _)) in enumerate(CLOSED.items()):
        if name == "a size above the limit":
            sent = struct.pack(">i", 104_857_601)
        bad = await Client.connect(daemon.port)
        bad.send(sent)
        assert await bad.closed() == b"", name
        assert await member.commit(offset) is ErrorCode.NONE
    assert "Traceback" not in daemon.log()
    assert "Unexpected error" not in daemon.log()
    assert daemon.log().count("Closing connection") >= 4  # one for each kind of cause


@pytest.mark.parametrize("spoilt_bytes", [0, 1, 5])
async def test_nonsense_of_every_kind_and_version(daemon: Daemon, spoilt_bytes: int) -> None:
    """Well-formed requests full of nonsense, some of them damaged: answered, refused or cut off."""
    chance = random.Random(20_261_121 + spoilt_bytes)
    member = Member(await Client.connect(daemon.port), "a group of its own")
    await member.enter()
    for cls, version in EVERY_MESSAGE:
        if not cls.__name__.endswith("Request"):
            continue
        header = RequestHeader(cls.API_KEY, version, 7, "hostile")
        try:
            frame = bytearray(encode_request(header, sample(cls, version, chance)))
        except Unwritable:
            continue
        for _ in range(spoilt_bytes):
            frame[chance.randrange(12, len(frame))] = chance.randrange(256)
        bad = await Client.connect(daemon.port)
        bad.send(bytes(frame))
        bad.writer.write_eof()
        await bad.closed()
        bad.close()
        assert await member.beat() is ErrorCode.NONE, f"after {cls.__name__} v{version}"
    assert "Traceback" not in daemon.log()
    assert "Unexpected error" not in daemon.log(), daemon.log()[-3_000:]
    assert daemon.get("/readyz")[0] == 200


async def test_extreme_values_in_valid_requests_fail_no_partition(daemon: Daemon) -> None:
    """What tests/coordinator/test_any_request.py does in virtual time, through real sockets."""
    chance = random.Random(20_261_122)
    member = Member(await Client.connect(daemon.port), "a group of its own")
    await make_topic(member.client)
    await member.enter()
    frames = Frames(chance)
    frames.extreme = 0.3
    for number in range(200):
        frame = frames.next()
        bad = await Client.connect(daemon.port)
        bad.send(struct.pack(">i", len(frame)) + frame)
        bad.writer.write_eof()
        bad.close()
        assert await member.commit(number) is ErrorCode.NONE, f"after frame {number}"
    assert "Traceback" not in daemon.log()
    assert "Unexpected error" not in daemon.log(), daemon.log()[-3_000:]
    assert daemon.get("/readyz")[0] == 200


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.binary(max_size=64), max_size=8))
def test_any_bytes_in_any_pieces(pieces: list[bytes]) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with Shell() as shell:
            healthy = await shell.client()
            with socket.socket() as bad:
                bad.setblocking(False)
                await loop.sock_connect(bad, ("127.0.0.1", shell.listener.port))
                for piece in pieces:
                    with contextlib.suppress(OSError):  # it may have been cut off already
                        await loop.sock_sendall(bad, piece)
                    await healthy.call(heartbeat())
                with contextlib.suppress(OSError):
                    bad.shutdown(socket.SHUT_WR)
                    while await loop.sock_recv(bad, 4_096):
                        pass
            await healthy.call(heartbeat())
            assert len(shell.server.connections) == 1

    uvloop.run(scenario())
