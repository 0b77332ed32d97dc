"""I/O throttle: limits how fast the log cleaner reads and writes, on average.

Called with each number of bytes, it makes its caller wait so that the average over a short time
stays at `log.cleaner.io.max.bytes.per.second`. Kafka's counterpart: Throttler.
"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import Final

CHECK_S: Final = 0.3
"""Kafka's: short enough to be even, long enough that a clock and a sleep cost nothing."""


class IoThrottle:
    """Called with bytes that were read or written."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._pause = pause
        self._since = clock()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        elapsed = self._clock() - self._since
        if elapsed < CHECK_S and self._bytes < self._rate * CHECK_S:
            return
        ahead = self._bytes / self._rate - elapsed
        if ahead > 0:
            self._pause(ahead)
        self._since = self._clock()
        self._bytes = 0
