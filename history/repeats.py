"""Repeats: of one thing that happens again and again, which times are told?

The first, second, fourth, eighth ... time in a row, and at least one a minute: a client's loop of
half an hour is some forty entries in the log and in the history, each with how often so far.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

TOLD_EVERY_MS: Final = 60_000
OVER_MS: Final = 120_000
"""After so long a silence it is not a repeat."""

KEYS_MAX: Final = 1_000
"""Things that are counted at one time; beyond it the one that is quiet longest begins anew."""


class Repeats:
    def __init__(self) -> None:
        self._seen: OrderedDict[Hashable, tuple[int, int, int]] = OrderedDict()

    def count(self, key: Hashable, now_ms: int) -> int | None:
        """How often it happened in a row by now; None if this time need not be told."""
        times, told_ms, last_ms = self._seen.pop(key, (0, now_ms, now_ms))
        if now_ms - last_ms > OVER_MS:
            times = 0
        times += 1
        is_told = not times & (times - 1) or now_ms - told_ms >= TOLD_EVERY_MS
        self._seen[key] = (times, now_ms if is_told else told_ms, now_ms)
        if len(self._seen) > KEYS_MAX:
            self._seen.popitem(last=False)
        return times if is_told else None
