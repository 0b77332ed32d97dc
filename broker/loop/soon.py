"""Tick soon: runs the tick of a part in the next pass of the event loop, once however often asked.

For what a thread has finished: what follows from it need not wait for a timer.
"""

import asyncio
from collections.abc import Callable

from broker.loop.clock import SystemClock
from broker.loop.ticker import Ticking


class TickSoon:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: SystemClock, ticked: Callable[[], None]
    ) -> None:
        """`ticked` is called after each tick: its deadlines may have changed."""
        self.part: Ticking  # set by build.py
        self._loop = loop
        self._clock = clock
        self._ticked = ticked
        self._is_scheduled = False

    def __call__(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        try:
            self.part.tick(self._clock.now())
        finally:
            self._ticked()
