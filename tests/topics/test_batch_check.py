"""Batch check: which record batches of producers may be stored: Kafka's checks, one by one.

The batches are made by client libraries; where no library makes such a batch, one is damaged by
hand. Each damaged batch has a checksum that holds, or its refusal would prove nothing.
"""

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.names import ErrorCode
from storage.api import TopicPartition
from storage.batch.compression import ZSTD
from storage.batch.record_batch import (
    CONTROL_FLAG,
    LOG_APPEND_TIME,
    InvalidBatch,
    encode_varint,
    read_header,
    read_records,
)
from storage.batch.record_check import FAULTS_KEPT
from storage.batch.rewrite import assemble, compress
from tests.topics.batches import (
    CODECS,
    at_times,
    batch,
    damaged,
    sent_by_aiokafka,
    values_of,
)
from topics.batch_check import RejectedBatch, ValidatedBatch, check_batch, check_request
from topics.configs import TopicConfigs

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("t", 0)


def check(records: bytes, version: int = 9, **configs: str) -> ValidatedBatch | RejectedBatch:
    """Both checks; config names have _ for dots."""
    header = check_request(records, version)
    if isinstance(header, RejectedBatch):
        return header
    overrides = {name.replace("_", "."): text for name, text in configs.items()}
    config = TopicConfigs({}).effective(overrides)
    return check_batch(records, header, config, PARTITION, NOW_MS)


def refused(records: bytes, version: int = 9, **configs: str) -> RejectedBatch:
    result = check(records, version, **configs)
    assert isinstance(result, RejectedBatch)
    return result


def stored(records: bytes, version: int = 9, **configs: str) -> bytes:
    result = check(records, version, **configs)
    assert isinstance(result, ValidatedBatch), result
    assert result.header == read_header(result.batch)
    return result.batch


# What is taken


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("build", [batch, sent_by_aiokafka])
def test_a_batch_is_stored_byte_for_byte_as_it_came(codec: str, build: type) -> None:
    sound = build(b"x", b"y" * 5_000, b"z", timestamp=NOW_MS, codec=codec)
    assert read_header(sound).compression == CODECS[codec]
    assert stored(sound) == sound


@pytest.mark.parametrize("codec", CODECS)
def test_the_greatest_timestamp_is_found_in_the_records(codec: str) -> None:
    result = check(batch(b"x" * 500, b"y", timestamp=NOW_MS - 5, codec=codec))
    assert isinstance(result, ValidatedBatch)
    assert result.max_timestamp == NOW_MS - 5


def test_a_header_that_lies_about_the_greatest_timestamp_is_corrected() -> None:
    kept = stored(damaged(at_times(7, 9, 8), max_timestamp=5))
    assert read_header(kept).max_timestamp == 9
    assert values_of(kept) == [b"v"] * 3


def test_what_is_torn_behind_the_batch_is_cut_off() -> None:
    sound = batch(b"x")
    assert stored(sound + sound[:-2]) == sound
    assert stored(sound + b"\x00" * 10) == sound


def test_an_old_record_is_taken_and_one_without_a_time_is_too() -> None:
    assert stored(at_times(0))
    assert stored(at_times(-1))


# What is asked before the topic is looked at


def test_there_must_be_a_batch() -> None:
    for nothing in (b"", b"\x00" * 11, batch()[:-1]):
        refusal = refused(nothing)
        assert refusal.error_code is ErrorCode.INVALID_RECORD
        assert not refusal.has_log_start


def test_there_must_be_one_batch_only() -> None:
    assert refused(batch() + batch()).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_an_older_format_is_refused(magic: int) -> None:
    assert refused(damaged(batch(), magic=magic)).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [3, -1])
def test_an_unknown_format_is_corrupt(magic: int) -> None:
    refusal = refused(damaged(batch(), magic=magic))
    assert refusal.error_code is ErrorCode.CORRUPT_MESSAGE
    assert refusal.message == f"Invalid magic found in record: {magic}"


def test_a_batch_shorter_than_any_record_is_corrupt() -> None:
    refusal = refused(damaged(batch(), batch_length=5))
    assert refusal.error_code is ErrorCode.CORRUPT_MESSAGE
    assert refusal.message == ("Record size 5 is less than the minimum record overhead (14)")


def test_a_batch_shorter_than_its_header_is_corrupt() -> None:
    assert refused(batch()[:8] + b"\x00\x00\x00\x20" + batch()[12:44]).error_code is (
        ErrorCode.CORRUPT_MESSAGE
    )


def test_zstd_came_with_version_7() -> None:
    compressed = batch(b"x" * 500, codec="zstd")
    assert refused(compressed, version=6).error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert stored(compressed, version=7) == compressed


# What is asked of the batch


def test_a_batch_above_max_message_bytes_is_too_large() -> None:
    large = batch(b"x" * 1_000)
    refusal = refused(large, max_message_bytes=str(len(large) - 1))
    assert refusal.error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert not refusal.has_log_start
    assert stored(large, max_message_bytes=str(len(large))) == large


