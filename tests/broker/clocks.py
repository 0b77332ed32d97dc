"""Clocks for a server on real sockets: time stands still until the test moves it."""

from broker.loop.clock import CLOCK_READ_MS, SystemClock


class SteppedClock:
    """`system` is the server's clock. It is read at each step, so no time is a stall."""

    def __init__(self) -> None:
        self.mono_ms = 1_000_000
        self.system = SystemClock(
            lambda: self.mono_ms * 1_000_000,
            lambda: (1_700_000_000_000 + self.mono_ms) * 1_000_000,
        )

    def advance(self, by_ms: int) -> None:
        while by_ms > 0:
            step_ms = min(by_ms, CLOCK_READ_MS)
            self.mono_ms += step_ms
            by_ms -= step_ms
            self.system.now()
