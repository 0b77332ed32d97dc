"""Clocks for a server on real sockets: time stands still until the test moves it."""

from broker.loop.clock import SystemClock
from seams.now import Now


class SteppedClock(SystemClock):
    """No time is a stall."""

    def __init__(self) -> None:
        super().__init__()
        self.mono_ms = 1_000_000

    def now(self) -> Now:
        return Now(self.mono_ms, 1_700_000_000_000 + self.mono_ms)

    def advance(self, by_ms: int) -> None:
        self.mono_ms += by_ms