def test_a_batch_above_the_segments_size_is_too_large_for_a_list() -> None:
    large = batch(b"x" * 1_000)
    refusal = refused(large, internal_segment_bytes=str(len(large) - 1))
    assert refusal.error_code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_checksum_that_does_not_hold_is_corrupt() -> None:
    assert refused(damaged(batch(), crc=5)).error_code is ErrorCode.CORRUPT_MESSAGE
    assert refused(batch()[:-1] + b"\x07").error_code is ErrorCode.CORRUPT_MESSAGE


def test_size_is_asked_before_the_checksum() -> None:
    refusal = refused(damaged(batch(b"x" * 500), crc=5), max_message_bytes="100")
    assert refusal.error_code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 5},
        {"records_count": 2},
        {"records_count": 2, "last_offset_delta": 1},
        {"records_count": 0, "last_offset_delta": -1},
        {"records_count": -1},
        {"last_offset_delta": -5},
        {"attributes": CONTROL_FLAG},
        {"producer_id": 7, "producer_epoch": 0, "base_sequence": -1},
        {"attributes": 5},
        {"attributes": 7},
    ],
    ids=str,
)
def test_a_header_that_no_producer_may_send_is_an_invalid_record(fields: dict[str, int]) -> None:
    refusal = refused(damaged(batch(timestamp=NOW_MS), **fields))
    assert refusal.error_code is ErrorCode.INVALID_RECORD
    assert refusal.message is None
    assert refusal.has_log_start


def test_a_count_below_the_records_that_are_there_is_an_invalid_record() -> None:
    few = damaged(batch(b"x", b"y", b"z"), records_count=2, last_offset_delta=1)
    assert refused(few).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_records_that_cannot_be_decompressed_are_invalid(codec: int) -> None:
    refusal = refused(damaged(batch(b"x" * 100), attributes=codec))
    assert refusal.error_code is ErrorCode.INVALID_RECORD


def test_a_compressed_batch_with_a_gap_in_its_offsets_is_an_invalid_record() -> None:
    import gzip

    plain = batch(b"x", b"y")
    records = bytearray(plain[61:])
    second = records.index(b"\x02k\x02y") - 1  # the offset delta stands before the key
    assert records[second] == 2
    records[second] = 6
    blob = gzip.compress(bytes(records))
    gapped = damaged(plain[:61] + blob, attributes=1, batch_length=49 + len(blob))
    assert refused(gapped).error_code is ErrorCode.INVALID_RECORD


# What is asked of the records


def test_a_record_from_the_future_is_refused_and_named() -> None:
    late = NOW_MS + 3_600_001
    refusal = refused(at_times(NOW_MS, late, NOW_MS, late))
    assert refusal.error_code is ErrorCode.INVALID_TIMESTAMP
    assert refusal.message == "One or more records have been rejected due to invalid timestamp"
    assert [e.batch_index for e in refusal.record_errors] == [1, 3]
    assert refusal.record_errors[0].batch_index_error_message == (
        f"Timestamp {late} of message with offset 1 is out of range. The timestamp should be "
        f"within [{NOW_MS - (2**63 - 1)}, {NOW_MS + 3_600_000}]"
    )
    assert stored(at_times(NOW_MS + 3_600_000))


def test_a_topic_may_refuse_records_of_the_past() -> None:
    limit = {"message_timestamp_before_max_ms": "1000"}
    assert refused(at_times(NOW_MS - 1_001), **limit).error_code is ErrorCode.INVALID_TIMESTAMP
    assert stored(at_times(NOW_MS - 1_000), **limit)
    assert stored(at_times(-1), **limit)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_compacted_topic_needs_keys(codec: str) -> None:
    keyless = batch(b"x" * 500, b"y", key=None, timestamp=NOW_MS, codec=codec)
    refusal = refused(keyless, cleanup_policy="compact,delete")
    assert refusal.error_code is ErrorCode.INVALID_RECORD
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert [(e.batch_index, e.batch_index_error_message) for e in refusal.record_errors] == [
        (0, text),
        (1, text),
    ]
    assert refusal.message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=0, message='{text}'), "
        f"RecordError(batchIndex=1, message='{text}')]"
    )
    assert stored(keyless) == keyless


def test_a_tombstone_is_a_record_with_a_key() -> None:
    assert values_of(stored(batch(None), cleanup_policy="compact")) == [None]


def test_only_the_log_stamps_records_with_the_time_of_the_append() -> None:
    stamped = damaged(batch(timestamp=NOW_MS), attributes=LOG_APPEND_TIME)
    refusal = refused(stamped, message_timestamp_type="LogAppendTime")
    assert refusal.error_code is ErrorCode.INVALID_TIMESTAMP
    assert refusal.record_errors[0].batch_index_error_message == (
        f"Invalid timestamp type in message DefaultRecord(offset=0, timestamp={NOW_MS}, "
        "key=1 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."
    )
    # In a topic of the producers' time the flag is taken away.
    assert not read_header(stored(stamped)).log_append_time


