"""Cleaner rules: what a pass keeps, one small log per rule. Kafka's own code is the authority.

The same rules against the real cleaner: test_cleaner_golden.py.
"""

import pytest

from storage.api import Corrupt, LogSettings, Record
from storage.batch.compression import GZIP, LZ4, SNAPPY, ZSTD
from storage.batch.record_batch import (
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME,
    BatchHeader,
    check_crc,
    encode_batch,
    read_header,
    read_records,
)
from storage.batch.rewrite import assemble, recompressed, restamped
from storage.cleaner.batch_filter import LastOfProducer
from tests.storage.cleaner.rig import ABORT, COMMIT, SETTINGS, Partition
from tests.storage.rig import NOW_MS

RETENTION_MS = SETTINGS.delete_retention_ms


def test_the_newest_record_of_each_key_stays_at_its_offset() -> None:
    log = Partition()
    log.write(a=1)
    log.write(b=1)
    log.write(a=2)
    log.write(a=3, c=1)
    log.roll()
    result = log.clean()
    assert log.kept() == {1: ("b", "1"), 3: ("a", "3"), 4: ("c", "1")}
    assert result.end_offset == log.end == 5
    assert (result.records_read, result.records_written) == (5, 3)
    assert result.bytes_written == log.log.size_bytes


def test_a_batch_that_loses_records_keeps_its_place_epoch_and_sequence() -> None:
    log = Partition()
    log.produce(7, epoch=3, sequence=40, a=1, b=1, c=1)
    log.write(b=2)
    log.roll()
    before = log.headers()[0]
    log.clean()
    after = log.headers()[0]
    assert log.kept() == {0: ("a", "1"), 2: ("c", "1"), 3: ("b", "2")}
    changed = {"batch_length", "crc", "records_count"}
    assert {
        name for name in BatchHeader._fields if getattr(before, name) != getattr(after, name)
    } == changed
    assert after.records_count == 2
    assert all(check_crc(batch) for batch in log.batches())


def test_a_batch_that_keeps_everything_is_not_touched() -> None:
    log = Partition()
    log.write(a=1, b=1)
    log.write(c=1)
    log.write(c=2)
    log.roll()
    untouched = log.batches()[0]
    log.clean()
    assert log.batches()[0] == untouched


def test_a_log_of_which_everything_stays_is_not_written_again() -> None:
    log = Partition()
    log.write(a=1)
    log.roll()
    assert log.clean().replacements == []
    assert log.clean_to == 1


def test_the_active_segment_is_never_cleaned_and_does_not_count() -> None:
    log = Partition()
    log.write(a=1)
    log.roll()
    log.write(a=2)
    assert log.clean().end_offset == 1
    assert log.kept() == {0: ("a", "1"), 1: ("a", "2")}


def test_records_without_a_key_go() -> None:
    log = Partition()
    keyless = encode_batch([Record(b"k", b"v")], 0, NOW_MS)
    body = b"\x0e\x00\x00\x00\x01\x02v\x00"  # a null key
    header = read_header(keyless)._replace(batch_length=49 + len(body))
    log.append(assemble(header, body))
    log.write(a=1)
    log.roll()
    assert log.clean().records_without_key == 1
    assert log.kept() == {1: ("a", "1")}


# Tombstones: two passes.


