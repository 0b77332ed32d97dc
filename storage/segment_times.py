"""Segment times: which record of a segment is the first at or after a moment, which the latest?

Kafka's counterparts: LogSegment.findOffsetByTimestamp, FileRecords.searchForTimestamp.
"""

from storage.api import Corrupt
from storage.record_batch import (
    NO_TIMESTAMP,
    BatchHeader,
    InvalidBatch,
    RecordFields,
    read_records,
)
from storage.segment import Segment


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
        for fields in _records(segment, position, header):
            if fields[1] >= timestamp_ms and fields[0] >= start_offset:
                return fields[1], fields[0]
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
            for fields in _records(segment, position, header):
                if fields[1] == header.max_timestamp:
                    return fields[1], fields[0]
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> list[RecordFields]:
    try:
        return read_records(segment.pread(position, position + header.size))
    except InvalidBatch as fault:
        raise Corrupt(segment.path, position, fault.reason) from None
