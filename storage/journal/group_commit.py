"""When is a group of commits whole? How the event loop and the flusher agree on the next flush.

An fsync costs the same for one commit as for fifty, and the clients whose commits it made true come
back with their next ones at once. A flusher that begins again the moment it is done takes the third
of them that came meanwhile, and leaves the rest to two more flushes. So between two flushes the
group is open: the loop calls the flusher after a pass over its sockets that brought nothing more to
write, and a flusher that was not called begins by itself after `ADAPTIVE_LINGER_MS_MAX`. Whoever
commits alone waits for one pass that finds nothing to read, a few microseconds.

`group.coordinator.append.linger.ms`: -1 is what was said above; with 0 a group is whole when the
flusher has time for it, with more it is gathered for so long. Kafka's counterpart is the key's own:
`CoordinatorRuntime` flushes a batch once its queue of events is empty (-1), or after the linger.

Threads: `call` is anybody's, `more` is the loop's, all else is the flusher's. Each flag is a single
store that means the same to both sides; a lock in `_sleepers` is released by whoever takes it out.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection
from time import perf_counter
from typing import Final

ADAPTIVE: Final = -1

ADAPTIVE_LINGER_MS_MAX: Final = 2
"""Longest wait for a loop that has ever more to read. An fsync takes about as long."""

Soon = Callable[[Callable[[], None]], object]


def at_once(call: Callable[[], None]) -> None:
    call()


class Gathering:
    """`queue` is what waits for a flush; `is_urgent` says whether there is other work."""

    __slots__ = (
        "_fixed_s",
        "_has_more",
        "_is_calling",
        "_is_open",
        "_is_urgent",
        "_linger_s",
        "_queue",
        "_sleepers",
        "_until_s",
        "soon",
    )

    def __init__(
        self, linger_ms: int, queue: Collection[object], is_urgent: Callable[[], bool]
    ) -> None:
        self._linger_s = (ADAPTIVE_LINGER_MS_MAX if linger_ms == ADAPTIVE else 0) / 1000
        self._fixed_s = max(linger_ms, 0) / 1000
        self._queue = queue
        self._is_urgent = is_urgent
        self._is_open = True  # the flusher waits to be called, or is about to
        self._is_calling = False  # `look` is on its way
        self._has_more = False  # since the last look
        self._until_s = 0.0
        self._sleepers: deque[threading.Lock] = deque()  # the flusher's lock, while it sleeps
        self.soon: Soon = at_once

    # --- whoever brings something ---------------------------------------------------------------

    def more(self) -> None:
        """Something was queued, or what was queued before may go if nothing else comes."""
        self._has_more = True
        if self._is_open and not self._is_calling:
            self._is_calling = True
            self._until_s = perf_counter() + self._linger_s
            self.soon(self._look)

    def _look(self) -> None:
        """A pass of the loop is over: the group is whole if the pass brought nothing."""
        if self._has_more and perf_counter() < self._until_s:
            self._has_more = False
            self.soon(self._look)
            return
        self._is_calling = False
        self.call()

    def call(self) -> None:
        """Wake the flusher; costs no system call if it is awake."""
        self._is_open = False
        try:
            self._sleepers.pop().release()
        except IndexError:
            return  # awake already, or being woken

    # --- the flusher ------------------------------------------------------------------------------

    def open(self) -> None:
        """A flush is done, and nobody was told yet: what comes in from now on is the next group."""
        self._is_open = True

    def gather(self) -> None:
        """Something is queued: wait until the group is whole."""
        if self._fixed_s:
            self._is_open = False  # nobody calls: it takes as long as it takes
            self._sleep(self._fixed_s, self._is_urgent)
        elif self._linger_s and self._is_open:
            self._sleep(self._linger_s, self._was_called)
        self._is_open = False

    def rest(self, timeout_s: float | None) -> bool:
        """Nothing is queued: wait until something is; False if the time is up first."""
        self._is_open = True
        return self._sleep(timeout_s, self._has_work)

    def _was_called(self) -> bool:
        return not self._is_open or self._is_urgent()

    def _has_work(self) -> bool:
        return bool(self._queue) or self._is_urgent()

    def _sleep(self, timeout_s: float | None, came_meanwhile: Callable[[], bool]) -> bool:
        lock = threading.Lock()
        lock.acquire()
        self._sleepers.append(lock)
        if came_meanwhile():
            self.call()  # take our own lock out, or see that it was taken
        if lock.acquire(timeout=-1 if timeout_s is None else timeout_s):
            return True
        try:
            self._sleepers.pop()
        except IndexError:
            return True  # somebody woke us at the last moment
        return False
