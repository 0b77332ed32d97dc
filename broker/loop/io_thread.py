"""I/O thread: the daemon's IoExecutor, one thread with a queue beside the event loop.

`submit` belongs to the loop's thread. Results come back in order, with one call on the loop for all
that are there. `close` waits until everything that was submitted has finished.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Final, TypeVar

T = TypeVar("T")

YIELD_S: Final = 0.000_2
"""Some turns of the loop begin meanwhile; a million records take half a second longer."""

_Task = Callable[[], Callable[[], None]]


class IoThread:
    """Implements seams/io_executor.py: IoExecutor."""

    __slots__ = ("_ended", "_finished", "_is_closed", "_loop", "_on_fault", "_queue", "pending")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: str, on_fault: Callable[[Exception], None]
    ) -> None:
        """`on_fault` is called, on the loop, with an exception that a `done` callback raised."""
        self._loop = loop
        self._on_fault = on_fault
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._finished: deque[Callable[[], None]] = deque()
        self._is_closed = False
        self._ended = asyncio.Event()
        self.pending = 0  # submitted, not handed back yet
        Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Queue work for the thread; after `close`, RuntimeError."""
        if self._is_closed:
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
            # With more than one, the call that was scheduled for the first still has to run.
            if len(self._finished) == 1:
                self._call(self._hand_back)
        self._call(self._ended.set)

    def _call(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits for us
            self._loop.call_soon_threadsafe(callback)

    def _hand_back(self) -> None:
        """Call back what finished. The thread schedules another call if more comes meanwhile."""
        while self._finished:
            finished = self._finished.popleft()
            self.pending -= 1
            try:
                finished()
            except Exception as error:  # noqa: BLE001 - one callback must not stop the others
                self._on_fault(error)

    def pause(self) -> None:
        """In the thread: give up the interpreter's lock for long enough that the loop takes it."""
        sleep(YIELD_S)

    async def finish(self) -> None:
        """Wait until what was submitted so far is handed back."""
        reached = asyncio.Event()
        self.submit(lambda: None, lambda _: reached.set())
        await reached.wait()

    async def close(self) -> None:
        """Finish what was submitted, hand it back, and end the thread.

        May be cancelled by a time limit: then the thread ends with the process.
        """
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        await self._ended.wait()
        self._hand_back()


class IoThreads:
    """The data plane's threads, as topics/data_plane.py names them."""

    __slots__ = ("admin", "appender", "checker", "reader")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_fault: Callable[[Exception], None]
    ) -> None:
        self.appender = IoThread(loop, "topic-appender", on_fault)
        self.checker = IoThread(loop, "topic-checker", on_fault)
        self.reader = IoThread(loop, "topic-reader", on_fault)
        self.admin = IoThread(loop, "topic-admin", on_fault)

    async def wait_idle(self, timeout_s: float) -> bool:
        """Wait until every thread is idle; False if that takes too long."""
        return await _in_time(self._wait_idle(), timeout_s)

    async def _wait_idle(self) -> None:
        threads = (self.admin, self.checker, self.reader, self.appender)
        while busy := [thread for thread in threads if thread.pending]:
            await busy[0].finish()

    async def close(self, timeout_s: float) -> bool:
        """Finish what was submitted and end; False if a thread did not end in time.

        First the threads whose results give work to the others.
        """
        return await _in_time(self._close(), timeout_s)

    async def _close(self) -> None:
        await self._wait_idle()
        for thread in (self.admin, self.checker, self.reader, self.appender):
            await thread.close()


async def _in_time(waiting: Coroutine[None, None, None], timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(waiting, timeout_s)
    except TimeoutError:
        return False
    return True
