"""Admin queue: runs changes of topics one at a time, with their disk work off the event loop.

An operation is a generator. It starts on the loop and decides by the tables as they are then. It
yields its disk work, and continues on the loop when that is done. An error of the disk is raised as
OSError at the yield. The next operation starts when this one has ended: of two operations that
create one name, the second finds the topic.
Kafka's counterpart: the event queue of `QuorumController`.
"""

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

from seams.io_executor import IoExecutor

T = TypeVar("T")

DiskWork = Callable[[], None]
Steps = Generator[DiskWork, None, T]
"""An operation, or a part of one; its value is what it returns."""


class AdminQueue:
    """Used on the loop's thread only."""

    def __init__(self, io: IoExecutor) -> None:
        self._io = io
        self._queued: deque[tuple[Callable[[], Steps[None]], Callable[[], None]]] = deque()
        self._is_busy = False
        self._is_closed = False

    def run(self, begin: Callable[[], Steps[None]], failed: Callable[[], None]) -> None:
        """Run the operation after those before it; `failed` is called if it ended by a bug."""
        if not self._is_closed:
            self._queued.append((begin, failed))
            self._start_next()

    def _start_next(self) -> None:
        while self._queued and not self._is_busy:
            begin, failed = self._queued.popleft()
            self._is_busy = True
            self._advance(begin(), failed, None)

    def close(self) -> None:
        """The daemon stops: no operation starts any more, and a running one stops at its next step,
        as if the process had been killed there. The next start completes it."""
        self._is_closed = True
        self._queued.clear()

    def _advance(
        self, steps: Steps[None], failed: Callable[[], None], result: Exception | None
    ) -> None:
        """Up to the next disk work, or to the end."""
        try:
            work = steps.throw(result) if result is not None else next(steps)
        except StopIteration:
            self._is_busy = False
            return
        except BaseException:
            self._is_busy = False
            failed()
            raise
        if self._is_closed:
            steps.close()
        else:
            self._io.submit(work, partial(self._done, steps, failed))

    def _done(
        self, steps: Steps[None], failed: Callable[[], None], result: Exception | None
    ) -> None:
        try:
            self._advance(steps, failed, result)
        finally:
            self._start_next()


def run_now(steps: Steps[T]) -> T:
    """Run a whole operation with its disk work in the caller's thread; its result."""
    try:
        work = next(steps)
        while True:
            try:
                work()
            except OSError as fault:
                work = steps.throw(fault)
            else:
                work = next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
