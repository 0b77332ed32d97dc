"""What does `__group_history` still have of a group? Read backwards, a window at a time.

Memory has the last rebalances; whoever asks for older ones gets them from here. A window is looked
through for the group's id before anything in it is decoded, so that what concerns other groups
costs next to nothing. Between two windows the loop serves others.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from history.encoding import UnreadableEvent, decode
from history.events import HistoryEvent, Rebalance
from history.story import whole_rebalance
from storage.api import StoredRecord, TopicLog
from storage.record_batch import InvalidBatch, iter_batches, stored_records

FIRST_WINDOW: Final = 512
"""Records. Each window is twice as long as the one after it, up to:"""

WINDOW_MAX: Final = 16_384

READ_BYTES: Final = 1 << 20

Found = tuple[int, HistoryEvent]


class Window:
    """A stretch of one partition, as whole batches."""

    def __init__(self, first: int, end: int, parts: list[bytes]) -> None:
        self._first = first
        self._end = end
        self._parts = parts
        self.size = sum(map(len, parts))

    def events(self, group_id: str | None = None) -> Iterator[Found]:
        """(offset, event) in their order, of one group or of all; what is not readable is skipped:
        another version wrote it."""
        key = None if group_id is None else group_id.encode()
        for part in self._parts:
            if key is not None and key not in part:
                continue
            for batch in _batches(part):
                for record in () if key is not None and key not in batch else _records(batch):
                    is_asked = key is None or record.key == key
                    if not is_asked or not self._first <= record.offset < self._end:
                        continue
                    try:
                        event = decode(record.value)
                    except UnreadableEvent:
                        continue
                    if event is not None:
                        yield record.offset, event


def _batches(part: bytes) -> list[bytes]:
    try:
        return [part[at : at + header.size] for at, header in iter_batches(part)]
    except InvalidBatch:
        return []


def _records(batch: bytes) -> list[StoredRecord]:
    try:
        return stored_records(batch)
    except InvalidBatch:
        return []


def windows(log: TopicLog) -> Iterator[Window]:
    """From the end to the start. Raises OSError, Corrupt."""
    end, length = log.high_watermark, FIRST_WINDOW
    while end > log.log_start_offset:
        first = max(log.log_start_offset, end - length)
        try:
            yield Window(first, end, list(_read(log, first, end)))
        except IndexError:
            return  # retention was faster
        end, length = first, min(2 * length, WINDOW_MAX)


def _read(log: TopicLog, first: int, end: int) -> Iterator[bytes]:
    offset = first
    while offset < end:
        part = log.read(offset, READ_BYTES, up_to=end, at_least_one=True)
        if not part:
            return
        yield part
        *_, (_, last) = iter_batches(part)
        offset = last.next_offset


async def read_events(
    log: TopicLog, group_id: str, most: int, kinds: tuple[type, ...] = ()
) -> list[Found]:
    """The group's last events, or those of these types, newest first. Raises OSError, Corrupt."""
    found: list[Found] = []
    for window in windows(log):
        wanted = [one for one in window.events(group_id) if not kinds or isinstance(one[1], kinds)]
        found += reversed(wanted)
        if len(found) >= most:
            break
        await asyncio.sleep(0)
    return found[:most]


async def read_rebalances(
    log: TopicLog, group_id: str, most: int, generation: int | None = None
) -> list[Rebalance]:
    """The group's last rebalances that are over, or those that led to this generation.

    Newest first. Raises OSError, Corrupt.
    """
    found: list[Rebalance] = []
    for window in windows(log):
        for _, event in reversed(list(window.events(group_id))):
            whole = whole_rebalance(event)
            if whole is not None and generation in (None, whole.generation_after):
                found.append(whole)
        if len(found) >= most:
            break
        await asyncio.sleep(0)
    return found[:most]
