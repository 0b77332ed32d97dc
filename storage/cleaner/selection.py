"""Cleaner selection: which log is cleaned next, and which part of it may be cleaned.

    |-- clean --|-- dirty, cleanable --|-- may not be cleaned yet --|-- active --|
    log start   first dirty            first uncleanable            log end

Dirty is what no pass has read: it begins at the offset in `cleaner-offset-checkpoint`. Never
cleaned are the active segment, records younger than min.compaction.lag.ms, and what the journal may
write again after a crash: everything above the recovery point that the disk has. Of the logs whose
dirty ratio is above min.cleanable.dirty.ratio, or which hold a record older than
max.compaction.lag.ms, the one with the greatest ratio is cleaned first.

`min_compaction_lag_max_bytes` is ours: the lag protects so many bytes of a log's end and no more,
for the history of offsets must not fill the disk. So is `Unread`: what the data pipeline has yet to
read. Kafka's counterpart: LogCleanerManager.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from storage.api import LogSettings
from storage.cleaner.messages import SegmentExtent
from storage.log.partition_log import PartitionLog

NO_LAG: Final = 2**63 - 1
"""max.compaction.lag.ms where nobody has set it."""


class CleanableRange(NamedTuple):
    """Where the dirty part of a log begins, and where it may not be cleaned any more."""

    first_dirty: int
    first_uncleanable: int  # a segment's base offset, or the first dirty offset
    reset_because: str | None = None
    """Why the checkpoint's offset was not taken."""


class DirtyRatio(NamedTuple):
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


class SegmentSummary(NamedTuple):
    """What the choice needs of a segment; of the active one, the last, only where it begins."""

    base_offset: int
    size: int
    first_timestamp: int
    max_timestamp: int


def summarize_segments(log: PartitionLog) -> list[SegmentSummary]:
    """Reads the first header of each segment if its time matters: raises OSError, Corrupt."""
    asks_age = log.settings.max_compaction_lag_ms < NO_LAG
    facts = []
    for segment in log.segments:
        first_timestamp = segment.first_timestamp() if asks_age else -1
        if asks_age and segment is not log.segments[-1] and not segment.is_dirty:
            segment.release()
        facts.append(
            SegmentSummary(
                segment.base_offset, segment.size, first_timestamp, segment.max_timestamp
            )
        )
    return facts


def segment_extents(log: PartitionLog, *, up_to: int) -> tuple[SegmentExtent, ...]:
    """The log's segments for a pass; of the active one the part below the offset `up_to`."""
    segments = log.segments
    extents = [
        SegmentExtent(
            segment.base_offset, after.base_offset, segment.size,
            len(segment.offset_index), len(segment.time_index),
        )
        for segment, after in pairwise(segments)
    ]  # fmt: skip
    if segments:
        active = segments[-1]
        size = active.position_of(up_to) if up_to > active.base_offset else 0
        extents.append(SegmentExtent(active.base_offset, max(up_to, active.base_offset), size))
    return tuple(extents)


def cleanable_range(
    segments: Sequence[SegmentSummary],
    settings: LogSettings,
    *,
    checkpoint: int | None,
    log_start: int,
    log_end: int,
    stable_to: int,
    now_ms: int,
    unread: Unread | None = None,
) -> CleanableRange:
    """What of a log may be cleaned; `stable_to` is where readers and the disk agree up to."""
    first_dirty, reason = log_start if checkpoint is None else checkpoint, None
    if first_dirty < log_start:
        reason = f"the checkpointed offset {first_dirty} is below the log start {log_start}"
        first_dirty = log_start
    elif first_dirty > log_end:
        reason = f"the checkpointed offset {first_dirty} is above the log end {log_end}"
        first_dirty = log_start
    if not segments:
        return CleanableRange(first_dirty, first_dirty, reason)
    bound = min(stable_to, segments[-1].base_offset)
    if settings.min_compaction_lag_ms > 0:
        horizon_ms = now_ms - settings.min_compaction_lag_ms
        most = settings.min_compaction_lag_max_bytes
        bound = min(bound, _first_kept(segments, first_dirty, horizon_ms, most))
    if unread is not None:
        horizon_ms = -1 if unread.keep_ms < 0 else now_ms - unread.keep_ms
        begin = max(first_dirty, unread.begins_at)
        bound = min(bound, _first_kept(segments, begin, horizon_ms, unread.keep_bytes))
    bases = [segment.base_offset for segment in segments if segment.base_offset <= bound]
    return CleanableRange(
        first_dirty, max(bases[-1] if bases else first_dirty, first_dirty), reason
    )


def _first_kept(
    segments: Sequence[SegmentSummary], begin: int, horizon_ms: int, most_bytes: int
) -> int:
    """The base of the first segment that reaches beyond `begin` and is neither too old for it, nor
    too far from the log's end."""
    protected_from = _last_bytes(segments, most_bytes)
    for segment, after in pairwise(segments):
        is_asked = after.base_offset > begin
        if (
            is_asked
            and segment.max_timestamp > horizon_ms
            and segment.base_offset >= protected_from
        ):
            return segment.base_offset
    return segments[-1].base_offset


def _last_bytes(segments: Sequence[SegmentSummary], most: int) -> int:
    """The base of the first of the last segments that have at most so many bytes together."""
    if most < 0:
        return segments[0].base_offset
    protected_from = segments[-1].base_offset
    size = 0
    for segment in reversed(segments):
        size += segment.size
        if size > most:
            break
        protected_from = segment.base_offset
    return protected_from


def dirty_ratio_of(
    segments: Sequence[SegmentSummary], found: CleanableRange, settings: LogSettings, now_ms: int
) -> DirtyRatio:
    """Counted in whole segments, as Kafka does."""
    clean = cleanable = 0
    oldest: int | None = None
    for segment, after in pairwise(segments):
        if after.base_offset <= found.first_dirty:
            clean += segment.size
            continue
        if segment.base_offset < found.first_dirty:
            clean += segment.size  # partly clean: Kafka counts it on both sides
        if segment.base_offset < found.first_uncleanable > found.first_dirty:
            cleanable += segment.size
        if segment.first_timestamp > 0 and (oldest is None or segment.first_timestamp < oldest):
            oldest = segment.first_timestamp
    overdue_ms = now_ms - settings.max_compaction_lag_ms
    delay_ms = 0 if oldest is None else max(overdue_ms - oldest, 0)
    return DirtyRatio(clean, cleanable, delay_ms)


def filthiest(candidates: Iterable[tuple[DirtyRatio, LogSettings]]) -> int | None:
    """The index of the log to clean; None if none needs it. Kafka: grabFilthiestCompactedLog."""
    ratios = [
        (dirty.ratio, -place)
        for place, (dirty, settings) in enumerate(candidates)
        if dirty.is_enough(settings)
    ]
    return -max(ratios)[1] if ratios else None
