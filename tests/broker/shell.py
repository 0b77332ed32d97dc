"""A shell without a daemon: a Server on a free port, and a core that does as the test says.

`Shell` runs in the test's own loop; `Client` is a plain socket with the project's codec, so a test
reads like a conversation.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Self

from broker.loop.clock import SystemClock
from broker.loop.ticker import Ticker
from broker.net.dispatch import Dispatcher
from broker.net.server import Server
from broker.net.sockets import Bound, bind_listener
from broker.observe.events import ConnectionDropped, ShellEvent
from config.limits import ServerLimits
from config.listeners import Listener
from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.messages import REQUESTS, Request, Response
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.names import ApiKey, GroupId, MemberId
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken

WAIT_S = 60.0
"""How long a test waits for what must happen before it says that it did not."""


@dataclass
class FakeCore:
    """Answers heartbeats at once and keeps everything else, until the test answers it."""

    asked: list[tuple[Request, ReplyToken]] = field(default_factory=list)
    gone: list[ReplyToken] = field(default_factory=list)
    reply: Callable[[ReplyToken, Response | None], None] | None = None
    on_request: Callable[[Request, ReplyToken], None] | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def handlers(self) -> dict[ApiKey, Handler]:
        return dict.fromkeys(REQUESTS.keys() - {ApiKey.API_VERSIONS}, self.handle)

    def handle(self, request: Request, token: ReplyToken, now: Now) -> None:
        self.asked.append((request, token))
        self.arrived.set()
        if self.on_request is not None:
            self.on_request(request, token)
        elif isinstance(request, HeartbeatRequest):
            self.answer(token, HeartbeatResponse())

    def answer(self, token: ReplyToken, response: Response | None) -> None:
        assert self.reply is not None
        self.reply(token, response)

    def disconnected(self, token: ReplyToken, now: Now) -> None:
        self.gone.append(token)
        self.arrived.set()

    def tokens(self, kind: type[Request]) -> list[ReplyToken]:
        return [token for request, token in self.asked if isinstance(request, kind)]

    async def until(self, enough: Callable[[], bool]) -> None:
        """Wait until the core has seen what the test waits for."""

        async def wait() -> None:
            while not enough():
                self.arrived.clear()
                await self.arrived.wait()

        await asyncio.wait_for(wait(), WAIT_S)


class Shell:
    def __init__(
        self,
        limits: ServerLimits | None = None,
        *,
        clock: SystemClock | None = None,
        stopwatch: Callable[[], float] = perf_counter,
    ) -> None:
        self.limits = limits or ServerLimits()
        self.events: list[ShellEvent] = []
        self.core = FakeCore()
        self.clock = clock or SystemClock()
        loop = asyncio.get_running_loop()
        self.server = Server(loop, self.clock, self.limits, self.events.append, stopwatch)
        self.core.reply = self.server.reply
        self.dispatcher = Dispatcher(self.server.reply, self.core)
        self.ticker = Ticker(loop, self.clock, self._on_fault)
        self.faults: list[Exception] = []
        self.listener: Bound

    def _on_fault(self, error: Exception) -> None:
        self.faults.append(error)

    async def __aenter__(self) -> Self:
        self.listener = bind_listener(
            Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0),
            backlog=self.limits.socket_listen_backlog_size,
            send_buffer_bytes=-1,
            receive_buffer_bytes=-1,
        )
        await self.server.serve(self.dispatcher, [self.listener])
        self.ticker.start([self.server])
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.ticker.stop()
        self.server.stop_accepting()
        for connection in tuple(self.server.connections):
            connection.abort()
        await self.server.drain(WAIT_S)
        assert self.faults == []

    async def client(self) -> "Client":
        return await Client.connect(self.listener.port)

    def dropped(self) -> list[ConnectionDropped]:
        return [event for event in self.events if isinstance(event, ConnectionDropped)]


class Client:
    """A client's side of one connection, to a Shell or to a real daemon."""

    @classmethod
    async def connect(cls, port: int, host: str = "127.0.0.1") -> Self:
        return cls(*await asyncio.open_connection(host, port))

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0
        self.client_id = "a-client"
        self._asked: list[tuple[ApiKey, int]] = []

    def ask(self, request: Request, version: int | None = None) -> None:
        self.send(self.framed(request, version))

    def framed(self, request: Request, version: int | None = None) -> bytes:
        api_key = request.API_KEY
        if version is None:
            version = REQUESTS[api_key].VERSIONS.stop - 1
        self.correlation_id += 1
        self._asked.append((api_key, version))
        return encode_request(
            RequestHeader(api_key, version, self.correlation_id, self.client_id), request
        )

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes:
        """The next frame without its size."""

        async def read() -> bytes:
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

        return await asyncio.wait_for(read(), WAIT_S)

    async def answer(self) -> tuple[int, Response]:
        """(correlation id, response) of the oldest request that has no answer yet."""
        frame = await self.frame()
        api_key, version = self._asked.pop(0)
        header, response = decode_response(api_key, version, frame, 0, len(frame))
        return header.correlation_id, response

    async def call(self, request: Request, version: int | None = None) -> Response:
        self.ask(request, version)
        correlation_id, response = await self.answer()
        assert correlation_id == self.correlation_id
        return response

    async def closed(self) -> bytes:
        """What still comes until the other side closes."""
        try:
            return await asyncio.wait_for(self.reader.read(-1), WAIT_S)
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Close with an RST instead of a FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def heartbeat(member_id: str = "m") -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GroupId("g"), generation_id=1, member_id=MemberId(member_id))


def join() -> JoinGroupRequest:
    return JoinGroupRequest(group_id=GroupId("g"))


def commit() -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id=GroupId("g"))
