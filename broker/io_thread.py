"""I/O thread: the daemon's IoExecutor, one thread with a queue beside the event loop.

`submit` belongs to the loop's thread. Results come back in order, one call on the loop for all
that finished meanwhile. `close` lets what was submitted finish first: nothing half done is left.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

_Task = Callable[[], Callable[[], None]]


class IoThread:
    """Implements topics/io_executor.py: IoExecutor."""

    __slots__ = ("_finished", "_loop", "_on_fault", "_queue", "_thread", "pending")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: str, on_fault: Callable[[Exception], None]
    ) -> None:
        """`on_fault` hears, on the loop, of an exception that a `done` callback raised."""
        self._loop = loop
        self._on_fault = on_fault
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._finished: deque[Callable[[], None]] = deque()
        self._thread: Thread | None = Thread(target=self._run, name=name, daemon=True)
        self.pending = 0  # submitted, not handed back yet
        self._thread.start()

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Queue work for the thread; after `close`, RuntimeError."""
        if self._thread is None:
            raise RuntimeError("the I/O thread is closed")

        def task() -> Callable[[], None]:
            result: T | Exception
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - `done` decides what becomes of it
                result = error
            return lambda: done(result)

        self.pending += 1
        self._queue.put(task)

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            finished = task()
            self._finished.append(finished)
            # With more than one, the call that was asked for the first has yet to drain the queue.
            if len(self._finished) == 1:
                self._loop.call_soon_threadsafe(self._hand_back)

    def _hand_back(self) -> None:
        """Call what finished. The thread asks for another call if more comes meanwhile."""
        while self._finished:
            finished = self._finished.popleft()
            self.pending -= 1
            try:
                finished()
            except Exception as error:  # noqa: BLE001 - one callback must not stop the others
                self._on_fault(error)

    async def close(self) -> None:
        """Finish what was submitted, hand it back, and end the thread."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._queue.put(None)
        await self._loop.run_in_executor(None, thread.join)
        self._hand_back()


class IoThreads:
    """The data plane's threads, as topics/data_plane.py names them."""

    __slots__ = ("admin", "appender", "reader")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_fault: Callable[[Exception], None]
    ) -> None:
        self.appender = IoThread(loop, "topic-appender", on_fault)
        self.reader = IoThread(loop, "topic-reader", on_fault)
        self.admin = IoThread(loop, "topic-admin", on_fault)

    async def close(self) -> None:
        """Finish what was submitted. First `admin`: what it does may give work to the others."""
        for thread in (self.admin, self.reader, self.appender):
            await thread.close()
