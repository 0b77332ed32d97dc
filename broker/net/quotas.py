"""Unsent answers: how many bytes wait for clients that do not read, and who has to wait for that.

A connection's answers lie in three places: in its queue while an earlier one is missing (`kept`),
in its transport while the kernel does not take them, and in the kernel, which is not our memory.
The first two are weighed here, for each connection and for all of them together.

A connection may go on asking while what it has unsent is at most the room that the others leave. So
those with the most unsent stop first, the sum stays below the limit, and a client that reads
its answers is served whatever the others do. What one answer adds is known only once it is there:
the sum may exceed the limit by one answer of each connection. Kafka has no such limit.
"""

from typing import Protocol


class Holder(Protocol):
    """A connection: how many bytes its transport holds at this moment."""

    @property
    def unsent_bytes(self) -> int: ...


class Unsent:
    """`kept_bytes` is exact; backlogs shrink unseen, and are looked at again when it matters."""

    def __init__(self, connection_max_bytes: int, total_max_bytes: int) -> None:
        self._connection_max_bytes = connection_max_bytes
        self._total_max_bytes = total_max_bytes
        self._backlogs: dict[Holder, int] = {}  # by connection, as they were seen last
        self._backlog_bytes = 0  # their sum
        self.kept_bytes = 0

    def note(self, connection: Holder, size: int) -> None:
        """The transport of a connection holds so much."""
        self._backlog_bytes += size - self._backlogs.get(connection, 0)
        self._backlogs[connection] = size

    def forget(self, connection: Holder) -> None:
        """It holds nothing any more."""
        self._backlog_bytes -= self._backlogs.pop(connection, 0)

    def allows(self, size: int) -> bool:
        """Whether a connection that has so many bytes unsent may ask for more."""
        if size > self._connection_max_bytes:
            return False
        total_max = self._total_max_bytes
        return (
            size <= total_max - self.kept_bytes - self._backlog_bytes
            or size <= total_max - self.total_bytes()
        )

    def total_bytes(self) -> int:
        """Of all connections, at this moment."""
        for connection in self._backlogs:
            self.note(connection, connection.unsent_bytes)
        return self.kept_bytes + self._backlog_bytes
