"""Retention: which segments does a partition drop for their age or its size, and when do they roll?

Works on a `PartitionLog`, which alone removes files. The age of a segment is that of its records;
where these have no timestamps it is the file's: retention.ms asks when it was last modified,
segment.ms since when it is known to be appended to, as in Kafka.
Kafka's counterparts: UnifiedLog.deleteOldSegments, LogSegment.shouldRoll.
"""

from typing import TYPE_CHECKING, Final

from storage.api import Corrupt
from storage.log.segment import Segment

if TYPE_CHECKING:
    from storage.log.partition_log import PartitionLog

NO_LIMIT: Final = -1


def is_old(segment: Segment, record_ms: int, now_ms: int, segment_ms: int) -> bool:
    """Has it been appended to for so long that the next batch begins another one?

    `record_ms`: the newest batch's timestamp, or the clock where nothing is appended.
    """
    try:
        first_ms = segment.first_timestamp()
    except Corrupt:
        return True  # who reads it is told; what comes next shall not lie behind damage
    if first_ms < 0:
        return now_ms - segment.known_since(now_ms) > segment_ms
    return (record_ms if record_ms >= 0 else now_ms) - first_ms > segment_ms


def is_overfull(log: "PartitionLog", now_ms: int) -> bool:
    """Would retention drop a segment now?"""
    settings = log.settings
    if not settings.cleanup_delete or not log.size_bytes:
        return False
    oldest = log.segments_from(0)[0]
    is_much = log.size_bytes - oldest.size >= settings.retention_bytes
    return (settings.retention_ms != NO_LIMIT and is_expired(log, oldest, now_ms)) or (
        settings.retention_bytes != NO_LIMIT and is_much
    )


def is_expired(log: "PartitionLog", segment: Segment, now_ms: int) -> bool:
    return segment.last_time_ms() < now_ms - log.settings.retention_ms


def enforce(log: "PartitionLog", now_ms: int) -> int:
    """Roll by age, drop what is too old or too much; how many segments went. Raises OSError."""
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
        removed += log.remove_oldest(lambda one: log.size_bytes - one.size >= limit)
    return removed
