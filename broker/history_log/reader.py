"""History reader: reads the entries of a group from `__group_history`, backwards in windows.

Memory has the last rebalances; older ones are read here on request. A window is searched for the
group id before anything in it is decoded, so that entries of other groups cost almost nothing.
Between two windows the loop serves others.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from history.encoding import UnreadableEntry, decode
from history.entries import HistoryEntry, OffsetsMovedEntry, Rebalance
from history.story import whole_rebalance
from protocol.names import HISTORY_TOPIC
from storage.api import Corrupt, StoredRecord, TopicLog
from storage.batch.record_batch import BatchHeader, InvalidBatch, iter_batches, stored_records

FIRST_WINDOW: Final = 512
"""Records in the last window. Each window before it is twice as long, up to WINDOW_MAX."""

WINDOW_MAX: Final = 16_384

HISTORY_READ_BYTES: Final = 1 << 20
"""Read from a log at once."""

ENTRIES_PER_SLICE: Final = 200
"""Entries decoded before the loop may serve others: some milliseconds."""

FOREVER_MS: Final = 1 << 62

T = TypeVar("T")

FoundEntry = tuple[int | None, HistoryEntry]


class HistoryWindow:
    """A range of offsets of one partition, as whole batches."""

    def __init__(
        self, first: int, end: int, parts: list[bytes], damage: Exception | None = None
    ) -> None:
        """`damage`: why the window ends before `end`; what was read before it is here."""
        self._first = first
        self._end = end
        self._parts = parts
        self.size = sum(map(len, parts))
        self.damage = damage

    def is_before(self, at_ms: int) -> bool:
        """Whether all of it was appended before `at_ms`."""
        return all(
            header.max_timestamp < at_ms for part in self._parts for header, _ in _batches(part)
        )

    def events(
        self,
        group_id: str | None = None,
        since_ms: int = 0,
        without: type[HistoryEntry] | None = None,
    ) -> Iterator[FoundEntry]:
        """(offset, entry) in their order, of one group or of all. Unreadable entries, those of
        another version and those of the type `without` are skipped, and batches appended before
        `since_ms` are not read."""
        key = None if group_id is None else group_id.encode()
        for part in self._parts:
            if key is not None and key not in part:
                continue
            for header, batch in _batches(part):
                if header.max_timestamp < since_ms:
                    continue
                for record in () if key is not None and key not in batch else _records(batch):
                    is_asked = key is None or record.key == key
                    if not is_asked or not self._first <= record.offset < self._end:
                        continue
                    try:
                        event = decode(record.value, without)
                    except UnreadableEntry:
                        continue
                    if event is not None:
                        yield record.offset, event


def _batches(part: bytes) -> list[tuple[BatchHeader, bytes]]:
    try:
        return [(header, part[at : at + header.size]) for at, header in iter_batches(part)]
    except InvalidBatch:
        return []


def _records(batch: bytes) -> list[StoredRecord]:
    try:
        return stored_records(batch)
    except InvalidBatch:
        return []


def windows(log: TopicLog) -> Iterator[HistoryWindow]:
    """From the end to the start. Damage ends its window early; the windows before it follow."""
    end, length = log.high_watermark, FIRST_WINDOW
    while end > log.log_start_offset:
        first = max(log.log_start_offset, end - length)
        try:
            yield _window(log, first, end)
        except IndexError:
            return  # retention was faster
        end, length = first, min(2 * length, WINDOW_MAX)


class HistoryTail(NamedTuple):
    """The entries at the end of a partition, in their order; and the damage before them."""

    entries: Sequence[HistoryEntry]
    damage: Exception | None = None


def read_tail(log: TopicLog, bytes_min: int) -> HistoryTail:
    """In any thread: the entries of the last windows, of so many bytes together.

    Without moves of offsets. They are no part of a rebalance, and most of a busy coordinator's
    history: decoding those of a tail would take a start 100 ms.
    """
    parts: list[list[HistoryEntry]] = []
    size = 0
    damage: Exception | None = None
    for window in windows(log):
        if window.damage is not None:
            # Entries after the damage are unknown: a rebalance that runs by the entries before it
            # may be over. The windows after this one count.
            damage = window.damage
            break
        parts.append([entry for _, entry in window.events(without=OffsetsMovedEntry)])
        size += window.size
        if size >= bytes_min:
            break
    return HistoryTail([entry for part in reversed(parts) for entry in part], damage)


def _window(log: TopicLog, first: int, end: int) -> HistoryWindow:
    """Raises IndexError if retention has moved the start of the log."""
    parts: list[bytes] = []
    offset = first
    while offset < end:
        try:
            part = log.read(offset, HISTORY_READ_BYTES, up_to=end, at_least_one=True)
            sound, last = _sound(part)
        except (OSError, Corrupt, InvalidBatch) as damage:
            return HistoryWindow(first, end, parts, damage)
        parts.append(part[:sound])
        if last is None or last.next_offset <= offset or sound < len(part):
            fault = Corrupt(HISTORY_TOPIC, offset, "no sound batch at this offset")
            return HistoryWindow(first, end, parts, fault)
        offset = last.next_offset
    return HistoryWindow(first, end, parts)


def _sound(part: bytes) -> tuple[int, BatchHeader | None]:
    """How many of these bytes are valid batches, and the last of these batches."""
    sound, last = 0, None
    try:
        for position, header in iter_batches(part):
            sound, last = position + header.size, header
    except InvalidBatch:
        pass
    return sound, last


def _ignore(_: Exception) -> None:
    return


class TimeRange(NamedTuple):
    """A range of time, both ends included; wall clock, ms."""

    since_ms: int = 0
    until_ms: int = FOREVER_MS

    def holds(self, event: HistoryEntry) -> bool:
        return self.since_ms <= event.at_ms <= self.until_ms

    def overlaps(self, rebalance: Rebalance) -> bool:
        """Whether it ran at any time of the range."""
        ended_ms = rebalance.began_at_ms + (rebalance.duration_ms or 0)
        if rebalance.duration_ms is None:
            ended_ms = FOREVER_MS
        return rebalance.began_at_ms <= self.until_ms and ended_ms >= self.since_ms


ALWAYS: Final = TimeRange()


async def read_events(
    log: TopicLog,
    group_id: str | None,
    most: int,
    kinds: tuple[type, ...] = (),
    on_damage: Callable[[Exception], None] = _ignore,
    span: TimeRange = ALWAYS,
) -> list[FoundEntry]:
    """The last entries of a group, or of all, of these types and times. Newest first."""

    def take(event: HistoryEntry) -> HistoryEntry | None:
        return event if (not kinds or isinstance(event, kinds)) and span.holds(event) else None

    return await _read(log, group_id, most, take, on_damage, span.since_ms)


async def read_rebalances(
    log: TopicLog,
    group_id: str | None,
    most: int,
    generation: int | None = None,
    on_damage: Callable[[Exception], None] = _ignore,
    span: TimeRange = ALWAYS,
) -> list[tuple[str, Rebalance]]:
    """The last ended rebalances of a group, or of all, each with its group id; only those that led
    to `generation` or ran in `span`, if given. Newest first.
    """

    def take(event: HistoryEntry) -> tuple[str, Rebalance] | None:
        whole = whole_rebalance(event)
        if whole is None or generation not in (None, whole.generation_after):
            return None
        return (event.group_id, whole) if span.overlaps(whole) else None

    found = await _read(log, group_id, most, take, on_damage, span.since_ms)
    return [rebalance for _, rebalance in found]


async def _read(
    log: TopicLog,
    group_id: str | None,
    most: int,
    take: Callable[[HistoryEntry], T | None],
    on_damage: Callable[[Exception], None],
    since_ms: int,
) -> list[tuple[int | None, T]]:
    found: list[tuple[int | None, T]] = []
    for window in windows(log):
        if window.damage is not None:
            on_damage(window.damage)
        wanted: list[tuple[int | None, T]] = []
        for number, (offset, event) in enumerate(window.events(group_id, since_ms), start=1):
            taken = take(event)
            if taken is not None:
                wanted.append((offset, taken))
            if number % ENTRIES_PER_SLICE == 0:
                await asyncio.sleep(0)
        found += reversed(wanted)
        if len(found) >= most or window.is_before(since_ms):
            break
        await asyncio.sleep(0)
    return found[:most]
