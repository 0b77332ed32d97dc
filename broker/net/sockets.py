"""Listening sockets: bound at the beginning of a start, before anything slow is done.

A port that cannot be bound is the most frequent fault of a start, so it becomes one line that names
the listener and the address. A port of 0 is chosen by the system; `Bound` has it.
"""

import errno
import os
import socket
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from config.listeners import Listener

ANY_IPV4: Final = "0.0.0.0"


ADMIN_BACKLOG: Final = 16

KERNEL_QUEUE_MIN: Final = 4096
"""Connections the kernel queues at least, up to net.core.somaxconn, whose default this is. Kafka's
acceptor is a thread that empties a queue of 50 at once; the event loop accepts between turns, 256
in a pass (acceptor.py), uvloop one. A connection that finds the queue full is lost without a word,
and its client tries again after a second."""

PORT_CHOICES_MAX: Final = 10
"""Ports that the system may choose for one host before a start gives up."""


class CannotListen(Exception):
    """An address that cannot be bound; the text is for the operator, `key` is to be changed."""

    key = "listeners"
    is_in_use = False


class Bound(Struct, frozen=True):
    """A listener with its open sockets and its advertised address."""

    name: str
    sockets: tuple[socket.socket, ...]
    host: str
    port: int
    advertised_host: str
    advertised_port: int

    def __str__(self) -> str:
        return address_text(self.host, self.port)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def bind_listener(
    listener: Listener, *, backlog: int, send_buffer_bytes: int, receive_buffer_bytes: int
) -> Bound:
    """Bind all addresses of the listener's host. Raises CannotListen, with nothing left open."""
    bound = bind(listener.name, listener.host, listener.port)
    try:
        for sock in bound.sockets:
            # Accepted sockets inherit both; the receive buffer must be set before listen().
            _set_buffer(sock, socket.SO_SNDBUF, send_buffer_bytes)
            _set_buffer(sock, socket.SO_RCVBUF, receive_buffer_bytes)
            listen(sock, backlog)
    except OSError as error:
        bound.close()
        raise CannotListen(_reason(listener.name, listener.host, bound.port, error)) from error
    return Bound(
        listener.name,
        bound.sockets,
        bound.host,
        bound.port,
        listener.advertised_host,
        listener.advertised_port or bound.port,
    )


def listen(sock: socket.socket, backlog: int) -> None:
    """Also for a socket that listens already: only its queue changes."""
    sock.listen(max(backlog, KERNEL_QUEUE_MIN))


def bind_admin(host: str, port: int) -> Bound:
    """The admin port; what is asked before it is served waits in the kernel's queue."""
    try:
        bound = bind("admin", host, port)
    except CannotListen as refused:
        refused.key = "rollcall.admin.listener"
        raise
    for sock in bound.sockets:
        sock.listen(ADMIN_BACKLOG)
    return bound


def bind(name: str, host: str, port: int) -> Bound:
    """Bind without listening yet: of several addresses of one host all get the same port.

    The system chooses a port that is free at the first address; at another one it may be taken.
    """
    addresses = _addresses(name, host, port)
    for _ in range(PORT_CHOICES_MAX - 1 if port == 0 else 0):
        try:
            return _bind_all(name, host, port, addresses)
        except CannotListen as refused:
            if not refused.is_in_use:
                raise
    return _bind_all(name, host, port, addresses)


def _bind_all(
    name: str, host: str, port: int, addresses: Sequence[tuple[socket.AddressFamily, str]]
) -> Bound:
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted sockets inherit both: a client that is gone without a FIN is noticed some
            # day, and no answer waits for the acknowledgement of an earlier one.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if family == socket.AF_INET6:
                # Dual-stack only for "every address": then one socket serves both families.
                sock.setsockopt(
                    socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host not in ("", "::"))
                )
            sock.bind((address, port))
            sock.setblocking(False)  # noqa: FBT003 - positional in the library
            port = sock.getsockname()[1]
    except OSError as error:
        for sock in sockets:
            sock.close()
        refused = CannotListen(_reason(name, host, port, error))
        refused.is_in_use = error.errno == errno.EADDRINUSE
        raise refused from error
    return Bound(name, tuple(sockets), host, port, host, port)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _addresses(name: str, host: str, port: int) -> Sequence[tuple[socket.AddressFamily, str]]:
    if host == "":
        if socket.has_dualstack_ipv6():
            return [(socket.AF_INET6, "::")]
        return [(socket.AF_INET, ANY_IPV4)]
    try:
        found = socket.getaddrinfo(
            _encoded(host), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise CannotListen(
            f"cannot listen on {address_text(host, port)} ({name}): {reason}"
        ) from error
    # A container's hosts file often names ::1 where the kernel has no IPv6; the rest must do then.
    addresses = list(dict.fromkeys((family, str(at[0])) for family, _, _, _, at in found))
    usable = [pair for pair in addresses if pair[0] != socket.AF_INET6 or has_ipv6()]
    return usable or addresses


def _encoded(host: str) -> bytes | str:
    """Python would encode an address as a name: the tables of IDNA are a hundredth of a start."""
    is_address = ":" in host or host.replace(".", "").isdecimal()
    return host.encode("ascii", "replace") if is_address else host


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


def _set_buffer(sock: socket.socket, option: int, size_bytes: int) -> None:
    if size_bytes != -1:  # -1 leaves it to the operating system, as in Kafka
        sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)


def _reason(name: str, host: str, port: int, error: OSError) -> str:
    where = f"cannot listen on {address_text(host, port)} ({name})"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{where}: the port is in use by another process; stop it or choose another port"
        case errno.EADDRNOTAVAIL:
            return f"{where}: the address does not belong to this machine"
        case errno.EACCES:
            return f"{where}: not permitted (ports below 1024 need special privileges)"
        case number:
            return f"{where}: {os.strerror(number) if number is not None else error}"