def test_the_first_pass_stamps_a_horizon_on_a_tombstone_and_a_later_one_drops_it() -> None:
    log = Partition()
    log.write(a=1)
    log.write(at=NOW_MS + 5, a=None, b=1)
    log.write(c=1)
    log.roll()
    log.clean(at=NOW_MS + 100)
    stamped = log.headers()[0]
    assert stamped.has_delete_horizon
    assert stamped.base_timestamp == NOW_MS + 100 + RETENTION_MS
    assert stamped.max_timestamp == NOW_MS + 5
    assert [fields[:2] for fields in read_records(log.batches()[0])] == [
        (1, NOW_MS + 5),
        (2, NOW_MS + 5),
    ], "times are counted from the horizon now, and say the same"
    horizon = NOW_MS + 100 + RETENTION_MS

    log.write(d=1)
    log.roll()
    log.clean(at=horizon - 1)
    assert log.kept()[1] == ("a", None), "it is not old enough"
    assert log.headers()[0].base_timestamp == horizon, "and the horizon does not move"

    log.write(e=1)
    log.roll()
    log.clean(at=horizon)
    assert 1 not in log.kept()
    assert log.kept()[2] == ("b", "1")
    assert log.headers()[0].base_timestamp == horizon, "what is left keeps its base"
    assert read_records(log.batches()[0])[0][:2] == (2, NOW_MS + 5)


def test_a_tombstone_that_a_newer_value_follows_goes_at_once() -> None:
    log = Partition()
    log.write(a=None)
    log.write(a=1)
    log.roll()
    log.clean()
    assert log.kept() == {1: ("a", "1")}
    assert not log.headers()[-1].has_delete_horizon


def test_of_a_deleted_key_nothing_is_left_in_the_end() -> None:
    log = Partition()
    for value in (1, 2, None):
        log.write(a=value)
        log.write(other=value or 0)
    log.roll()
    for at in (NOW_MS, NOW_MS + RETENTION_MS):
        log.clean(at=at)
        log.write(other=at)
        log.roll()
    assert "a" not in {key for key, _ in log.kept().values()}


# Times.


def test_a_rewritten_batch_counts_times_from_its_first_record() -> None:
    log = Partition()
    spread = encode_batch([Record(b"a", b"1"), Record(b"b", b"1"), Record(b"c", b"1")], 0, NOW_MS)
    body = b"".join(  # b five ms later than a, c three ms earlier
        (
            b"\x10\x00\x00\x00\x02a\x021\x00",
            b"\x10\x00\x0a\x02\x02b\x021\x00",
            b"\x10\x00\x05\x04\x02c\x021\x00",
        )
    )
    header = read_header(spread)._replace(batch_length=49 + len(body), max_timestamp=NOW_MS + 5)
    log.append(assemble(header, body))
    log.write(a=2)
    log.roll()
    log.clean()
    after = log.headers()[0]
    assert after.base_timestamp == NOW_MS + 5
    assert [fields[1] for fields in read_records(log.batches()[0])] == [NOW_MS + 5, NOW_MS - 3]
    log.write(b=2)
    log.roll()
    log.clean()
    assert log.headers()[0].max_timestamp == NOW_MS - 3


def test_log_append_time_stays_what_it_was() -> None:
    log = Partition()
    batch = encode_batch([Record(b"a", b"1"), Record(b"b", None)], 0, NOW_MS)
    log.append(restamped(batch, read_header(batch), max_timestamp=NOW_MS + 9, log_append_time=True))
    log.write(a=2)
    log.roll()
    log.clean()
    after = log.headers()[0]
    assert after.attributes == LOG_APPEND_TIME | DELETE_HORIZON_FLAG
    assert after.max_timestamp == NOW_MS + 9
    assert read_records(log.batches()[0])[0][1] == NOW_MS + 9


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_compressed_batches_are_compressed_again_with_their_codec(codec: int) -> None:
    log = Partition()
    plain = encode_batch([Record(b"a", b"x" * 100), Record(b"b", b"y" * 100)], 0, NOW_MS)
    log.append(recompressed(plain, read_header(plain), codec, None))
    log.write(a=2)
    log.roll()
    log.clean()
    assert log.headers()[0].compression == codec
    assert log.kept() == {1: ("b", "y" * 100), 2: ("a", "2")}
    assert check_crc(log.batches()[0])


# Batches that are left empty.


