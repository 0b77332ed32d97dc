"""What does Python's garbage collector do in this daemon? It looks at what is young, and no more.

Groups, members, offsets and connections go when the last reference to them goes; the collector
is for rings of objects, of which there are none among ours (tests/broker/loop/test_gc_policy.py).
What makes some are the console's handlers and tracebacks, and those die young. A collection of the
oldest generation would walk through every group in memory for nothing, at the latest when they have
grown by a quarter: 250 ms for a million offsets, in which nobody is answered. So where one
would be due, everything that has grown old by then is put out of the collector's sight instead,
which takes no time. What that costs: a ring of old objects stays until the daemon stops.
"""

import gc
from collections.abc import Mapping
from typing import Final

MIDDLE: Final = 1
"""The generation of those that survived one collection."""

NEVER: Final = 1 << 30
"""A threshold that is not reached."""


class GcPolicy:
    """Python's own, in this process. Off while a start makes much and drops little."""

    __slots__ = ("_before", "_rounds")

    def __init__(self) -> None:
        self._before = gc.get_threshold()
        self._rounds = 0

    def start(self) -> None:
        """From now on young objects are looked at, and none of those that are there."""
        young, middle, _ = self._before
        gc.freeze()
        gc.set_threshold(young, middle, NEVER)
        gc.callbacks.append(self._collected)
        gc.enable()

    def stop(self) -> None:
        """As before, for whoever goes on in this process. Twice, or without a start: no harm."""
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*self._before)

    def _collected(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop" and info["generation"] == MIDDLE:
            self._rounds += 1
            if self._rounds > self._before[2]:
                self._rounds = 0
                gc.freeze()
