"""Slices: keeps the event loop free while a request walks over many groups or topics.

A walk works for a millisecond at most, then everything else that is due runs, other walks included.
Lists of groups, the longest walks, are made one at a time and shared (`group_rows.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Final, TypeVar

from broker.observe.stats import LoopStalls

T = TypeVar("T")

WALK_SLICE_S: Final = 0.001
COMPARED_AT_ONCE: Final = 500
"""Some tenths of a millisecond."""


class Slices:
    """One walk. `pause_if_due` between any two steps, each some tens of microseconds."""

    def __init__(self, stalls: LoopStalls) -> None:
        self._stalls = stalls
        self._began_s = stalls.begin()
        self.pauses = 0
        self.longest_s = 0.0

    async def pause_if_due(self) -> None:
        took_s = self._stalls.begin() - self._began_s
        if took_s < WALK_SLICE_S:
            return
        self.longest_s = max(self.longest_s, took_s)
        self._stalls.record("console", took_s)
        self.pauses += 1
        await asyncio.sleep(0)
        self._began_s = self._stalls.begin()


async def smallest_in_slices(
    items: Sequence[T], limit: int, key: Callable[[T], tuple[int, str, int]], slices: Slices
) -> list[T]:
    """The `limit` items with the smallest keys, in their order; all of them if there are fewer."""
    first: list[T] = []
    for at in range(0, len(items), COMPARED_AT_ONCE):
        first = nsmallest(limit, [*first, *items[at : at + COMPARED_AT_ONCE]], key=key)
        await slices.pause_if_due()
    return first
