"""The time of one record: exact for each offset, whatever its batch is like."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kafka.record import MemoryRecordsBuilder

from storage.api import LogSettings, Record, TopicPartition
from storage.batch.record_batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BadRecords,
    encode_batch,
    read_header,
    read_varint,
)
from storage.batch.timed_batches import TimedRecord, encode_timed_batch
from storage.disk import RealDisk
from storage.log.partition_log import PartitionLog
from storage.log.record_times import _find, time_of_record
from tests.waits import shares_interpreter

START = 1_700_000_000_000
TIMES = [START + n * n * 1_000 for n in range(300)]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def batch_of(times_ms: Sequence[int], codec: str = "none") -> bytes:
    builder: Any = MemoryRecordsBuilder(
        magic=2, compression_type=CODECS[codec], batch_size=10_000_000
    )
    for time_ms in times_ms:
        builder.append(timestamp=time_ms, key=b"k" * 70, value=b"v" * 200)
    builder.close()
    return bytes(builder.buffer())


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    made = PartitionLog(RealDisk(), str(tmp_path / "t-0"), TopicPartition("t", 0), LogSettings())
    made.create(UUID(int=1))
    return made


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 7, 300])
def test_each_record_has_its_own_time(log: PartitionLog, codec: str, size: int) -> None:
    for at in range(0, len(TIMES), size):
        log.append(batch_of(TIMES[at : at + size], codec), START)
    for offset in (0, 1, 6, 7, 8, 150, 299):
        assert time_of_record(log, offset) == TIMES[offset]
    assert time_of_record(log, 300) is None


def test_an_empty_log_has_no_record(log: PartitionLog) -> None:
    assert time_of_record(log, 0) is None
    assert time_of_record(log, 7) is None


def test_below_the_log_start_it_is_the_first_record_that_is_left(log: PartitionLog) -> None:
    log.append(batch_of(TIMES[:10]), START)
    log.append(batch_of(TIMES[10:20]), START)
    log.delete_before(13)
    assert time_of_record(log, 2) == TIMES[13]


def test_control_records_are_passed_over(log: PartitionLog) -> None:
    marker = encode_batch([Record(b"\0\0\0\1", b"")], 0, START, attributes=CONTROL_FLAG)
    log.append(marker, START)
    assert time_of_record(log, 0) is None
    log.append(encode_batch([Record(b"k", b"v")], 0, START + 5), START)
    assert time_of_record(log, 0) == START + 5


def test_records_without_a_time_have_none(log: PartitionLog) -> None:
    log.append(encode_batch([Record(b"k", b"v")], 0, -1), START)
    assert time_of_record(log, 0) is None


def test_log_append_time_is_the_batchs(log: PartitionLog) -> None:
    log.append(encode_batch([Record(b"k", b"v")] * 3, 0, START, attributes=LOG_APPEND_TIME), START)
    assert time_of_record(log, 2) == START


def test_what_the_cleaner_left_of_a_batch_is_found_by_its_offsets() -> None:
    """Record 0 is gone: the next one at or after it answers."""
    whole = batch_of(TIMES[:3])
    header = read_header(whole)
    length, position = read_varint(whole, HEADER_BYTES)
    rest = whole[:HEADER_BYTES] + whole[position + length :]
    cleaned = header._replace(records_count=2, batch_length=len(rest) - 12)
    assert _find(rest, cleaned, 0) == TIMES[1]
    assert _find(rest, cleaned, 2) == TIMES[2]
    assert _find(rest, cleaned, 3) is None


def test_bytes_that_are_no_records_are_refused() -> None:
    whole = batch_of(TIMES[:3])
    header = read_header(whole)
    with pytest.raises(BadRecords):
        _find(whole[:70], header, 2)
    with pytest.raises(BadRecords):
        _find(whole[:61] + b"\xff" * 200, header, 2)


def test_other_threads_run_while_one_record_of_many_is_found(log: PartitionLog) -> None:
    """It is the last one of very many in a batch."""
    records = [TimedRecord(START, b"", None)] * 200_000 + [TimedRecord(START + 1, b"", None)]
    log.append(encode_timed_batch(records), START)
    assert log.offset_for_timestamp(START + 1) == (START + 1, 200_000)
    assert shares_interpreter(lambda: log.offset_for_timestamp(START + 1))
    assert log.max_timestamp() == (START + 1, 200_000)
    assert shares_interpreter(log.max_timestamp)
    assert time_of_record(log, 200_000) == START + 1
    assert shares_interpreter(lambda: time_of_record(log, 200_000))
