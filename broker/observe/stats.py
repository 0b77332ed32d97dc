"""Statistics: plain numbers that the request path and the event loop count into.

A metrics library costs a lock and several calls for each sample; a request costs ten microseconds.
So the request path counts into these, and `metrics/` turns them into families at a scrape.
`LoopStalls` has what blocked the event loop: long turns by their kind, and the garbage collector.
"""

import gc
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Final

from protocol.names import ApiKey

REQUEST_BUCKETS_S: Final[tuple[float, ...]] = (
    0.000_05,
    0.000_1,
    0.000_25,
    0.000_5,
    0.001,
    0.002_5,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)
"""Fine below a millisecond, where heartbeats are; joins wait for seconds."""


class Histogram:
    """`counts` has one number more than there are bounds: for what is above all of them."""

    __slots__ = ("_first", "bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self._first = bounds[0]
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, amount: float) -> None:
        self.total += amount
        # A request that is answered at once is in the first bucket: there is nothing to search.
        place = 0 if amount <= self._first else bisect_left(self.bounds, amount)
        self.counts[place] += 1

    def add_times(self, amount: float, times: int) -> None:
        """The same amount several times."""
        self.total += amount * times
        self.counts[bisect_left(self.bounds, amount)] += times


class RequestStats:
    """One API: requests by version, answers by duration, errors by code."""

    __slots__ = ("api_key", "by_version", "errors", "failures", "seconds")

    def __init__(self, api_key: ApiKey, version_stop: int) -> None:
        self.api_key = api_key
        self.by_version = [0] * version_stop
        self.seconds = Histogram(REQUEST_BUCKETS_S)
        self.errors: dict[int, int] = {}
        self.failures = 0

    def erred(self, error_codes: Iterable[int]) -> None:
        for error_code in error_codes:
            self.errors[error_code] = self.errors.get(error_code, 0) + 1


LONG_TURN_S: Final = 0.005
"""A turn that takes this long is counted by its kind: every other client waited for it."""

PEAK_WINDOW_S: Final = 60.0

ALWAYS_SHOWN: Final = ("connection", "scrape", "answers that were stored")
"""Kinds of turns that have a sample even before one was long."""

GC_BUCKETS_S: Final[tuple[float, ...]] = (0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


class LoopStalls:
    """Which kinds of work blocked the event loop for long, and how long the longest of late was."""

    def __init__(self) -> None:
        self.long = dict.fromkeys(ALWAYS_SHOWN, 0)  # by kind
        self.gc_pauses = Histogram(GC_BUCKETS_S)
        self._now: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._window_began_s = perf_counter()
        self._gc_began_s = 0.0

    def begin(self) -> float:
        """For those who have no stopwatch of their own; see `end`."""
        return perf_counter()

    def end(self, kind: str, began_s: float) -> None:
        self.record(kind, perf_counter() - began_s)

    def record(self, kind: str, seconds: float) -> None:
        """A turn of this kind is over; callers may leave out short ones."""
        if seconds < LONG_TURN_S:
            return
        self._renew()
        self.long[kind] = self.long.get(kind, 0) + 1
        if seconds > self._now.get(kind, 0.0):
            self._now[kind] = seconds

    def longest(self) -> dict[str, float]:
        """By kind, in this window and the one before it: a peak is seen by every scraper."""
        self._renew()
        return {
            kind: max(self._now.get(kind, 0.0), self._before.get(kind, 0.0)) for kind in self.long
        }

    def _renew(self) -> None:
        now_s = perf_counter()
        if now_s - self._window_began_s >= PEAK_WINDOW_S:
            is_adjacent = now_s - self._window_began_s < 2 * PEAK_WINDOW_S
            self._before = self._now if is_adjacent else {}
            self._now = {}
            self._window_began_s = now_s

    def watch_gc(self) -> None:
        gc.callbacks.append(self._collecting)

    def unwatch_gc(self) -> None:
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)

    def _collecting(self, phase: str, _info: Mapping[str, int]) -> None:
        if phase == "start":
            self._gc_began_s = perf_counter()
        else:
            self.gc_pauses.add(perf_counter() - self._gc_began_s)
