"""How many requests, how long, with which errors? Plain integers, counted where the answer is
made.

A metrics library costs a lock and several calls for each sample; a request costs ten
microseconds. So the road counts into these lists, and `metrics.py` turns them into families when
somebody scrapes.
"""

from bisect import bisect_left
from typing import Final

from protocol.names import ApiKey

BUCKETS_S: Final = (
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
"""Upper bounds. Fine below a millisecond, where heartbeats are; joins wait for seconds."""


class RequestStats:
    """One API: requests by version, answers by duration, errors by code."""

    __slots__ = ("api_key", "buckets", "by_version", "errors", "failures", "seconds")

    def __init__(self, api_key: ApiKey, versions: int) -> None:
        self.api_key = api_key
        self.by_version = [0] * versions
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.seconds = 0.0
        self.errors: dict[int, int] = {}
        self.failures = 0

    def answered(self, seconds: float) -> None:
        self.seconds += seconds
        self.buckets[bisect_left(BUCKETS_S, seconds)] += 1

    def erred(self, error_code: int) -> None:
        self.errors[error_code] = self.errors.get(error_code, 0) + 1
