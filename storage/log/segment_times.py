"""Time lookup: the first record of a log at or after a timestamp, and the latest record.

Retention may delete a segment during the search, which then goes on in the next one.
Kafka's counterparts: LogSegment.findOffsetByTimestamp, FileRecords.searchForTimestamp.
"""

from collections.abc import Sequence
from typing import Protocol

from storage.api import Corrupt
from storage.batch.first_record import first_record
from storage.batch.record_batch import NO_TIMESTAMP, BatchHeader, InvalidBatch
from storage.log.segment import Segment


class SearchedLog(Protocol):
    """What a lookup by time needs of a `PartitionLog`."""

    @property
    def segments(self) -> Sequence[Segment]: ...

    @property
    def log_start_offset(self) -> int: ...

    def was_dropped(self, segment: Segment) -> bool: ...

    def release_file(self, segment: Segment) -> None: ...


def first_at(log: SearchedLog, timestamp_ms: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record at or after the timestamp; None if there is none."""
    for segment in list(log.segments):
        try:
            found = offset_for_timestamp(segment, timestamp_ms, log.log_start_offset)
        except FileNotFoundError:
            if not log.was_dropped(segment):
                raise
            continue
        log.release_file(segment)
        if found is not None:
            return found
    return None


def latest(log: SearchedLog) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the greatest timestamp; None when empty."""
    while log.segments:
        newest = max(log.segments, key=lambda segment: segment.max_timestamp)
        try:
            found = find_max_timestamp(newest)
        except FileNotFoundError:
            if not log.was_dropped(newest):
                raise
            continue
        log.release_file(newest)
        return found
    return None


def offset_for_timestamp(
    segment: Segment, timestamp_ms: int, start_offset: int
) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record at or after both; None when there is none."""
    if segment.max_timestamp < timestamp_ms:
        return None
    offset = max(segment.time_index.lookup(timestamp_ms), start_offset)
    for position, header in segment.headers(segment.offset_index.lookup(offset), segment.size):
        if header.max_timestamp < timestamp_ms or header.last_offset < start_offset:
            continue
        found = _first(segment, position, header, timestamp_ms, start_offset)
        if found is not None:
            return found
    return None


def find_max_timestamp(segment: Segment) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the greatest timestamp; None when empty."""
    if segment.max_timestamp == NO_TIMESTAMP:
        return None
    start = segment.position_of(segment.max_timestamp_offset)
    for position, header in segment.headers(start, segment.size):
        if header.max_timestamp == segment.max_timestamp:
            if header.log_append_time:
                return header.max_timestamp, header.base_offset
            found = _first(segment, position, header, header.max_timestamp, header.base_offset)
            if found is not None:
                return found
    return None


def _first(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> tuple[int, int] | None:
    batch = segment.pread(position, position + header.size)
    try:
        return first_record(batch, header, timestamp_ms, start_offset)
    except InvalidBatch as fault:
        raise Corrupt(segment.path, position, fault.reason) from None
