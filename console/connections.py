"""Connections: how many the admin port has at a time, and how long each may take for a step.

A client has a limited time for its TLS handshake and the head of its first request, for taking an
answer, and between two requests; then its connection is closed. Beyond `CONNECTIONS_MAX` the oldest
one that waits for a request is closed, also during its handshake. Clients of Kafka's protocol have
limits of their own.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from logging import Logger
from typing import Final, cast

from aiohttp import web

CONNECTIONS_MAX: Final = 128
HEAD_TIMEOUT_S: Final = 10.0
"""For the TLS handshake and the first head together."""

REQUEST_TIMEOUT_S: Final = 120.0
"""From the head to the end of the answer, or between two parts of an event stream: longer than a
scrape may take."""

IDLE_TIMEOUT_S: Final = 75.0
"""More than a minute: Prometheus keeps its connection between two scrapes."""

LINGERING_S: Final = 1.0
LINE_BYTES_MAX: Final = 8_190
HEAD_BYTES_MAX: Final = 65_536
"""All lines of a head; the library takes 128 lines, so a megabyte."""

_END_OF_HEAD: Final = re.compile(rb"[^\r\n]\r\n\r\n")  # empty lines before a head are no end
_END_BYTES: Final = 5

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Server": "rollcall",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


_HEAD_TOO_LARGE: Final = "".join(
    [
        "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n",
        "Content-Length: 0\r\n",
        *(f"{name}: {value}\r\n" for name, value in SECURITY_HEADERS.items()),
        "\r\n",
    ]
).encode()


class AdminConnection(web.RequestHandler):
    """One connection that speaks HTTP, its current deadline, and the size of the current head."""

    def __init__(self, connections: "AdminConnections", server: web.Server) -> None:
        super().__init__(
            server,
            loop=connections.loop,
            access_log=None,  # type: ignore[arg-type]  # as the library's own documentation
            logger=connections.logger,
            keepalive_timeout=IDLE_TIMEOUT_S,
            lingering_time=LINGERING_S,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
        )
        self._connections = connections
        self._deadline: asyncio.TimerHandle | None = None
        self._at: asyncio.Transport | None = None
        self._head_bytes: int | None = 0  # None: a head is complete
        self._end_of_received = b""
        self.is_busy = False
        self.on_lost: Callable[[], None] | None = None
        """Called when the peer is gone, by an answer that would wait for long otherwise."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._at = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        super().connection_made(transport)
        self._arm(HEAD_TIMEOUT_S)
        self._connections.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._disarm()
        self._connections.discard(self)
        if self.on_lost is not None:
            self.on_lost()
        super().connection_lost(exc)
        self._at = None  # a TLS channel refers to this: both would wait for the garbage collector

    def data_received(self, data: bytes) -> None:
        if self._head_bytes is not None:
            self._count_head(data)
        if self._at is not None and not self._at.is_closing():
            super().data_received(data)

    def _count_head(self, data: bytes) -> None:
        assert self._head_bytes is not None
        joined = self._end_of_received + data
        self._end_of_received = joined[1 - _END_BYTES :]
        self._head_bytes += len(data)
        if _END_OF_HEAD.search(joined):
            self._head_bytes = None
        elif self._head_bytes > HEAD_BYTES_MAX and self._at is not None:
            self._at.write(_HEAD_TOO_LARGE)
            self._at.close()

    def eof_received(self) -> bool:  # type: ignore[override]  # the library's closes at once
        """The client asks nothing more: `nc` and `socat` say so behind their request.

        A whole request is still answered, but an answer without an end stops here.
        """
        if self._head_bytes is None and self.on_lost is None:
            self.close()  # as soon as it is answered
            return True
        if self._at is not None:
            self._at.close()
        return False

    def secured(self, _certificate: bytes | None) -> bool:
        """As `PlainConnection` of broker/net/tls/channel.py: no client certificate is asked for."""
        return True

    def handshake_failed(self, _reason: str) -> None:
        """The channel closes the socket."""

    def request_began(self) -> None:
        self.is_busy = True
        self._arm(REQUEST_TIMEOUT_S)

    def answer_goes_on(self) -> None:
        """Of an answer without an end: its reader took the last part."""
        if self.is_busy:
            self._arm(REQUEST_TIMEOUT_S)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.is_busy = False
            self._head_bytes, self._end_of_received = 0, b""
            if self.transport is not None:
                self._arm(IDLE_TIMEOUT_S)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """A head that cannot be read: nothing of it comes back."""
        del request, exc, message
        words = "400 Bad Request" if status < 500 else f"{status} Error"
        response = web.Response(status=status, text=f"{words}\n", headers=SECURITY_HEADERS)
        response.force_close()
        return response

    def abort(self) -> None:
        if self._at is not None:
            self._at.abort()

    def _arm(self, timeout_s: float) -> None:
        self._disarm()
        self._deadline = self._connections.loop.call_later(timeout_s, self.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class AdminConnections:
    """Those that are open, the oldest first; called for each new one."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server: web.Server,
        logger: Logger,
    ) -> None:
        self.loop = loop
        self.logger = logger
        self._server = server
        self._open: dict[AdminConnection, None] = {}

    def __call__(self) -> AdminConnection:
        return AdminConnection(self, self._server)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: AdminConnection) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            idle = next((each for each in self._open if not each.is_busy), connection)
            self._open.pop(idle, None)
            idle.abort()
            if idle is connection:
                return
        self._open[connection] = None

    def discard(self, connection: AdminConnection) -> None:
        self._open.pop(connection, None)

    def abort_all(self) -> None:
        for connection in list(self._open):
            connection.abort()
