"""Acceptor: takes new connections from the listening sockets, and gives each its transport.

The compiled build has transports of its own on Linux (native/client_sockets.pxi): they take less
memory and CPU than uvloop's, which are used otherwise. Both close what was accepted without a free
descriptor. Kafka's counterpart: `SocketServer.Acceptor`, `Selector`, `PlaintextTransportLayer`.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol

from broker.net.sockets import listen
from protocol.compiled_codec import function_in_c

CLIENT_SOCKETS_IN_C = function_in_c("CLIENT_SOCKETS")

ACCEPTED_A_PASS_MAX: Final = 256
"""Connections that are accepted before the loop does something else; one with TLS takes 30 us."""

ACCEPT_AGAIN_S: Final = 1.0
"""After the system has refused to accept for want of something; as asyncio."""

MakeProtocol = Callable[[], asyncio.Protocol]


class Sockets(Protocol):
    """Of native/client_sockets.pxi: all that were accepted, behind one descriptor."""

    def fileno(self) -> int: ...

    def accept(
        self, listening: int, make_protocol: MakeProtocol, most: int, closed_most: int
    ) -> None:
        """Take `most` at most, or until so many of it were closed at once: that frees descriptors
        in a later pass. Raises OSError if the system accepts none for want of something.
        """

    def poll(self) -> None:
        """Read and write what can be read and written now."""


class Acceptor:
    """Of all listeners of one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._sockets: Sockets | None = None
        self._listening: dict[socket.socket, tuple[MakeProtocol, int]] = {}
        self._servers: list[asyncio.Server] = []

    async def add(self, sock: socket.socket, make_protocol: MakeProtocol, backlog: int) -> None:
        """Begin to accept on a socket that is bound; `make_protocol` is called for each client."""
        if CLIENT_SOCKETS_IN_C is None:
            server = await self._loop.create_server(make_protocol, sock=sock, backlog=backlog)
            self._servers.append(server)
            listen(sock, backlog)  # create_server has set the queue to `backlog`
            return
        if self._sockets is None:
            self._sockets = CLIENT_SOCKETS_IN_C(self._loop)
            self._loop.add_reader(self._sockets.fileno(), self._sockets.poll)
        listen(sock, backlog)
        self._listening[sock] = (make_protocol, backlog)
        self._loop.add_reader(sock, self._accept, sock)

    def _accept(self, sock: socket.socket) -> None:
        assert self._sockets is not None, "a socket listens"
        make_protocol, backlog = self._listening[sock]
        try:
            self._sockets.accept(sock.fileno(), make_protocol, ACCEPTED_A_PASS_MAX, backlog)
        except OSError as error:
            message = "accepting a connection has failed"
            self._loop.call_exception_handler({"message": message, "exception": error})
            self._loop.remove_reader(sock)
            self._loop.call_later(ACCEPT_AGAIN_S, self._accept_again, sock)

    def _accept_again(self, sock: socket.socket) -> None:
        if sock in self._listening:
            self._loop.add_reader(sock, self._accept, sock)

    def stop_accepting(self) -> None:
        """New connections are refused; those that were accepted stay."""
        for server in self._servers:
            server.close()
        for sock in self._listening:
            self._loop.remove_reader(sock)
            sock.close()
        self._listening.clear()

    def close(self) -> None:
        """Read and write nothing more."""
        if self._sockets is not None:
            self._loop.remove_reader(self._sockets.fileno())
            self._sockets = None
