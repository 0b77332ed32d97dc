"""Flush watch: has a flush of the journal been running for too long?

A disk that hangs answers nothing and raises nothing: commits are refused after
offsets.commit.timeout.ms, and without this nobody says why. Looks from the event loop at how long
the running flush takes, writes a line when it takes longer than `rollcall.flush.stalled.ms` and one
when it has ended, and is asked by /readyz. Kafka's counterpart: none.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from broker.observe.events import Warned

LOOKS_PER_LIMIT: Final = 4
"""So often within the limit it is looked, so that the line comes in time."""

LOOK_S_MAX: Final = 1.0
REPEAT_S: Final = 60.0
"""While it goes on, the line comes again after this."""


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
        self._told_s = 0.0  # the age that was told last
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
            min(self._limit_s / LOOKS_PER_LIMIT, LOOK_S_MAX), self._look
        )

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        age_s = self._age_s()
        if age_s < self._told_s:
            self._observe(Warned("The flush of the journal that took long has ended"))
            self._told_s = 0.0
        if age_s >= (self._told_s + REPEAT_S if self._told_s else self._limit_s):
            words = "A flush of the journal takes long: nothing is stored, and commits wait"
            self._observe(Warned(words, {"seconds": round(age_s, 1)}))
            self._told_s = age_s
        self.start()
