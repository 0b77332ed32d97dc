"""Group commit: when the flusher starts the next flush (linger).

An fsync costs the same for one commit as for fifty, and the clients whose commits it made durable
send their next ones at once. A flusher that starts again as soon as it is done takes the third of
them that came meanwhile, and leaves the rest to two more flushes. So between two flushes the group
is open: the loop wakes the flusher after a pass over its sockets that brought nothing to write,
and a flusher that was not woken starts by itself after `ADAPTIVE_LINGER_MS_MAX`. A single commit
waits for one pass that finds nothing to read, a few microseconds.

`group.coordinator.append.linger.ms`: -1 is the above. With 0 a flush starts when the flusher has
time for it, and with more the flusher waits that long for the group. Kafka's counterpart is the
key itself: `CoordinatorRuntime` flushes a batch once its queue of events is empty (-1), or after
the linger.

With a group writer (group_writer.py) the loop itself posts a complete group, if `post` finds that
the usual will do; else it wakes the flusher.

Threads: any thread may call `wake`, only the loop calls `queued`, the one that ends a flush `open`,
and only the flusher the rest. Each flag is a single store that means the same to both sides. A lock
in `_sleepers` is released by the thread that takes it out.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection
from time import perf_counter
from typing import Final

from storage.journal.group_writer import GroupWriter

ADAPTIVE: Final = -1

ADAPTIVE_LINGER_MS_MAX: Final = 2
"""Longest wait while the loop always has more to read. An fsync takes about as long."""

Defer = Callable[[Callable[[], None]], object]
"""Runs a callback after the event loop's present pass over its sockets."""


Post = Callable[[], bool]
"""Hands the group that is queued to the group writer; False if the flusher has to flush it."""


def never() -> bool:
    return False


def run_at_once(callback: Callable[[], None]) -> None:
    callback()


class GroupCommit:
    """`queue` holds what waits for a flush; `is_urgent` says whether there is other work."""

    __slots__ = (
        "_fixed_s",
        "_has_more",
        "_is_open",
        "_is_polling",
        "_is_urgent",
        "_linger_s",
        "_queue",
        "_sleepers",
        "_until_s",
        "_writer",
        "defer",
        "post",
    )

    def __init__(
        self, linger_ms: int, queue: Collection[object], is_urgent: Callable[[], bool]
    ) -> None:
        self._linger_s = (ADAPTIVE_LINGER_MS_MAX if linger_ms == ADAPTIVE else 0) / 1000
        self._fixed_s = max(linger_ms, 0) / 1000
        self._queue = queue
        self._is_urgent = is_urgent
        self._is_open = True  # the flusher waits to be woken, or is about to
        self._is_polling = False  # `_poll` is scheduled
        self._has_more = False  # something was queued since the last poll
        self._until_s = 0.0
        self._sleepers: deque[threading.Lock] = deque()  # the flusher's lock, while it sleeps
        self._writer: GroupWriter | None = None
        self.defer: Defer = run_at_once
        self.post: Post = never

    def rest_in(self, writer: GroupWriter) -> None:
        """The flusher's thread, which is not started yet, rests there."""
        self._writer = writer

    # --- the threads that queue work ------------------------------------------------------------

    def queued(self) -> None:
        """Something was queued; or what was queued before may go if nothing else comes."""
        self._has_more = True
        if self._is_open and not self._is_polling:
            self._is_polling = True
            self._until_s = perf_counter() + self._linger_s
            self.defer(self._poll)

    def _poll(self) -> None:
        """A pass of the loop has ended: the group is complete if the pass brought nothing."""
        if self._has_more and perf_counter() < self._until_s:
            self._has_more = False
            self.defer(self._poll)
            return
        self._is_polling = False
        self._is_open = False  # first: a flush that is posted may end, and open it, at any moment
        if self._fixed_s or not self.post():
            self.wake()

    def wake(self) -> None:
        """Wake the flusher; costs no system call if it is awake."""
        self._is_open = False
        if self._writer is not None:
            self._writer.wake()
            return
        try:
            self._sleepers.pop().release()
        except IndexError:
            return  # awake already, or another thread wakes it

    # --- the flusher ----------------------------------------------------------------------------

    def open(self) -> None:
        """A flush is done and not reported yet: what comes in from now on is the next group."""
        self._is_open = True

    def linger(self) -> None:
        """Something is queued: wait until the group is complete."""
        if self._fixed_s:
            self._is_open = False  # the linger is fixed: nothing wakes the flusher earlier
            self._sleep(self._fixed_s, self._is_urgent)
        elif self._linger_s and self._is_open:
            self._sleep(self._linger_s, self._was_woken)
        self._is_open = False

    def sleep_until_work(self, timeout_s: float | None) -> bool:
        """Nothing is queued: wait until something is; False if the timeout ends first."""
        self._is_open = True
        return self._sleep(timeout_s, self._has_work)

    def _was_woken(self) -> bool:
        return not self._is_open or self._is_urgent()

    def _has_work(self) -> bool:
        # Closed: somebody woke the flusher after it had opened the group and before its rest began.
        # Asleep behind a closed group, nothing that is queued would wake it.
        return not self._is_open or bool(self._queue) or self._is_urgent()

    def _sleep(self, timeout_s: float | None, came_meanwhile: Callable[[], bool]) -> bool:
        if self._writer is not None:
            self._writer.forget_wake()  # what it was for shows now; later ones count
            if came_meanwhile():
                return True
            return self._writer.wait(-1.0 if timeout_s is None else timeout_s)
        lock = threading.Lock()
        lock.acquire()
        self._sleepers.append(lock)
        if came_meanwhile():
            self.wake()  # take our own lock out, or see that it was taken
        if lock.acquire(timeout=-1 if timeout_s is None else timeout_s):
            return True
        try:
            self._sleepers.pop()
        except IndexError:
            return True  # woken at the last moment
        return False
