"""Slow and large requests: at the admin port each connection has its time, and a head its size."""

import asyncio
import gc
import ssl
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from broker.net.sockets import bind_admin
from broker.net.tls.channel import TlsChannel
from console import app, connections
from console.app import Console
from tests.broker.node import Node

WAIT_S = 60.0
HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
SOON_S = 0.05
"""In place of the ten seconds that a head may take."""


@pytest.fixture(params=["plain", "TLS"])
def with_tls(request: pytest.FixtureRequest) -> bool:
    return request.param == "TLS"


class AdminPort:
    """A node's console on a free port, without TLS or with it."""

    def __init__(self, console: Console, port: int, context: ssl.SSLContext | None) -> None:
        self.console, self.port, self._context = console, port, context

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host = "localhost" if self._context else None
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self._context, server_hostname=host
        )

    async def connect_silently(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """With TLS, its handshake never begins."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, request: bytes) -> bytes:
        """The whole answer, until the port closes the connection."""
        reader, writer = await self.connect()
        writer.write(request)
        return await rest(reader, writer)


async def rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    answer = b""
    try:
        while part := await asyncio.wait_for(reader.read(65_536), WAIT_S):
            answer += part
    except ConnectionError:
        pass  # the port has closed it with bytes unread
    writer.transport.abort()
    return answer


@asynccontextmanager
async def admin_port(folder: Path, *, with_tls: bool) -> AsyncIterator[AdminPort]:
    values: dict[str, str] = {}
    context = None
    if with_tls:
        authority = trustme.CA()
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
            folder / "admin.pem"
        )
        context = ssl.create_default_context()
        authority.configure_trust(context)
        values = {"rollcall_admin_ssl_certificate": str(folder / "admin.pem")}
    async with Node(folder / "data", values) as node:
        bound = bind_admin("127.0.0.1", 0)
        console = Console(node.daemon)
        await console.open(bound)
        try:
            yield AdminPort(console, bound.port, context)
        finally:
            await console.close()
            bound.close()


async def test_a_head_that_comes_too_slowly(
    tmp_path: Path, with_tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", SOON_S)
        reader, writer = await port.connect_silently()
        assert await rest(reader, writer) == b""  # not a byte of a head, or of a handshake
        try:
            reader, writer = await port.connect()
            writer.write(HEAD)
            dripping = asyncio.create_task(drip(writer, b"X: y\r\n"))
            assert await rest(reader, writer) == b""
            dripping.cancel()
        except OSError:
            assert with_tls  # even the handshake was too slow
        assert not len(port.console.connections)


async def drip(writer: asyncio.StreamWriter, piece: bytes) -> None:
    while not writer.transport.is_closing():
        writer.write(piece)
        await asyncio.sleep(SOON_S / 10)


@pytest.mark.parametrize(
    "form", [b"Content-Length: 1000000\r\n", b"Transfer-Encoding: chunked\r\n"]
)
async def test_a_body_is_not_waited_for(
    tmp_path: Path, with_tls: bool, form: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes before the body; then the connection is closed, though the body goes on."""
    monkeypatch.setattr(connections, "LINGERING_S", SOON_S)
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        reader, writer = await port.connect()
        writer.write(HEAD + form + b"\r\n")
        dripping = asyncio.create_task(drip(writer, b"1\r\na\r\n" if b"chunked" in form else b"a"))
        answer = await rest(reader, writer)
        dripping.cancel()
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert answer.count(b"HTTP/1.1") == 1


async def test_nothing_is_answered_behind_a_body(tmp_path: Path, with_tls: bool) -> None:
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        hidden = HEAD + b"\r\n"
        length = f"Content-Length: {len(hidden)}\r\n\r\n".encode()
        for request in (HEAD + length + hidden, HEAD + length + hidden + hidden):
            answer = await port.ask(request)
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("empty_lines", [b"", b"\r\n\r\n\r\n"])
async def test_a_head_has_a_largest_size(
    tmp_path: Path, with_tls: bool, empty_lines: bytes
) -> None:
    line = b"X: " + b"y" * 8_000 + b"\r\n"
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        for few in (1, 7):
            answer = await port.ask(empty_lines + HEAD + few * line + b"Connection: close\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200 ")
        reader, writer = await port.connect()
        writer.write(empty_lines + HEAD)
        for _ in range(10):
            if writer.transport.is_closing():
                break
            writer.write(line)
            await writer.drain()
            await asyncio.sleep(0)
        answer = await rest(reader, writer)
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"X-Content-Type-Options: nosniff" in answer
        too_long = await port.ask(HEAD + b"X: " + b"y" * 9_000 + b"\r\n\r\n")
        assert b" 400 " in too_long.partition(b"\r\n")[0]
        too_many = await port.ask(HEAD + b"X: y\r\n" * 200 + b"\r\n")
        assert b" 400 " in too_many.partition(b"\r\n")[0]


async def test_the_end_of_a_head_in_pieces(tmp_path: Path, with_tls: bool) -> None:
    """A connection may ask for more than the size of a head, one request after another."""
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        reader, writer = await port.connect()
        request = HEAD + b"X: " + b"y" * 8_000 + b"\r\n\r\n"
        for cut in range(1, 12):
            for piece in (request[:-cut], request[-cut:]):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)  # so that they arrive apart, mostly
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\nok\n"), WAIT_S)
            assert head.startswith(b"HTTP/1.1 200 ")
        writer.transport.abort()


async def test_many_silent_connections_keep_nobody_out(
    tmp_path: Path, with_tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 8)
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        silent = [await port.connect_silently() for _ in range(40)]
        for _ in range(3):
            answer = await port.ask(HEAD + b"Connection: close\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert len(port.console.connections) <= 8
        ended = [await rest(*each) for each in silent[:32]]
        assert ended == [b""] * 32  # the oldest gave way
        for _, writer in silent:
            writer.transport.abort()


async def test_who_closes_its_half_is_gone(tmp_path: Path, with_tls: bool) -> None:
    async with admin_port(tmp_path, with_tls=with_tls) as port:
        reader, writer = await port.connect_silently()
        writer.write_eof()
        assert await rest(reader, writer) == b""
        reader, writer = await port.connect()
        if not with_tls:  # a close_notify closes both halves
            writer.write_eof()
            assert await rest(reader, writer) == b""
        writer.close()
        async with asyncio.timeout(WAIT_S):
            while len(port.console.connections):  # noqa: ASYNC110 - the port has no such event
                await asyncio.sleep(0.001)


async def test_a_request_before_the_end_of_its_half_is_answered(tmp_path: Path) -> None:
    async with admin_port(tmp_path, with_tls=False) as port:
        for ending in (b"\r\n", b"Connection: keep-alive\r\n\r\n"):
            reader, writer = await port.connect()
            writer.write(HEAD + ending)
            writer.write_eof()
            answer = await rest(reader, writer)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.endswith(b"ok\n")


async def test_closed_connections_are_freed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels: weakref.WeakSet[TlsChannel] = weakref.WeakSet()

    class Watched(TlsChannel):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            channels.add(self)

    monkeypatch.setattr(app, "TlsChannel", Watched)
    gc.disable()
    try:
        async with admin_port(tmp_path, with_tls=True) as port:
            answer = await port.ask(HEAD + b"Connection: close\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200 ")
            _, writer = await port.connect_silently()
            writer.transport.abort()
            async with asyncio.timeout(WAIT_S):
                while len(channels):  # noqa: ASYNC110 - they have no such event
                    await asyncio.sleep(0.001)
    finally:
        gc.enable()