def test_an_empty_batch_is_dropped() -> None:
    log = Partition()
    log.write(a=1)
    log.write(a=2)
    log.write(b=1)
    log.roll()
    log.clean()
    assert [header.base_offset for header in log.headers()] == [1, 2]


def test_the_last_batch_of_an_active_producer_stays_as_a_bare_header() -> None:
    log = Partition()
    log.produce(7, sequence=0, a=1)
    log.produce(7, sequence=1, a=2, b=1)
    log.produce(8, sequence=0, a=3, b=2)
    log.write(a=4, b=3)
    log.roll()
    log.clean(producers={7: LastOfProducer(2, 0)})
    bare = log.headers()[0]
    assert (bare.base_offset, bare.last_offset, bare.records_count) == (1, 2, 0)
    assert (bare.producer_id, bare.base_sequence) == (7, 1)
    assert (bare.base_timestamp, bare.max_timestamp) == (-1, NOW_MS)
    assert [header.producer_id for header in log.headers()] == [7, -1], "8 is not active any more"
    log.write(c=1)
    log.roll()
    log.clean()
    assert [header.producer_id for header in log.headers()] == [-1, -1], "and by now neither is 7"


def test_producers_that_nobody_knows_of_are_all_active() -> None:
    log = Partition()
    log.produce(7, sequence=0, a=1)
    log.produce(7, sequence=1, a=2)
    log.write(a=3)
    log.roll()
    found = log.run(producers=None)
    assert found.records_written == 1
    from storage.cleaner.cleaner import clean_folder

    done = clean_folder(
        log.disk, log.log.path, SETTINGS, NOW_MS, topic_partition=log.log.topic_partition
    )
    assert done.end_offset == 3
    assert [(h.base_offset, h.records_count) for h in log.reopened().headers()] == [(1, 0), (2, 1)]


def test_the_last_batch_of_the_round_stays_so_that_the_log_ends_where_it_ended() -> None:
    log = Partition()
    log.write(a=1)
    log.write(b=None)
    log.roll()
    log.clean()
    log.write(a=2)
    log.roll()
    log.clean(at=NOW_MS + RETENTION_MS)
    assert [(h.base_offset, h.records_count) for h in log.headers()] == [(2, 1)]
    log.write(a=None)
    log.roll()
    log.clean(at=NOW_MS + RETENTION_MS)
    log.write(z=1)
    log.log.roll()
    log.clean(at=NOW_MS + 9 * RETENTION_MS)
    assert log.kept() == {4: ("z", "1")}


# Transactions.


def test_what_was_aborted_goes_and_does_not_shadow_what_counts() -> None:
    log = Partition()
    log.write(a=1)
    log.in_transaction(7, a=2)
    log.mark(7, ABORT)
    log.write(b=1)
    log.roll()
    log.clean()
    assert log.kept() == {0: ("a", "1"), 3: ("b", "1")}


def test_what_was_committed_counts() -> None:
    log = Partition()
    log.write(a=1)
    log.in_transaction(7, a=2)
    log.mark(7, COMMIT)
    log.write(b=1)
    log.roll()
    log.clean()
    assert log.kept() == {1: ("a", "2"), 3: ("b", "1")}


def test_a_marker_outlives_its_transactions_records_by_a_horizon() -> None:
    log = Partition()
    log.in_transaction(7, a=1)
    log.mark(7, COMMIT)
    log.write(b=1)
    log.roll()
    log.clean()
    assert [h.is_control for h in log.headers()] == [False, True, False]
    assert not log.headers()[1].has_delete_horizon, "its record is there"
    log.write(a=2)
    log.roll()
    log.clean(at=NOW_MS)  # drops the record; the marker has been seen after it
    log.write(c=1)
    log.roll()
    log.clean(at=NOW_MS)
    marker = log.headers()[0]
    assert marker.is_control
    assert marker.base_timestamp == NOW_MS + RETENTION_MS
    log.write(d=1)
    log.roll()
    log.clean(at=NOW_MS + RETENTION_MS)
    assert not any(h.is_control for h in log.headers())


