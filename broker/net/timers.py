"""Timers: what the server does at a later moment of the core clock."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from seams.now import Now


class ServerTimers:
    """Those of one server, which runs them in its tick."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._number = count()

    def add(self, due_ms: int, run: Callable[[], None]) -> None:
        """Have `run` called at `due_ms` of the core clock, or soon after."""
        heappush(self._due, (due_ms, next(self._number), run))

    @property
    def next_ms(self) -> int | None:
        return self._due[0][0] if self._due else None

    def tick(self, now: Now) -> None:
        while self._due and self._due[0][0] <= now.mono_ms:
            _, _, run = heappop(self._due)
            run()
