"""Record times: the timestamp of the oldest record that a group has not consumed, cached.

The time of a record never changes. So it may be read after commit and log end were read, and be
cached for as long as the offset is needed; groups at the same offset share the entry. A lookup
reads one batch, perhaps from the disk, so it runs in a thread, a few at a time. A record that
cannot be read now is looked up again later.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from history.lag.model import PartitionKey
from history.lag.store import RecordTime
from storage.api import Corrupt, TopicLog
from storage.batch.record_batch import InvalidBatch
from storage.log.record_times import time_of_record

LOOKUPS_AT_ONCE: Final = 50
"""In one call of the thread: some milliseconds, which is all that a stop waits for."""

RECORD_TIMES_MAX: Final = 200_000
"""Cached times; beyond them the older half is dropped."""


class RecordTimeLookup(NamedTuple):
    key: PartitionKey
    log: TopicLog
    offset: int


class _CachedTime(NamedTuple):
    log: TopicLog  # a recreated topic has another one
    time: RecordTime | None


class RecordTimes:
    def __init__(self) -> None:
        self._cached: dict[tuple[PartitionKey, int], _CachedTime] = {}
        self.lookups = 0

    def known(self, lookup: RecordTimeLookup) -> tuple[bool, RecordTime | None]:
        """(whether it was looked up, the result)."""
        cached = self._cached.get((lookup.key, max(lookup.offset, lookup.log.log_start_offset)))
        if cached is None or cached.log is not lookup.log:
            return False, None
        return True, cached.time

    async def look_up(self, lookups: Sequence[RecordTimeLookup]) -> None:
        """Read and cache the times; `known` returns them, except those that could not be read."""
        loop = asyncio.get_running_loop()
        for at in range(0, len(lookups), LOOKUPS_AT_ONCE):
            part = lookups[at : at + LOOKUPS_AT_ONCE]
            found = await loop.run_in_executor(None, _read, part)
            for lookup, (offset, time_ms, is_known) in zip(part, found, strict=True):
                if is_known:
                    self._cache(lookup, offset, time_ms)
            self.lookups += len(part)

    def _cache(self, lookup: RecordTimeLookup, offset: int, time_ms: int | None) -> None:
        if len(self._cached) >= RECORD_TIMES_MAX:
            # The older half: entries still in use return within a round or two.
            for key in list(self._cached)[: RECORD_TIMES_MAX // 2]:
                del self._cached[key]
        time = None if time_ms is None else RecordTime(time_ms, exact=True)
        self._cached[lookup.key, offset] = _CachedTime(lookup.log, time)


def _read(lookups: Sequence[RecordTimeLookup]) -> list[tuple[int, int | None, bool]]:
    """In a thread: (offset, timestamp, whether it could be read) of each."""
    found: list[tuple[int, int | None, bool]] = []
    for lookup in lookups:
        offset = max(lookup.offset, lookup.log.log_start_offset)
        try:
            found.append((offset, time_of_record(lookup.log, lookup.offset), True))
        except (IndexError, OSError, Corrupt, InvalidBatch):
            # Deleted meanwhile, or damaged: a Fetch reports the damage.
            found.append((offset, None, False))
    return found
