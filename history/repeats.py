"""Repeats: limits the entries about something that happens again and again.

The first, second, fourth, eighth ... time in a row is recorded, and at least one a minute: half an
hour of one client's retries is some forty entries in the log and in the history, each with its
count so far.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

REPEAT_INTERVAL_MS: Final = 60_000
REPEAT_PAUSE_MS: Final = 120_000
"""After a longer pause the count restarts."""

REPEAT_KEYS_MAX: Final = 1_000
"""Keys counted at one time; beyond it the one that paused longest is forgotten."""


class Repeats:
    def __init__(self) -> None:
        self._seen: OrderedDict[Hashable, tuple[int, int, int]] = OrderedDict()

    def count(self, key: Hashable, now_ms: int) -> int | None:
        """The count in a row; None if this time is not recorded."""
        times, recorded_ms, last_ms = self._seen.pop(key, (0, now_ms, now_ms))
        if now_ms - last_ms > REPEAT_PAUSE_MS:
            times = 0
        times += 1
        is_recorded = not times & (times - 1) or now_ms - recorded_ms >= REPEAT_INTERVAL_MS
        self._seen[key] = (times, now_ms if is_recorded else recorded_ms, now_ms)
        if len(self._seen) > REPEAT_KEYS_MAX:
            self._seen.popitem(last=False)
        return times if is_recorded else None
