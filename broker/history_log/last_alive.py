"""Last sign of life: when the daemon of this data directory ran last.

The time of `.lock` in the data directory is set each second while the daemon runs, and at its stop.
A start reads it, so that the history can say how long the coordinator was down: exactly after a
clean stop, at most after a kill. The write runs in a thread: a hanging disk does not stop the loop.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from history.recording.downtime import Downtime
from seams.now import Now

TOUCH_INTERVAL_S: Final = 1.0


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
            with suppress(OSError):  # such a disk fails elsewhere too, and is reported there
                await self._loop.run_in_executor(None, self._touch)
            await asyncio.sleep(TOUCH_INTERVAL_S)


def downtime_since(alive_at_ms: int | None, now: Now, *, was_clean: bool) -> Downtime:
    """The downtime as known at a start; None: a new directory, or its time is in the future."""
    stopped = "stopped" if was_clean else "killed"
    if alive_at_ms is None or alive_at_ms > now.wall_ms:
        return Downtime(None, stopped)
    return Downtime(now.wall_ms - alive_at_ms, stopped)
