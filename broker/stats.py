"""How many requests, how long, with which errors? Plain integers, counted where answers are made.

A metrics library costs a lock and several calls for each sample; a request costs ten microseconds.
So the road counts into these, and `metrics.py` turns them into families when somebody scrapes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from protocol.names import ApiKey

REQUEST_BUCKETS_S: Final = (
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
    """`counts` has one number more than there are bounds: for what lies above all of them."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, amount: float) -> None:
        self.total += amount
        self.counts[bisect_left(self.bounds, amount)] += 1


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