def test_the_time_of_the_append_replaces_what_the_producer_said() -> None:
    kept = stored(at_times(5, 6), message_timestamp_type="LogAppendTime")
    assert [timestamp for _, timestamp, *_ in read_records(kept)] == [NOW_MS, NOW_MS]


# Recompression


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_may_ask_for_a_compression_of_its_own(codec: str, wanted: str) -> None:
    values = [b"x" * 40_000, b"y", b"z" * 40_000]
    kept = stored(batch(*values, timestamp=NOW_MS, codec=codec), compression_type=wanted)
    assert read_header(kept).compression == CODECS["none" if wanted == "uncompressed" else wanted]
    assert values_of(kept) == values


def test_a_batch_that_is_too_large_once_recompressed_is_refused() -> None:
    small = batch(b"x" * 5_000, codec="gzip")
    refusal = refused(small, compression_type="uncompressed", max_message_bytes="1000")
    assert refusal.error_code is ErrorCode.MESSAGE_TOO_LARGE


# What many records cost


def of_records(count: int, delta_of: Callable[[int], int], codec: int = ZSTD) -> bytes:
    """A batch of so many of the smallest records, whose offset deltas are not checked."""
    deltas = [encode_varint(delta_of(index)) for index in range(count)]
    records = b"".join(
        bytes((2 * (5 + len(delta)), 0, 0)) + delta + b"\x01\x01\x00" for delta in deltas
    )
    header = read_header(batch(timestamp=NOW_MS))._replace(
        records_count=count, last_offset_delta=count - 1, attributes=codec
    )
    blob = compress(records, codec, None)
    return assemble(header._replace(batch_length=49 + len(blob)), blob)


def test_the_check_stops_at_the_first_wrong_offset() -> None:
    pauses: list[None] = []
    records = of_records(100_000, lambda _: 0)
    header = check_request(records, 9)
    assert not isinstance(header, RejectedBatch)
    config = TopicConfigs({}).effective({})
    result = check_batch(records, header, config, PARTITION, NOW_MS, lambda: pauses.append(None))
    assert isinstance(result, RejectedBatch)
    assert "claims offset 0" in result.reason
    assert pauses == []


def test_a_long_check_pauses_now_and_then() -> None:
    pauses: list[None] = []
    records = of_records(20_000, lambda index: index)
    header = check_request(records, 9)
    assert not isinstance(header, RejectedBatch)
    config = TopicConfigs({}).effective({})
    result = check_batch(records, header, config, PARTITION, NOW_MS, lambda: pauses.append(None))
    assert isinstance(result, ValidatedBatch)
    assert len(pauses) == 40


def test_a_check_keeps_nothing_of_the_records_that_it_walks() -> None:
    records = of_records(50_000, lambda index: index)
    tracemalloc.start()
    try:
        assert isinstance(check(records), ValidatedBatch)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 << 20  # unpacked they are 0.4 MB; an object for each would take 10


def test_a_count_that_cannot_be_in_so_few_bytes_is_refused_at_once() -> None:
    few = of_records(10, lambda index: index)
    refusal = refused(damaged(few, records_count=9_000_000, last_offset_delta=8_999_999))
    assert refusal.error_code is ErrorCode.INVALID_RECORD
    assert "9000000 records in" in refusal.reason


def test_of_many_bad_records_the_first_are_named_and_all_are_counted() -> None:
    count = FAULTS_KEPT + 500
    refusal = refused(of_records(count, lambda index: index), cleanup_policy="compact")
    assert len(refusal.record_errors) == FAULTS_KEPT
    assert f"due to {count} record errors in total" in (refusal.message or "")


@given(noise=st.binary(max_size=60), at=st.integers(61, 120))
def test_the_check_and_the_reader_agree_on_what_records_are(noise: bytes, at: int) -> None:
    sound = batch(b"x" * 20, b"y" * 20)
    at = min(at, len(sound))
    changed = (sound[:at] + noise + sound[at + len(noise) :])[: len(sound)]
    changed = damaged(changed)
    try:
        times = [timestamp for _, timestamp, *_ in read_records(changed)]
    except InvalidBatch:
        assert isinstance(check(changed), RejectedBatch)
        return
    result = check(changed)
    if isinstance(result, ValidatedBatch):
        assert result.max_timestamp == max(times)
    else:
        assert result.error_code is ErrorCode.INVALID_TIMESTAMP


# Whatever comes


@given(noise=st.binary(max_size=200), cut=st.integers(0, 80), flip=st.integers(0, 79))
def test_no_bytes_at_all_are_answered_with_anything_but_a_verdict(
    noise: bytes, cut: int, flip: int
) -> None:
    sound = bytearray(batch(b"some value"))
    sound[flip % len(sound)] ^= 0xFF
    for records in (noise, bytes(sound[:cut]) + noise, bytes(sound), bytes(sound) + noise):
        assert isinstance(check(records), ValidatedBatch | RejectedBatch)
