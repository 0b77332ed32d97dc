"""Retention: which segments a partition deletes for their age or its size, and when they roll.

Decides for a `PartitionLog`, which removes the files. The age of a segment is that of its records.
Where these have no timestamps it is the file's age: retention.ms counts from the last modification,
segment.ms from the moment this process first appended to the segment, as in Kafka.
Kafka's counterparts: UnifiedLog.deleteOldSegments, LogSegment.shouldRoll.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from storage.api import Corrupt, LogSettings
from storage.log.segment import Placed, Segment

NO_LIMIT: Final = -1


class RetainedLog(Protocol):
    """What retention needs of a `PartitionLog`."""

    settings: LogSettings

    @property
    def segments(self) -> Sequence[Segment]: ...

    @property
    def size_bytes(self) -> int: ...

    def roll_if_old(self, now_ms: int) -> bool: ...

    def remove_oldest(self, should_go: Callable[[Segment], bool]) -> int: ...


def is_old(segment: Segment, record_ms: int, now_ms: int, settings: LogSettings) -> bool:
    """Whether its age exceeds segment.ms, so that the next batch begins another segment.

    `record_ms`: the newest batch's timestamp, or the clock where nothing is appended.
    """
    try:
        first_ms = segment.first_timestamp()
    except Corrupt:
        return True  # readers get the error; new batches must not follow the damage
    limit_ms = settings.segment_ms
    if settings.segment_jitter_ms:
        limit_ms -= roll_jitter_ms(segment, settings)
    if first_ms < 0:
        return now_ms - segment.first_seen_ms(now_ms) > limit_ms
    return (record_ms if record_ms >= 0 else now_ms) - first_ms > limit_ms


def segment_for(
    active: Segment | None, batches: Sequence[Placed], now_ms: int, settings: LogSettings
) -> Segment | None:
    """The active segment if these batches go into it; None: they need a new one."""
    if active is None or not active.size:
        return active
    _, last_offset, newest_ms = batches[-1]
    size, most = sum([len(batch) for batch, _, _ in batches]), settings.segment_bytes
    if not active.has_room_for(size, last_offset, most, settings.segment_index_bytes):
        return None
    return None if is_old(active, newest_ms, now_ms, settings) else active


def roll_jitter_ms(segment: Segment, settings: LogSettings) -> int:
    """How much earlier than segment.ms a segment is rolled, so that not all roll at once.

    A random number in Kafka; here it follows from the segment's name, and is the same after a
    restart.
    """
    most_ms = min(settings.segment_jitter_ms, settings.segment_ms)
    return zlib.crc32(segment.path.encode()) % most_ms if most_ms > 0 else 0


def is_overfull(log: RetainedLog, now_ms: int) -> bool:
    """Whether retention would delete a segment now."""
    settings = log.settings
    if not settings.cleanup_delete or not log.size_bytes:
        return False
    oldest = log.segments[0]
    is_much = log.size_bytes - oldest.size >= settings.retention_bytes
    return (settings.retention_ms != NO_LIMIT and is_expired(log, oldest, now_ms)) or (
        settings.retention_bytes != NO_LIMIT and is_much
    )


def is_expired(log: RetainedLog, segment: Segment, now_ms: int) -> bool:
    return segment.last_time_ms() < now_ms - log.settings.retention_ms


def enforce(log: RetainedLog, now_ms: int) -> int:
    """Roll by age, then delete what exceeds the limits; how many segments. Raises OSError."""
    settings = log.settings
    if not log.segments:
        return 0
    log.roll_if_old(now_ms)
    if not settings.cleanup_delete:
        return 0
    removed = 0
    if settings.retention_ms != NO_LIMIT:
        removed += log.remove_oldest(lambda segment: is_expired(log, segment, now_ms))
    if settings.retention_bytes != NO_LIMIT:
        # Never below the limit: the segment that would cross it stays.
        limit = settings.retention_bytes
        removed += log.remove_oldest(lambda segment: log.size_bytes - segment.size >= limit)
    return removed
