"""First record: the first of a batch at or after a time and an offset, decoding no more than that.

A batch of a megabyte may unpack to millions of records. So records are skipped by their lengths,
and none is kept. This module stays a source: a compiled loop that makes no objects lets no other
thread run, and clients would wait for as long as the search takes.
"""

from storage.batch.compression import NONE, unpack
from storage.batch.record_batch import HEADER_BYTES, BadRecords, BatchHeader, read_varint


def first_record(
    batch: bytes, header: BatchHeader, earliest_ms: int | None, first_offset: int
) -> tuple[int, int] | None:
    """(timestamp, offset); None when there is none. Without `earliest_ms` any time will do.

    Raises BadRecords.
    """
    blob: bytes | bytearray = batch
    position, end = HEADER_BYTES, header.size
    if header.compression != NONE and header.records_count:
        try:
            blob = unpack(batch[HEADER_BYTES:end], header.compression)
        except ValueError as fault:
            raise BadRecords(0, str(fault)) from None
        position, end = 0, len(blob)
    least_delta = first_offset - header.base_offset
    try:
        for _ in range(header.records_count):
            length, position = read_varint(blob, position)
            after = position + length
            if length < 0 or after > end:
                break
            time_delta, position = read_varint(blob, position + 1)  # past the attributes
            offset_delta, position = read_varint(blob, position)
            if offset_delta >= least_delta:
                timestamp = header.base_timestamp + time_delta
                if header.log_append_time:
                    timestamp = header.max_timestamp
                if earliest_ms is None or timestamp >= earliest_ms:
                    return timestamp, header.base_offset + offset_delta
            position = after
        else:
            return None
    except IndexError:
        raise BadRecords(0, "a record runs past the end of its batch") from None
    except ValueError as fault:
        raise BadRecords(0, str(fault)) from None
    raise BadRecords(0, f"a record claims {length} bytes, {end - position} are left")
