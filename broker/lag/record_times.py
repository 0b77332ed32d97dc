"""How old is the oldest record that a group has not consumed? Looked up off the loop, and kept.

A record's time never changes, so it may be read after the instant at which commit and log end were
read together, and be kept for as long as anybody asks for that offset; many groups at one offset
share the answer. A look-up reads one batch, from the disk perhaps: it is done in a thread, a few at
a time. What could not be read now is not known now, and is asked for again.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from history.lag.book import Key, RecordTime
from storage.api import Corrupt, TopicLog
from storage.batch.record_batch import InvalidBatch
from storage.log.record_times import time_of_record

LOOKUPS_AT_ONCE: Final = 50
"""In one go of the thread: some milliseconds, so that a stop of the daemon waits for no more."""

KEPT_MAX: Final = 200_000


class Wanted(NamedTuple):
    key: Key
    log: TopicLog
    offset: int


class _Kept(NamedTuple):
    log: TopicLog  # of a topic that was created anew it is another
    time: RecordTime | None


class RecordTimes:
    def __init__(self) -> None:
        self._kept: dict[tuple[Key, int], _Kept] = {}
        self.lookups = 0

    def known(self, wanted: Wanted) -> tuple[bool, RecordTime | None]:
        """(whether it was looked up, what was found)."""
        kept = self._kept.get((wanted.key, max(wanted.offset, wanted.log.log_start_offset)))
        if kept is None or kept.log is not wanted.log:
            return False, None
        return True, kept.time

    async def look_up(self, wanted: Sequence[Wanted]) -> None:
        """Find out and keep; `known` has the answers then, but for what could not be read."""
        loop = asyncio.get_running_loop()
        for at in range(0, len(wanted), LOOKUPS_AT_ONCE):
            part = wanted[at : at + LOOKUPS_AT_ONCE]
            found = await loop.run_in_executor(None, _read, part)
            for one, (offset, time_ms, is_known) in zip(part, found, strict=True):
                if is_known:
                    self._keep(one, offset, time_ms)
            self.lookups += len(part)

    def _keep(self, wanted: Wanted, offset: int, time_ms: int | None) -> None:
        if len(self._kept) >= KEPT_MAX:
            # The older half: what is still asked for comes back in a round or two.
            for key in list(self._kept)[: KEPT_MAX // 2]:
                del self._kept[key]
        time = None if time_ms is None else RecordTime(time_ms, exact=True)
        self._kept[wanted.key, offset] = _Kept(wanted.log, time)


def _read(wanted: Sequence[Wanted]) -> list[tuple[int, int | None, bool]]:
    """In a thread. (offset, timestamp, whether that is an answer) of each."""
    found: list[tuple[int, int | None, bool]] = []
    for one in wanted:
        offset = max(one.offset, one.log.log_start_offset)
        try:
            found.append((offset, time_of_record(one.log, one.offset), True))
        except (IndexError, OSError, Corrupt, InvalidBatch):
            # Deleted under us, or damaged: the first mends itself, the second Fetch tells.
            found.append((offset, None, False))
    return found
