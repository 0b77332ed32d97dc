"""Record time: the timestamp of the record at an offset, decoding no more than needed.

Lag in seconds asks for the time of single records, of many partitions, again and again. So one
batch is read, and its records are skipped by their lengths. Where the offset is the first of its
batch, which it is for a consumer that has read all of the batch before, the header is enough.
"""

from storage.api import TopicLog
from storage.batch.compression import NONE, decompress
from storage.batch.record_batch import (
    HEADER_BYTES,
    BadRecords,
    BatchHeader,
    read_header,
    read_varint,
)

ONE_BATCH = 1
BATCHES_MAX = 1_000  # control batches in a row that are passed over


def time_of_record(log: TopicLog, offset: int) -> int | None:
    """The timestamp of the first record at or after `offset`; None when there is none, or no time.

    Raises what reading a log raises: IndexError, OSError, Corrupt, InvalidBatch.
    """
    for _ in range(BATCHES_MAX):
        end = log.high_watermark
        offset = max(offset, log.log_start_offset)
        if offset >= end:
            return None
        batch = log.read(offset, ONE_BATCH, up_to=end, at_least_one=True)
        if not batch:
            return None
        header = read_header(batch)
        if not header.is_control:
            found = _find(batch, header, offset)
            if found is not None:
                return None if found < 0 else found
        offset = header.next_offset
    return None


def _find(batch: bytes, header: BatchHeader, offset: int) -> int | None:
    """The timestamp of the first record of the batch at or after `offset`."""
    if header.log_append_time:
        return header.max_timestamp
    is_whole = header.records_count == header.last_offset_delta + 1
    if is_whole and offset <= header.base_offset:
        return header.base_timestamp
    blob, position = batch, HEADER_BYTES
    if header.compression != NONE:
        try:
            blob, position = decompress(batch[HEADER_BYTES : header.size], header.compression), 0
        except ValueError as fault:
            raise BadRecords(0, str(fault)) from None
    wanted = offset - header.base_offset
    try:
        for _ in range(header.records_count):
            length, position = read_varint(blob, position)
            after = position + length
            time_delta, position = read_varint(blob, position + 1)  # past the attributes
            offset_delta, position = read_varint(blob, position)
            if offset_delta >= wanted:
                return header.base_timestamp + time_delta
            position = after
    except IndexError:
        raise BadRecords(0, "a record runs past the end of its batch") from None
    except ValueError as fault:
        raise BadRecords(0, str(fault)) from None
    return None
