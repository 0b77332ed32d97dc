"""Last sign of life: when did the daemon that had this data directory run last?

The time of `.lock` in the data directory is set each second while the daemon runs, and at its stop.
A start reads it, so that the history can say how long the coordinator was away: exactly after a
clean stop, at most after a kill. The write runs in a thread: a disk that hangs stops nothing.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from history.recording.running_rebalance import Away
from seams.now import Now

EVERY_S: Final = 1.0


class LastAlive:
    def __init__(self, loop: asyncio.AbstractEventLoop, touch: Callable[[], None]) -> None:
        self._loop = loop
        self._touch = touch
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._loop.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            with suppress(OSError):  # a disk that refuses this refuses more, and is told there
                await self._loop.run_in_executor(None, self._touch)
            await asyncio.sleep(EVERY_S)


def away_since(alive_at_ms: int | None, now: Now, *, was_clean: bool) -> Away:
    """What is known at a start; None: the directory is new, or its time is in the future."""
    stopped = "stopped" if was_clean else "killed"
    if alive_at_ms is None or alive_at_ms > now.wall_ms:
        return Away(None, stopped)
    return Away(now.wall_ms - alive_at_ms, stopped)