def test_the_marker_of_an_active_producer_stays() -> None:
    log = Partition()
    log.mark(7, COMMIT)
    log.write(a=1)
    log.roll()
    last = {7: LastOfProducer(None, 0)}
    for at in (NOW_MS, NOW_MS + RETENTION_MS, NOW_MS + RETENTION_MS):
        log.clean(at=at, producers=last)
        log.write(a=at)
        log.roll()
    assert next((h.is_control, h.records_count) for h in log.headers()) == (True, 0)


def test_nothing_behind_the_begin_of_an_open_transaction_is_cleaned() -> None:
    log = Partition()
    log.write(a=1)
    log.write(a=2)
    log.roll()
    log.in_transaction(7, b=1)
    log.write(a=3)
    log.roll()
    log.write(a=4)
    log.roll()
    assert log.clean().end_offset == 2
    assert log.kept() == {1: ("a", "2"), 2: ("b", "1"), 3: ("a", "3"), 4: ("a", "4")}
    assert log.clean().end_offset == 2, "nor later"
    log.mark(7, ABORT)
    log.roll()
    assert log.clean().end_offset == 6
    assert log.kept() == {4: ("a", "4")}


def test_a_transaction_that_ends_behind_the_cleaned_part_is_known_all_the_same() -> None:
    log = Partition()
    log.write(a=1)
    log.in_transaction(7, a=2)
    log.roll()
    log.mark(7, ABORT)  # in the active segment
    assert log.clean().end_offset == 2
    assert log.kept() == {0: ("a", "1")}


# Parts of a log.


def test_a_map_that_is_full_cleans_a_part_and_the_next_pass_goes_on() -> None:
    log = Partition()
    for number in range(400):
        log.write(**{f"key-{number % 200:03}": number})
    log.roll()
    first = log.clean(map_bytes=4_000)
    assert 0 < first.end_offset < 400
    assert first.map_utilization > 0.9
    passes = 1
    while log.clean_to != 400:
        log.clean(map_bytes=4_000)
        passes += 1
    assert passes > 2
    assert log.kept() == {n: (f"key-{n % 200:03}", str(n)) for n in range(200, 400)}


def test_segments_are_put_together_as_long_as_they_fit_into_one() -> None:
    settings = LogSettings(
        segment_bytes=1_000, index_interval_bytes=256, cleanup_delete=False, cleanup_compact=True
    )
    log = Partition(settings=settings)
    for _ in range(6):
        log.write(at=NOW_MS, a=1, **{f"k{log.end}": "x" * 200})
        log.roll()
    sizes = [segment.size for segment in log.log.segments[:-1]]
    log.clean()
    bases = [segment.base_offset for segment in log.log.segments]
    assert bases == [0, 6, 12]
    assert sum(sizes[:3]) <= 1_000 < sum(sizes[:4])
    log.clean_to = None
    again = log.clean()
    assert again.end_offset == 12
    assert log.reopened().kept() == log.kept()


def test_a_damaged_batch_is_named_and_nothing_is_written_over() -> None:
    log = Partition()
    log.write(a=1)
    log.write(a=2)
    log.roll()
    before = log.batches()
    path = log.log.segments[0].path
    file = log.disk.open(path)
    at = len(before[0]) + 65
    byte = file.pread(1, at)
    file.pwrite(bytes((byte[0] ^ 1,)), at)
    with pytest.raises(Corrupt, match=r"compacted-0/0+\.log at byte \d+: stored crc") as damage:
        log.clean()
    assert damage.value.position == len(before[0])


def test_old_formats_are_refused_by_name() -> None:
    log = Partition()
    log.write(a=1)
    log.roll()
    file = log.disk.open(log.log.segments[0].path)
    file.pwrite(b"\x01", 16)
    with pytest.raises(Corrupt, match="magic 1"):
        log.clean()
