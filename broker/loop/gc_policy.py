"""GC policy: Python's garbage collector examines young objects only.

Groups, members, offsets and connections are freed with their last reference; the collector is for
reference cycles, of which there are none among ours (tests/broker/loop/test_gc_policy.py). The
console's handlers and tracebacks make some, and those die young. A collection of the oldest
generation would walk through every group in memory for nothing, at the latest when the heap has
grown by a quarter: 250 ms for a million offsets, in which no request is answered. So where one
would be due, everything that is old by then is frozen instead, which takes no time. The cost: a
cycle of old objects stays until the daemon stops.
"""

import gc
from collections.abc import Mapping
from typing import Final

MIDDLE: Final = 1
"""The generation of those that survived one collection."""

UNREACHED_THRESHOLD: Final = 1 << 30
"""Switches the collection of a generation off."""


class GcPolicy:
    """The collector of this process. Off during a start, which makes much and frees little."""

    __slots__ = ("_before", "_rounds")

    def __init__(self) -> None:
        self._before = gc.get_threshold()
        self._rounds = 0

    def start(self) -> None:
        """From now on young objects are examined, and none of the present ones."""
        young, middle, _ = self._before
        gc.freeze()
        gc.set_threshold(young, middle, UNREACHED_THRESHOLD)
        gc.callbacks.append(self._collected)
        gc.enable()

    def stop(self) -> None:
        """As before, for later code of this process. May be called twice or without a start."""
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*self._before)

    def _collected(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop" and info["generation"] == MIDDLE:
            self._rounds += 1
            if self._rounds > self._before[2]:
                self._rounds = 0
                gc.freeze()
