"""Record time: the timestamp of the record at an offset, decoding no more than needed.

Lag in seconds asks for the time of single records, of many partitions, again and again. So one
batch is read, and its records are skipped by their lengths. Where the offset is the first of its
batch, which it is for a consumer that has read all of the batch before, the header is enough.
"""

from storage.api import TopicLog
from storage.batch.first_record import first_record
from storage.batch.record_batch import BatchHeader, read_header

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
    found = first_record(batch, header, None, offset)
    return None if found is None else found[0]
