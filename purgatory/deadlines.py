"""Deadline queue: the next op to expire, in a sorted table of (deadline_ms, sequence) -> op.

Kafka has a hierarchical timing wheel here (`TimingWheel`), made for millions of timers and many
threads. One thread and tens of thousands of timers are served by a sorted dict; equal deadlines
fire in the order they were filed, which keeps a replay deterministic.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

OpT = TypeVar("OpT")
Ticket = tuple[int, int]
"""Where an op is filed: (deadline_ms, sequence)."""


class Deadlines(Generic[OpT]):
    def __init__(self) -> None:
        self._by_ticket: SortedDict = SortedDict()
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._by_ticket)

    def add(self, deadline_ms: int, op: OpT) -> Ticket:
        self._sequence += 1
        ticket = (deadline_ms, self._sequence)
        self._by_ticket[ticket] = op
        return ticket

    def remove(self, ticket: Ticket) -> None:
        del self._by_ticket[ticket]

    def next_ms(self) -> int | None:
        """The nearest deadline, or None when nothing is filed."""
        if not self._by_ticket:
            return None
        ticket: Ticket = self._by_ticket.peekitem(0)[0]
        return ticket[0]

    def pop_due(self, now_ms: int) -> Iterator[OpT]:
        """Take out, in deadline order, every op whose deadline is not after `now_ms`.

        Ops may be removed or added while the caller works through the due ones.
        """
        while self._by_ticket:
            ticket, op = self._by_ticket.peekitem(0)
            if ticket[0] > now_ms:
                return
            del self._by_ticket[ticket]
            yield op
