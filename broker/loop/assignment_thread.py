"""Assignment thread: computes large target assignments beside the event loop.

A thread and not the worker process: to serialize the input and the result takes as long as the
assignment, and holds the interpreter's lock all that time. An assignor is Python code that is not
compiled, so the loop gets the lock back within some 5 ms (`sys.getswitchinterval`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, TypeVar

from broker.loop.clock import SystemClock
from broker.loop.io_thread import IoThread
from seams.now import Now

T = TypeVar("T")


ASSIGNMENT_END_TIMEOUT_S: Final = 1.0
"""An assignment that takes longer ends with the process: nobody waits for it any more."""


class AssignmentThread:
    """Implements seams/assignment_runner.py: AssignmentRunner. It starts with the first work."""

    __slots__ = ("_clock", "_loop", "_on_fault", "_thread")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: SystemClock,
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._on_fault = on_fault
        self._thread: IoThread | None = None

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception, Now], None]) -> None:
        if self._thread is None:
            self._thread = IoThread(self._loop, "assignor", self._on_fault)
        self._thread.submit(work, lambda result: done(result, self._clock.now()))

    async def close(self) -> None:
        if self._thread is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._thread.close(), ASSIGNMENT_END_TIMEOUT_S)


def stopwatch_ms() -> int:
    return int(monotonic() * 1_000)
