"""Connection limits: which connections are served, which wait for a slot, and which are closed.

A connection beyond the limit of its address (`max.connections.per.ip`) is closed. One beyond
`max.connections`, beyond `max.connections` of its listener, or faster than
`max.connection.creation.rate` (of all or of its listener) waits: it is accepted, but none of its
requests is handled until it has a slot. As many wait per listener as the kernel would queue
(`socket.listen.backlog.size`); a further one is closed. No clock, no sockets.

Kafka differs: its inter-broker listener may exceed `max.connections`; one node has no such
connections. Connections that wait stay in the kernel's queue there.
Kafka's counterpart: `ConnectionQuotas`.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from broker.net.sockets import Bound
from broker.observe.events import PeerFault
from config.limits import NO_CONNECTION_LIMIT, ListenerLimits, ServerLimits

RATE_WINDOW_MS: Final = 10_000
"""The rate is an average over so long, so a burst of ten seconds' connections is taken at once. As
in Kafka with its defaults (quota.window.num - 1 windows of quota.window.size.seconds)."""


class Connecting(Protocol):
    """A connection, as far as its slot is concerned."""

    host: str
    listener: Bound

    def wait_for_slot(self) -> None: ...

    def take_slot(self) -> None: ...


class SlotRefusal(NamedTuple):
    """Why a connection is not served now. It waits, or must be closed."""

    fault: PeerFault
    detail: str
    must_close: bool


class RateLimit:
    """At most so many per second, as an average over the window."""

    def __init__(self, per_second: int) -> None:
        self._interval_ms = 1_000 / per_second if per_second else float("inf")
        self._full_ms = 0.0  # until when the window would be filled by what was taken

    def wait_ms(self, now_ms: int) -> float:
        """How long until one more may be taken; 0: now."""
        return max(self._full_ms + self._interval_ms - now_ms - RATE_WINDOW_MS, 0.0)

    def take(self, now_ms: int) -> None:
        self._full_ms = max(self._full_ms, now_ms) + self._interval_ms


class ConnectionSlots:
    """All connections of a server. `allowed` is how many the file descriptors suffice for."""

    def __init__(self, limits: ServerLimits, allowed: Callable[[], int]) -> None:
        self._limits = limits
        self._allowed = allowed
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()  # those that are served
        self._served = 0
        self._waiting: dict[Connecting, None] = {}
        self._refused: set[Connecting] = set()  # they are being closed; all others are served
        self._rate = _rate_limit(limits.max_connection_creation_rate)
        self._rates = {
            name: _rate_limit(of_one.max_connection_creation_rate)
            for name, of_one in limits.by_listener.items()
        }

    def set_limits(self, limits: ServerLimits) -> None:
        """Of all listeners together; those of a single listener are those of the start."""
        before, self._limits = self._limits, limits
        if limits.max_connection_creation_rate != before.max_connection_creation_rate:
            self._rate = _rate_limit(limits.max_connection_creation_rate)

    @property
    def waiting(self) -> int:
        """Connections that wait for a slot."""
        return len(self._waiting)

    def admit(self, connection: Connecting, now_ms: int) -> SlotRefusal | None:
        """Serve a new connection, or say why not; one that need not be closed waits."""
        host, listener = connection.host, connection.listener.name
        self._by_host[host] += 1
        before = self._by_host[host] - 1
        limits = self._limits
        if before >= limits.max_connections_by_ip.get(host, limits.max_connections_per_ip):
            self._refused.add(connection)
            return SlotRefusal(
                PeerFault.TOO_MANY_PER_IP, f"{before} connections from {host}", must_close=True
            )
        reason = self._reason_to_wait(listener, now_ms)
        if reason is None:
            self._serve(connection, now_ms)
            return None
        waiting = sum(other.listener.name == listener for other in self._waiting)
        must_close = waiting >= limits.socket_listen_backlog_size
        if must_close:
            self._refused.add(connection)
        else:
            self._waiting[connection] = None
            connection.wait_for_slot()
        return SlotRefusal(*reason, must_close=must_close)

    def forget(self, connection: Connecting) -> None:
        """The connection is over; `give_slots` gives its slot to another."""
        host = connection.host
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        if connection in self._waiting:
            del self._waiting[connection]
        elif connection in self._refused:
            self._refused.remove(connection)
        else:
            self._served -= 1
            self._by_listener[connection.listener.name] -= 1

    def give_slots(self, now_ms: int) -> None:
        """To those that wait, in their order: deleted topics free file descriptors, too."""
        for connection in tuple(self._waiting):
            if self._reason_to_wait(connection.listener.name, now_ms) is None:
                del self._waiting[connection]
                self._serve(connection, now_ms)
                connection.take_slot()

    def next_slot_ms(self, now_ms: int) -> int | None:
        """When a connection that waits for its rate alone may be served; None: there is none."""
        waits = [
            self._rate_wait_ms(listener, now_ms)
            for listener in {connection.listener.name for connection in self._waiting}
            if self._full(listener) is None
        ]
        finite = [wait_ms for wait_ms in waits if wait_ms < float("inf")]
        return now_ms + int(min(finite)) + 1 if finite else None

    def _serve(self, connection: Connecting, now_ms: int) -> None:
        listener = connection.listener.name
        self._served += 1
        self._by_listener[listener] += 1
        for rate in (self._rate, self._rates.get(listener)):
            if rate is not None:
                rate.take(now_ms)

    def _reason_to_wait(self, listener: str, now_ms: int) -> tuple[PeerFault, str] | None:
        full = self._full(listener)
        if full is not None:
            return full
        if self._rate_wait_ms(listener, now_ms) > 0:
            return PeerFault.TOO_FAST, f"new connections of listener {listener} wait"
        return None

    def _full(self, listener: str) -> tuple[PeerFault, str] | None:
        limits = self._limits
        most = min(limits.max_connections, self._allowed())
        if self._served >= most:
            words = f"{most} connections"
            if most < limits.max_connections:
                words += "; the other file descriptors (ulimit -n) are for the log's files"
            return PeerFault.TOO_MANY, words
        of_listener = limits.by_listener.get(listener, ListenerLimits()).max_connections
        if self._by_listener[listener] >= of_listener:
            return PeerFault.TOO_MANY_OF_LISTENER, f"{of_listener} connections of {listener}"
        return None

    def _rate_wait_ms(self, listener: str, now_ms: int) -> float:
        rates = (self._rate, self._rates.get(listener))
        return max((rate.wait_ms(now_ms) for rate in rates if rate is not None), default=0.0)


def _rate_limit(per_second: int) -> RateLimit | None:
    return None if per_second == NO_CONNECTION_LIMIT else RateLimit(per_second)
