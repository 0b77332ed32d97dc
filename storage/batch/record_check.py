"""Record check: whether a batch's records agree with its header and with the rules of their topic.

Walks the records in place and keeps none of them: a few kilobytes may unpack to millions of
records. `in_order` ends the walk at the first offset delta that is not the record's number. Records
that break a rule are counted to the end, as Kafka does; the first FAULTS_KEPT are kept.

`record_batch.py` reads the same format and returns the records; this walk is a loop of its own,
because a tuple for each record would take most of the time.
Kafka's counterpart: `LogValidator`, and `DefaultRecordBatch` with its iterators.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

from storage.batch.compression import NONE, unpack
from storage.batch.record_batch import (
    HEADER_BYTES,
    NO_TIMESTAMP,
    BadRecords,
    BatchHeader,
    read_varint,
)

FAULTS_KEPT: Final = 1_000
"""Records that a refusal names. Each takes a hundred bytes of the answer."""

LEAST_RECORD_BYTES: Final = 7
"""A length, attributes, two deltas, two lengths and the number of headers, a byte each."""

_WALKED_AT_ONCE: Final = 500
"""Records between two pauses: half a millisecond."""


class RecordRules(Struct, frozen=True):
    """What a topic asks of each record."""

    needs_keys: bool
    earliest: int  # of its timestamp, unless it has none
    latest: int
    refuses_append_time: bool  # the batch says LogAppendTime where a producer must not
    in_order: bool


class BrokenRule(Enum):
    """Which rule a record breaks."""

    MISSING_KEY = auto()
    TIMESTAMP_OUT_OF_RANGE = auto()
    APPEND_TIME = auto()


class RecordFault(Struct, frozen=True):
    """A record that a rule refuses; a length is -1 of what is null."""

    broken: BrokenRule
    index: int
    offset: int
    timestamp: int
    key_bytes: int
    value_bytes: int


class RecordCheck(Struct):
    """What a walk found; of `fault_count` faults the first are in `faults`."""

    max_timestamp: int | None = None
    fault_count: int = 0
    faults: list[RecordFault] = field(default_factory=list)
    about_time: bool = False  # one of them


def check_records(
    batch: bytes,
    header: BatchHeader,
    rules: RecordRules,
    pause: Callable[[], None] | None = None,
) -> RecordCheck:
    """Walk all records; BadRecords if they are not what the header says.

    `pause` is called now and then, for a thread that must let others go on.
    """
    blob: bytes | bytearray
    if header.compression == NONE:
        blob, position, end = batch, HEADER_BYTES, header.size
    else:
        try:
            blob = unpack(batch[HEADER_BYTES : header.size], header.compression)
        except ValueError as fault:
            raise BadRecords(0, str(fault)) from None
        position, end = 0, len(blob)
    if header.records_count * LEAST_RECORD_BYTES > end - position:
        text = f"{header.records_count} records in {end - position} bytes"
        raise BadRecords(0, text)
    walked = RecordCheck()
    try:
        for first in range(0, header.records_count, _WALKED_AT_ONCE):
            stop = min(first + _WALKED_AT_ONCE, header.records_count)
            position = _walk(blob, position, end, header, rules, range(first, stop), walked)
            if pause is not None:
                pause()
    except IndexError:
        raise BadRecords(0, "a record runs past the end of its batch") from None
    except ValueError as fault:
        raise BadRecords(0, str(fault)) from None
    if position != end:
        text = f"{end - position} bytes left after {header.records_count} records"
        raise BadRecords(0, text)
    return walked


def _walk(  # in one piece: a call for each varint would double its time
    blob: bytes | bytearray,
    at: int,
    end: int,
    header: BatchHeader,
    rules: RecordRules,
    indexes: range,
    walked: RecordCheck,
) -> int:
    """Check these records, the first of which begins at `at`; where the next one begins."""
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.log_append_time else None
    earliest, latest = rules.earliest, rules.latest
    needs_keys, in_order, stamped = rules.needs_keys, rules.in_order, rules.refuses_append_time
    max_timestamp = -1 << 63 if walked.max_timestamp is None else walked.max_timestamp
    for index in indexes:
        byte = blob[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(blob, at)
        record_end = at + length
        if length < 0 or record_end > end:
            raise ValueError(f"a record claims {length} bytes, {end - at} are left")
        at += 1  # the attributes of a record: unused, Kafka ignores them
        byte = blob[at]
        if byte < 0x80:
            delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            delta, at = read_varint(blob, at)
        timestamp = base_timestamp + delta if append_time is None else append_time
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        byte = blob[at]
        if byte < 0x80:
            delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            delta, at = read_varint(blob, at)
        if in_order and delta != index:
            raise ValueError(f"record {index} of a compressed batch claims offset {delta}")
        byte = blob[at]
        if byte < 0x80:
            key_bytes, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            key_bytes, at = read_varint(blob, at)
        if key_bytes > 0:
            at += key_bytes
        byte = blob[at]
        if byte < 0x80:
            value_bytes, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            value_bytes, at = read_varint(blob, at)
        if value_bytes > 0:
            at += value_bytes
        if key_bytes < -1 or value_bytes < -1 or at >= record_end:
            raise ValueError(f"lengths of {key_bytes} and {value_bytes} in {length} bytes")
        at = _skip_headers(blob, at, record_end) if blob[at] else at + 1
        if at != record_end:
            raise ValueError(f"a record of {length} bytes ends {record_end - at} bytes early")
        if stamped or not earliest <= timestamp <= latest or (needs_keys and key_bytes < 0):
            _note(walked, rules, (index, delta, timestamp, key_bytes, value_bytes))
    walked.max_timestamp = max_timestamp
    return at


def _note(walked: RecordCheck, rules: RecordRules, record: tuple[int, int, int, int, int]) -> None:
    """Count a record as a fault by the first rule that it breaks, if it breaks one."""
    _, _, timestamp, key_bytes, _ = record
    if key_bytes < 0 and rules.needs_keys:
        broken = BrokenRule.MISSING_KEY
    elif not rules.earliest <= timestamp <= rules.latest and timestamp != NO_TIMESTAMP:
        broken = BrokenRule.TIMESTAMP_OUT_OF_RANGE
    elif rules.refuses_append_time:
        broken = BrokenRule.APPEND_TIME
    else:
        return
    walked.about_time |= broken is not BrokenRule.MISSING_KEY
    walked.fault_count += 1
    if walked.fault_count <= FAULTS_KEPT:
        walked.faults.append(RecordFault(broken, *record))


def _skip_headers(blob: bytes | bytearray, at: int, end: int) -> int:
    count, at = read_varint(blob, at)
    if not 0 <= count <= end - at:
        raise ValueError(f"{count} headers in {end - at} bytes")
    for _ in range(count):
        key_bytes, at = read_varint(blob, at)
        if key_bytes < 0:
            raise ValueError("a header without a key")
        at += key_bytes
        value_bytes, at = read_varint(blob, at)
        if value_bytes < -1:
            raise ValueError(f"a length of {value_bytes}")
        at += max(value_bytes, 0)
        if at > end:
            raise ValueError("a header runs past the end of its record")
    return at
