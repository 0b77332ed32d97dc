"""Waits: how long a thread keeps the interpreter from all others."""

from collections.abc import Callable
from threading import Thread
from time import perf_counter, sleep


def shares_interpreter(work: Callable[[], object], most: float = 0.5) -> bool:
    """Whether others wait for `work`, in a thread, at most such a part of the time that it takes.

    Tried some times: on a machine with other load they wait for that, too.
    """
    return any(_longest_wait(work) <= most for _ in range(5))


def _longest_wait(work: Callable[[], object]) -> float:
    """A part of the time that the work takes."""
    thread = Thread(target=work)
    began = last = perf_counter()
    longest = 0.0
    thread.start()
    while thread.is_alive():
        now = perf_counter()
        longest, last = max(longest, now - last), now
        sleep(0.000_5)
    ended = perf_counter()
    thread.join()
    return max(longest, ended - last) / (ended - began)
