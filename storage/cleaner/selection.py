"""Which log needs cleaning most, and which part of it may be cleaned? Kafka's rules, as numbers.

    |-- clean --|-- dirty, cleanable --|-- may not be cleaned yet --|-- active --|
    log start   first dirty            first uncleanable            log end

Dirty is what no pass has seen: it begins at the offset in `cleaner-offset-checkpoint`. Never
cleaned are the active segment, what is younger than min.compaction.lag.ms, and what the journal may
still write again after a crash: all that lies above the recovery point as the disk has it. Of the
logs whose dirty share is above min.cleanable.dirty.ratio, or which hold something older than
max.compaction.lag.ms, the dirtiest is cleaned first.

`min_compaction_lag_max_bytes` is ours: so many bytes of a log's end the lag protects, and no more,
for the history of offsets must not fill the disk. So is `Unread`: what the data pipeline has yet to
read. Kafka's counterpart: LogCleanerManager.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from storage.api import LogSettings
from storage.cleaner.messages import Extent
from storage.log.partition_log import PartitionLog

NO_LAG: Final = 2**63 - 1
"""max.compaction.lag.ms where nobody has set it."""


class Range(NamedTuple):
    """Where the dirty part of a log begins, and where it may not be cleaned any more."""

    first_dirty: int
    first_uncleanable: int  # a segment's base offset, or the first dirty offset
    reset_because: str | None = None
    """Why the checkpoint's offset was not taken."""


class Dirt(NamedTuple):
    """How much cleaning a log needs."""

    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    """By how much its oldest dirty record is older than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_enough(self, settings: LogSettings) -> bool:
        is_overdue = self.delay_ms > 0 and self.cleanable_bytes > 0
        return is_overdue or self.ratio > settings.min_cleanable_dirty_ratio


class Unread(NamedTuple):
    """From which offset on the pipeline has not read a log, and how much of it is kept for that."""

    begins_at: int
    keep_ms: int  # -1: no limit
    keep_bytes: int  # -1: no limit


class SegmentFacts(NamedTuple):
    """What the choice needs of a segment; of the active one, the last, only where it begins."""

    base_offset: int
    size: int
    first_timestamp: int
    max_timestamp: int


def facts_of(log: PartitionLog) -> list[SegmentFacts]:
    """Reads the first header of each segment if its time matters: raises OSError, Corrupt."""
    asks_age = log.settings.max_compaction_lag_ms < NO_LAG
    facts = []
    for one in log.segments:
        first_timestamp = one.first_timestamp() if asks_age else -1
        if asks_age and one is not log.segments[-1] and not one.is_dirty:
            one.release()
        facts.append(SegmentFacts(one.base_offset, one.size, first_timestamp, one.max_timestamp))
    return facts


def extents_of(log: PartitionLog, *, up_to: int) -> tuple[Extent, ...]:
    """The log's segments for a pass; of the active one what lies below the offset `up_to`."""
    segments = log.segments
    extents = [
        Extent(
            one.base_offset, after.base_offset, one.size,
            len(one.offset_index), len(one.time_index),
        )
        for one, after in pairwise(segments)
    ]  # fmt: skip
    if segments:
        active = segments[-1]
        size = active.position_of(up_to) if up_to > active.base_offset else 0
        extents.append(Extent(active.base_offset, max(up_to, active.base_offset), size))
    return tuple(extents)


def cleanable_range(
    segments: Sequence[SegmentFacts],
    settings: LogSettings,
    *,
    checkpoint: int | None,
    log_start: int,
    log_end: int,
    stable_to: int,
    now_ms: int,
    unread: Unread | None = None,
) -> Range:
    """What of a log may be cleaned; `stable_to` is where readers and the disk agree up to."""
    first_dirty, reason = log_start if checkpoint is None else checkpoint, None
    if first_dirty < log_start:
        reason = f"the checkpointed offset {first_dirty} is below the log start {log_start}"
        first_dirty = log_start
    elif first_dirty > log_end:
        reason = f"the checkpointed offset {first_dirty} is above the log end {log_end}"
        first_dirty = log_start
    if not segments:
        return Range(first_dirty, first_dirty, reason)
    bound = min(stable_to, segments[-1].base_offset)
    if settings.min_compaction_lag_ms > 0:
        horizon_ms = now_ms - settings.min_compaction_lag_ms
        most = settings.min_compaction_lag_max_bytes
        bound = min(bound, _first_kept(segments, first_dirty, horizon_ms, most))
    if unread is not None:
        horizon_ms = -1 if unread.keep_ms < 0 else now_ms - unread.keep_ms
        begin = max(first_dirty, unread.begins_at)
        bound = min(bound, _first_kept(segments, begin, horizon_ms, unread.keep_bytes))
    bases = [one.base_offset for one in segments if one.base_offset <= bound]
    return Range(first_dirty, max(bases[-1] if bases else first_dirty, first_dirty), reason)


def _first_kept(
    segments: Sequence[SegmentFacts], begin: int, horizon_ms: int, most_bytes: int
) -> int:
    """The base of the first segment that reaches beyond `begin` and is neither too old for it, nor
    too far from the log's end."""
    protected_from = _last_bytes(segments, most_bytes)
    for one, after in pairwise(segments):
        is_asked = after.base_offset > begin
        if is_asked and one.max_timestamp > horizon_ms and one.base_offset >= protected_from:
            return one.base_offset
    return segments[-1].base_offset


def _last_bytes(segments: Sequence[SegmentFacts], most: int) -> int:
    """The base of the first of the last segments that have at most so many bytes together."""
    if most < 0:
        return segments[0].base_offset
    protected_from = segments[-1].base_offset
    size = 0
    for one in reversed(segments):
        size += one.size
        if size > most:
            break
        protected_from = one.base_offset
    return protected_from


def dirt_in(
    segments: Sequence[SegmentFacts], found: Range, settings: LogSettings, now_ms: int
) -> Dirt:
    """Counted in whole segments, as Kafka does."""
    clean = cleanable = 0
    oldest: int | None = None
    for one, after in pairwise(segments):
        if after.base_offset <= found.first_dirty:
            clean += one.size
            continue
        if one.base_offset < found.first_dirty:
            clean += one.size  # partly clean: Kafka counts it on both sides
        if one.base_offset < found.first_uncleanable > found.first_dirty:
            cleanable += one.size
        if one.first_timestamp > 0 and (oldest is None or one.first_timestamp < oldest):
            oldest = one.first_timestamp
    overdue_ms = now_ms - settings.max_compaction_lag_ms
    delay_ms = 0 if oldest is None else max(overdue_ms - oldest, 0)
    return Dirt(clean, cleanable, delay_ms)


def dirtiest(candidates: Iterable[tuple[Dirt, LogSettings]]) -> int | None:
    """The place of the log to clean; None when none needs it."""
    ratios = [
        (dirt.ratio, -place)
        for place, (dirt, settings) in enumerate(candidates)
        if dirt.is_enough(settings)
    ]
    return -max(ratios)[1] if ratios else None
