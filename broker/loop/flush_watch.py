"""Flush watch: has a flush of the journal been running for too long?

A disk that hangs raises no error: commits are refused after offsets.commit.timeout.ms, and nothing
else gives the reason. The watch checks from the event loop how long the running flush takes, logs a
line when it takes longer than `rollcall.flush.stalled.ms` and one when it has ended, and gives
/readyz the reason. Kafka's counterpart: none.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from broker.observe.events import Warned

CHECKS_PER_LIMIT: Final = 4
"""Checks within the limit, so that the line comes in time."""

CHECK_S_MAX: Final = 1.0
REPEAT_S: Final = 60.0
"""While it lasts, the line is repeated after this."""


class FlushWatch:
    """All of it on the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        age_s: Callable[[], float],
        limit_ms: int,
        observe: Callable[[Warned], None],
    ) -> None:
        """`age_s` says how long the flush that runs has taken; 0.0 if none does."""
        self._loop = loop
        self._age_s = age_s
        self._limit_s = limit_ms / 1000
        self._observe = observe
        self._logged_s = 0.0  # the age in the last line
        self._timer: asyncio.TimerHandle | None = None

    @property
    def reason(self) -> str | None:
        """Why clients should not be sent here; None while flushes end."""
        age_s = self._age_s()
        if age_s < self._limit_s:
            return None
        return f"a flush of the journal has been running for {age_s:.1f} s"

    def start(self) -> None:
        self._timer = self._loop.call_later(
            min(self._limit_s / CHECKS_PER_LIMIT, CHECK_S_MAX), self._check
        )

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        age_s = self._age_s()
        if age_s < self._logged_s:
            self._observe(Warned("The flush of the journal that took long has ended"))
            self._logged_s = 0.0
        if age_s >= (self._logged_s + REPEAT_S if self._logged_s else self._limit_s):
            words = "A flush of the journal takes long: nothing is stored, and commits wait"
            self._observe(Warned(words, {"seconds": round(age_s, 1)}))
            self._logged_s = age_s
        self.start()
