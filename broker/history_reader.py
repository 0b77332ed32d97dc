"""What does `__group_history` still have of a group? Read backwards, a window at a time.

Memory has the last rebalances; whoever asks for older ones gets them from here. A window is looked
through for the group's id before anything in it is decoded, so that what concerns other groups
costs next to nothing. Between two windows the loop serves others.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from history.encoding import UnreadableEvent, decode
from history.events import HistoryEvent, Rebalance
from history.story import whole_rebalance
from protocol.names import HISTORY_TOPIC
from storage.api import Corrupt, StoredRecord, TopicLog
from storage.record_batch import BatchHeader, InvalidBatch, iter_batches, stored_records

FIRST_WINDOW: Final = 512
"""Records. Each window is twice as long as the one after it, up to:"""

WINDOW_MAX: Final = 16_384

READ_BYTES: Final = 1 << 20

Found = tuple[int | None, HistoryEvent]


class Window:
    """A stretch of one partition, as whole batches."""

    def __init__(
        self, first: int, end: int, parts: list[bytes], damage: Exception | None = None
    ) -> None:
        """`damage`: why the window ends before `end`; what was read before it is here."""
        self._first = first
        self._end = end
        self._parts = parts
        self.size = sum(map(len, parts))
        self.damage = damage

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
    """From the end to the start. Damage ends one window early; the windows before it follow."""
    end, length = log.high_watermark, FIRST_WINDOW
    while end > log.log_start_offset:
        first = max(log.log_start_offset, end - length)
        try:
            yield _read(log, first, end)
        except IndexError:
            return  # retention was faster
        end, length = first, min(2 * length, WINDOW_MAX)


def _read(log: TopicLog, first: int, end: int) -> Window:
    """Raises IndexError where the log begins later by now."""
    parts: list[bytes] = []
    offset = first
    while offset < end:
        try:
            part = log.read(offset, READ_BYTES, up_to=end, at_least_one=True)
            sound, last = _sound(part)
        except (OSError, Corrupt, InvalidBatch) as damage:
            return Window(first, end, parts, damage)
        parts.append(part[:sound])
        if last is None or last.next_offset <= offset or sound < len(part):
            fault = Corrupt(HISTORY_TOPIC, offset, "no sound batch at this offset")
            return Window(first, end, parts, fault)
        offset = last.next_offset
    return Window(first, end, parts)


def _sound(part: bytes) -> tuple[int, BatchHeader | None]:
    """How many of these bytes are whole batches, and the last of them."""
    sound, last = 0, None
    try:
        for position, header in iter_batches(part):
            sound, last = position + header.size, header
    except InvalidBatch:
        pass
    return sound, last


def _to_nobody(_: Exception) -> None:
    return


async def read_events(
    log: TopicLog,
    group_id: str,
    most: int,
    kinds: tuple[type, ...] = (),
    on_damage: Callable[[Exception], None] = _to_nobody,
) -> list[Found]:
    """The group's last events, or those of these types, newest first."""
    found: list[Found] = []
    for window in windows(log):
        if window.damage is not None:
            on_damage(window.damage)
        wanted = [one for one in window.events(group_id) if not kinds or isinstance(one[1], kinds)]
        found += reversed(wanted)
        if len(found) >= most:
            break
        await asyncio.sleep(0)
    return found[:most]


async def read_rebalances(
    log: TopicLog,
    group_id: str,
    most: int,
    generation: int | None = None,
    on_damage: Callable[[Exception], None] = _to_nobody,
) -> list[Rebalance]:
    """The group's last rebalances that are over, or those that led to this generation.

    Newest first.
    """
    found: list[Rebalance] = []
    for window in windows(log):
        if window.damage is not None:
            on_damage(window.damage)
        for _, event in reversed(list(window.events(group_id))):
            whole = whole_rebalance(event)
            if whole is not None and generation in (None, whole.generation_after):
                found.append(whole)
        if len(found) >= most:
            break
        await asyncio.sleep(0)
    return found[:most]
