"""First record: what a search finds in a batch is what all of its records say."""

from zlib import compressobj

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from storage.batch.compression import GZIP, NONE
from storage.batch.first_record import first_record
from storage.batch.record_batch import (
    BATCH_PREFIX,
    CRC_COVERED,
    CRC_START,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    BadRecords,
    read_header,
    read_records,
)
from storage.batch.timed_batches import TimedRecord, encode_timed_batch

BASE_MS = 1_700_000_000_000
TIMES = st.lists(st.integers(-200, 200), min_size=1, max_size=200)


def batch_of(times_ms: list[int], compression: int = NONE, attributes: int = 0) -> bytes:
    """From offset 0 on."""
    plain = encode_timed_batch([TimedRecord(BASE_MS + at, b"k" * 80, b"v") for at in times_ms])
    header, blob = read_header(plain), plain[HEADER_BYTES:]
    if compression == GZIP:
        packer = compressobj(wbits=31)
        blob = packer.compress(blob) + packer.flush()
    covered = CRC_COVERED.pack(compression | attributes, *header[6:]) + blob
    length = len(covered) + CRC_START - LOG_OVERHEAD
    return BATCH_PREFIX.pack(0, length, 0, 2, crc32c(covered)) + covered


@given(TIMES, st.sampled_from([NONE, GZIP]), st.sampled_from([0, LOG_APPEND_TIME]), st.data())
def test_it_is_the_first_of_all_records_at_or_after_both(
    times_ms: list[int], compression: int, attributes: int, data: st.DataObject
) -> None:
    batch = batch_of(times_ms, compression, attributes)
    earliest_ms = data.draw(st.none() | st.integers(BASE_MS - 250, BASE_MS + 250))
    first_offset = data.draw(st.integers(0, len(times_ms)))
    wanted = [
        (fields[1], fields[0])
        for fields in read_records(batch)
        if fields[0] >= first_offset and (earliest_ms is None or fields[1] >= earliest_ms)
    ]
    found = first_record(batch, read_header(batch), earliest_ms, first_offset)
    assert found == (wanted[0] if wanted else None)


@pytest.mark.parametrize("at", [0, 1])
def test_a_record_that_runs_past_its_batch_is_no_record(at: int) -> None:
    batch = bytearray(batch_of([0]))
    batch[HEADER_BYTES + at : HEADER_BYTES + at + 2] = b"\xff\x7f"
    header = read_header(bytes(batch))
    with pytest.raises(BadRecords):
        first_record(bytes(batch), header, None, 1)


def test_what_cannot_be_unpacked_has_no_records() -> None:
    batch = batch_of([0] * 9, GZIP)[:-1] + b"x"
    header = read_header(batch)
    with pytest.raises(BadRecords):
        first_record(batch[: HEADER_BYTES + 5], header, None, 0)
