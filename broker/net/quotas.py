"""Quotas: what all connections together may keep in memory, and how long a turn may take.

Two limits, each with the connections that wait for it:

`RequestBytes` counts the requests that are read and not answered (queued.max.request.bytes). At the
limit a connection handles nothing more until there is room. Kafka counts them until they are
parsed.

`UnsentBytes` counts the answers that clients do not read. They wait in the queue of their
connection while an earlier one is missing (`kept_bytes`), then in its transport while the kernel
takes no more (the backlog); what the kernel holds is not our memory. A connection may ask for more
while its unsent bytes are at most the room that the others leave: those with the most unsent bytes
stop first, the sum stays below the limit, and a client that reads its answers is always served.
`answer_max` limits the records in one Fetch answer by what is unsent already, so that many clients
which fetch much and read slowly have small answers in memory, not large ones. The size of any other
answer is known only when it is there, so the sum may exceed the limit by one answer of each
connection. Kafka has no such limit: it sends records from the file, without a copy in its memory.
"""

from itertools import islice
from typing import Final, Protocol

from broker.net.request import PendingRequest
from config.limits import ServerLimits

REQUESTS_A_TURN_MAX: Final = 100
TURN_S_MAX: Final = 0.002
"""Of one connection; then the others have theirs. The time is checked after each request: one that
takes longer ends its turn, but cannot be interrupted."""

PASS_S_MAX: Final = 0.002
"""For the turns of all connections whose bytes have arrived, and for the writes and those turns
that were postponed; then the sockets are polled again. So a client with one request waits no longer
than twice this, however many others have sent one (a thousand members that join at once), or
thousands, or requests with large answers."""

FLUSH_S_MAX: Final = 0.0015
"""For the writes of all connections that have answers; then the sockets are polled again. A write
is a system call: the answers to 5,000 members of a group take 50 ms."""

CLOSED_A_FLUSH_MAX: Final = 100
"""Connections closed before the sockets are polled again. The kernel takes 15 µs for each of them,
after the flush: thousands of clients that go at once took 50 ms."""

_ROOM_PER_ANSWER: Final = 4
"""A Fetch answer may fill a quarter of the room that is left."""

_SHARES: Final = 2
"""However little room is left, each connection may have its share of a half of the limit."""

_BACKLOGS_READ_AGAIN: Final = 4
"""Other backlogs that are read again when one is set: with many of them, all are read again while
a quarter of them are set."""


class Sender(Protocol):
    """A connection whose answers are counted."""

    @property
    def unsent_bytes(self) -> int:
        """What its transport holds at this moment."""


class Waiter(Protocol):
    """A connection whose next request waits for room."""

    def flush_soon(self) -> None:
        """Write its answers, then handle its next request, in the loop's next pass."""


class UnsentBytes:
    """`kept_bytes` is exact; a backlog shrinks unseen, and is read again when it matters."""

    def __init__(self, connection_max_bytes: int, total_max_bytes: int) -> None:
        self._connection_max_bytes = connection_max_bytes
        self._total_max_bytes = total_max_bytes
        self._backlogs: dict[Sender, int] = {}  # by connection, as they were read last
        self._backlog_bytes = 0  # their sum
        self._set_since_count = 0  # how many were set since all were read
        self.kept_bytes = 0

    def set_backlog(self, connection: Sender, size: int) -> None:
        """A connection's backlog as it is now. It becomes the last that is read again."""
        self._backlog_bytes += size - self._backlogs.pop(connection, 0)
        self._backlogs[connection] = size
        self._set_since_count += 1

    def read_some_again(self) -> None:
        """So that what clients have read meanwhile becomes room."""
        for connection in tuple(islice(self._backlogs, _BACKLOGS_READ_AGAIN)):
            self.set_backlog(connection, connection.unsent_bytes)

    def answer_max(self, connections: int) -> int:
        """Bytes of records that one Fetch answer may have now, with so many connections.

        Any thread may call it.
        """
        room = self._total_max_bytes - self.kept_bytes - self._backlog_bytes
        share = self._total_max_bytes // (_SHARES * max(connections, 1))
        return min(self._connection_max_bytes, max(room // _ROOM_PER_ANSWER, share))

    def remove_backlog(self, connection: Sender) -> None:
        self._backlog_bytes -= self._backlogs.pop(connection, 0)

    def allows(self, size: int) -> bool:
        """Whether a connection that has so many bytes unsent may ask for more."""
        if size > self._connection_max_bytes:
            return False
        total_max = self._total_max_bytes
        if size <= total_max - self.kept_bytes - self._backlog_bytes:
            return True
        if self._set_since_count * _BACKLOGS_READ_AGAIN < len(self._backlogs):
            return False  # they were counted a moment ago; with many it takes a millisecond
        return size <= total_max - self.total_bytes()

    def total_bytes(self) -> int:
        """Of all connections, at this moment."""
        for connection in tuple(self._backlogs):
            self.set_backlog(connection, connection.unsent_bytes)
        self._set_since_count = 0
        return self.kept_bytes + self._backlog_bytes


class RequestBytes:
    """Bytes of the requests that wait for their answers."""

    def __init__(self, max_bytes: int) -> None:
        """-1: no limit, and nothing is counted."""
        self._max_bytes = max_bytes
        self._waiting: dict[Waiter, None] = {}
        self.is_limited = max_bytes > 0
        self.queued_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.is_limited and self.queued_bytes > self._max_bytes

    def add(self, token: PendingRequest) -> None:
        """Count a request until its answer leaves the queue of its connection."""
        token.is_counted = True
        self.queued_bytes += token.size_bytes

    def remove(self, token: PendingRequest) -> None:
        """The request is answered, or its connection is over."""
        if not token.is_counted:
            return
        self.queued_bytes -= token.size_bytes
        if self._waiting and not self.is_full:
            waiting, self._waiting = self._waiting, {}
            for connection in waiting:
                connection.flush_soon()

    def wait_for_room(self, connection: Waiter) -> None:
        """Have `connection.flush_soon` called once there is room."""
        self._waiting[connection] = None

    def forget(self, connection: Waiter) -> None:
        self._waiting.pop(connection, None)


class Quotas:
    """The limits of one server."""

    def __init__(self, limits: ServerLimits) -> None:
        self.request_bytes = RequestBytes(limits.queued_max_request_bytes)
        self.unsent = UnsentBytes(
            limits.connection_unsent_max_bytes, limits.connections_unsent_max_bytes
        )
