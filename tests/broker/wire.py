"""A server without sockets: real connections over simulated transports, in virtual time.

`Wire` is the loop, the clock and the server; `Pipe` is one transport together with the client at
its other end. A pipe does what uvloop's transport does: it pauses and resumes its protocol at the
marks of its write buffer, keeps what arrives while reading is paused, reports the end of the stream
after the last byte, and calls `connection_lost` in a later pass of the loop. Nothing sleeps here:
the test decides when a client reads, when the loop runs, and what time it is.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from broker.loop.clock import SystemClock
from broker.net.connection import Connection
from broker.net.dispatch import Dispatcher
from broker.net.server import Server
from broker.net.sockets import Bound
from broker.observe.events import ConnectionDropped, ShellEvent
from config.limits import ServerLimits
from protocol.codec import RequestHeader, encode_request
from protocol.messages import REQUESTS, Request
from seams.now import Now
from tests.broker.shell import FakeCore

if TYPE_CHECKING:
    import asyncio

READ_BYTES = 65_536
"""As much arrives at one time, at most."""

KERNEL_BYTES = 32_768
"""So much of its answers may be between the server and a client that does not read."""

LISTENER = Bound("PLAINTEXT", (), "127.0.0.1", 9092, "127.0.0.1", 9092)

PASSES_MAX = 100_000
"""A loop that still has work after so many passes never comes to rest."""


class VirtualLoop:
    """`call_soon`, and a pass over what was filed before it, as of a real loop."""

    def __init__(self) -> None:
        self._ready: deque[Callable[[], object]] = deque()
        self.passes = 0

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._ready.append(partial(callback, *args))

    @property
    def is_idle(self) -> bool:
        return not self._ready

    def run_pass(self) -> None:
        self.passes += 1
        for _ in range(len(self._ready)):
            self._ready.popleft()()


class VirtualClock(SystemClock):
    def __init__(self) -> None:
        super().__init__()
        self.mono_ms = 1_000_000

    def now(self) -> Now:
        return Now(self.mono_ms, 1_700_000_000_000 + self.mono_ms)


class Pipe:
    """A transport as its connection sees it, and its client as the test sees it."""

    def __init__(self, wire: "Wire", host: str) -> None:
        self._wire = wire
        self._host = host
        self._unsent = bytearray()
        self._sent = bytearray()  # in the kernels' buffers: the server is rid of it
        self._arriving = bytearray()  # on its way to the server, or in its kernel
        self._high, self._low = 65_536, 16_384
        self._is_protocol_paused = False
        self._is_reading = True
        self._ends = False  # the client has sent a FIN behind what is arriving
        self._is_end_reported = False
        self._closing = False
        self.is_lost = False
        self.received = bytearray()  # by the client
        self.requests_sent = self._sent_bytes = 0
        self.connection = Connection(wire.server, LISTENER)
        self.connection.connection_made(cast("asyncio.BaseTransport", self))

    # The transport.

    def get_extra_info(self, name: str) -> object:
        return (self._host, 4_711) if name == "peername" else None

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 65_536 if high is None else high
        self._low = self._high // 4 if low is None else low
        self._maybe_pause()

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        assert data, "an empty write"
        if self.is_lost or self._closing:
            return
        self._unsent += data
        self._to_kernel()
        self._maybe_pause()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        assert not self._is_end_reported, "reading goes on behind the end"
        self._is_reading = True

    def close(self) -> None:
        self._closing = True
        self._is_reading = False
        if not self._unsent:
            self._lose(None)

    def abort(self) -> None:
        self._unsent.clear()
        self._closing = True
        self._lose(None)

    def _to_kernel(self) -> None:
        room = KERNEL_BYTES - len(self._sent)
        self._sent += self._unsent[:room]
        del self._unsent[:room]

    def _maybe_pause(self) -> None:
        if len(self._unsent) > self._high and not self._is_protocol_paused:
            self._is_protocol_paused = True
            self.connection.pause_writing()

    def _lose(self, error: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._is_reading = False
            self._wire.loop.call_soon(self.connection.connection_lost, error)

    # The client.

    def framed(self, request: Request, version: int | None = None) -> bytes:
        """The request as bytes; correlation ids are 1, 2, 3, …"""
        api_key = request.API_KEY
        if version is None:
            version = REQUESTS[api_key].VERSIONS.stop - 1
        self.requests_sent += 1
        header = RequestHeader(api_key, version, self.requests_sent, "a-client")
        return encode_request(header, request)

    def send(self, data: bytes) -> None:
        assert not self._ends
        self._sent_bytes += len(data)
        self._arriving += data

    def ask(self, *requests: Request) -> None:
        for request in requests:
            self.send(self.framed(request))

    def end(self) -> None:
        """Send a FIN: nothing more is asked, answers are still read."""
        self._ends = True

    def cut(self) -> None:
        """An RST: what was on its way in either direction is gone."""
        self._unsent.clear()
        self._sent.clear()
        self._arriving.clear()
        self._lose(ConnectionResetError())

    @property
    def taken_bytes(self) -> int:
        """How much of what was sent the server has read."""
        return self._sent_bytes - len(self._arriving)

    @property
    def may_arrive(self) -> bool:
        return self._is_reading and bool(
            self._arriving or (self._ends and not self._is_end_reported)
        )

    def arrive(self, size: int = READ_BYTES) -> None:
        """So many bytes reach the server, if it reads; behind the last one, the end."""
        if not self._is_reading:
            return
        if self._arriving:
            data = bytes(self._arriving[:size])
            del self._arriving[:size]
            self.connection.data_received(data)
        elif self._ends and not self._is_end_reported:
            self._is_end_reported = True
            self._is_reading = False
            if not self.connection.eof_received():
                self.close()

    def read(self, size: int = 1 << 40) -> None:
        """The client takes so many bytes of its answers."""
        while size > 0 and self._sent:
            taken = self._sent[:size]
            self.received += taken
            size -= len(taken)
            del self._sent[: len(taken)]
            if self.is_lost:
                continue
            self._to_kernel()
            if self._is_protocol_paused and len(self._unsent) <= self._low:
                self._is_protocol_paused = False
                self.connection.resume_writing()
            if self._closing and not self._unsent:
                self._lose(None)

    @property
    def answered(self) -> list[int]:
        """The correlation ids of the whole answers that the client has, in their order."""
        found: list[int] = []
        at = 0
        while at < len(self.received):
            size = int.from_bytes(self.received[at : at + 4], "big")
            at += 4
            if at + size > len(self.received):
                break
            found.append(int.from_bytes(self.received[at : at + 4], "big"))
            at += size
        return found


class Wire:
    """The server of a test, its core and its loop. `run_until_idle` runs every due call."""

    def __init__(self, limits: ServerLimits | None = None) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock()
        self.events: list[ShellEvent] = []
        self.core = FakeCore()
        self.server = Server(
            cast("asyncio.AbstractEventLoop", self.loop),
            self.clock,
            limits or ServerLimits(),
            self.events.append,
        )
        self.core.reply = self.server.reply
        self.dispatcher = Dispatcher(self.server.reply, self.core)
        self.server.use(self.dispatcher)
        self.pipes: list[Pipe] = []

    def connect(self, host: str = "127.0.0.1") -> Pipe:
        pipe = Pipe(self, host)
        self.pipes.append(pipe)
        return pipe

    def run_until_idle(self, *, reading: bool = True) -> None:
        """Until nothing more happens by itself; `reading`: all clients read all they get."""
        for _ in range(PASSES_MAX):
            self.loop.run_pass()
            for pipe in self.pipes:
                pipe.arrive()
                if reading:
                    pipe.read()
            if self.loop.is_idle and not any(pipe.may_arrive for pipe in self.pipes):
                return
        raise AssertionError("the server never comes to rest")

    def pass_time(self, ms: int) -> None:
        """Time goes by, in steps as long as from one sweep to the next."""
        end_ms = self.clock.mono_ms + ms
        while self.clock.mono_ms < end_ms:
            due_ms = self.server.next_deadline_ms
            assert due_ms is not None
            self.clock.mono_ms = max(self.clock.mono_ms, min(due_ms, end_ms))
            if due_ms <= self.clock.mono_ms:
                self.server.tick(self.clock.now())
            self.run_until_idle(reading=False)

    def dropped(self) -> list[ConnectionDropped]:
        return [event for event in self.events if isinstance(event, ConnectionDropped)]
