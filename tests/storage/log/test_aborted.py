"""Aborted transactions: a topic's folder from Kafka 4.3.1 gives the same list as there.

golden/transactions is that folder, and what the broker gave its own consumers; made by
golden/make_transactions.py.
"""

import json
import struct
from collections.abc import Iterable
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.api import AbortedTransaction, EndMarker, LogSettings, TopicPartition
from storage.batch.control_batch import encode_marker
from storage.batch.record_batch import read_header, read_records
from storage.disk import read_file
from storage.journal.journaled_log import JournaledLog
from storage.journal.journaled_view import JournaledView
from storage.log.aborted import ABORTED_FILE, all_outcomes
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from tests.simulator.disk import SimulatedDisk
from tests.storage.cleaner.rig import ABORT, COMMIT, Partition
from tests.storage.rig import DATA, NOW_MS, batch, new_disk

GOLDEN = Path(__file__).parents[1] / "golden" / "transactions"
READ = json.loads((GOLDEN / "read.json").read_text())
MOVED = TopicPartition("moved", 0)
FOLDER = f"{DATA}/moved-0"
INDEXES = (".txnindex", ".snapshot")


def moved(*without: str) -> SimulatedDisk:
    """The folder in a data directory of ours."""
    disk = new_disk()
    disk.make_dir(FOLDER)
    for path in sorted(GOLDEN.iterdir()):
        if path.suffix not in (".json", *without):
            put(disk, path.name, path.read_bytes())
    return disk


def put(disk: SimulatedDisk, name: str, content: bytes) -> None:
    disk.open(f"{FOLDER}/{name}", create=True).pwrite(content, 0)


def producer_snapshot(*producer_ids: int) -> bytes:
    """As a Kafka writes it."""
    entries = [
        struct.pack(">qhiqiqiq", producer_id, 0, 5, 25, 5, NOW_MS, -1, -1)
        for producer_id in producer_ids
    ]
    covered = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", 1, google_crc32c.value(covered)) + covered


def ended(log: PartitionLog) -> PartitionLog:
    """The transactions that a Kafka left open are aborted, as the data plane does."""
    for producer_id, first_offset in log.left_open:
        end = EndMarker(producer_id, 0, is_commit=False, coordinator_epoch=0)
        marker = encode_marker(end, 0, 1)
        offset = log.append(marker, NOW_MS)
        log.add_aborted(AbortedTransaction(producer_id, first_offset, offset, offset + 1))
    return log


def opened(disk: SimulatedDisk) -> PartitionLog:
    store = LogStore(disk, DATA)
    store.open()
    log = store.partition_log(MOVED)
    assert log is not None
    return log


def fetched(log: PartitionLog, offset: int) -> bytes:
    return log.read(offset, 1 << 20, up_to=log.high_watermark, at_least_one=True)


def aborted_at(log: PartitionLog, offset: int) -> list[list[int]]:
    found = log.aborted_among(fetched(log, offset))
    return [[transaction.producer_id, transaction.first_offset] for transaction in found]


def committed(batches: Iterable[bytes], aborted: Iterable[AbortedTransaction]) -> list[str]:
    """What a client keeps of these: by what it was told, and by the markers that it meets."""
    left = sorted(aborted, key=lambda transaction: transaction.first_offset)
    passing: set[int] = set()
    values = []
    for each in batches:
        header = read_header(each)
        while left and left[0].first_offset <= header.last_offset:
            passing.add(left.pop(0).producer_id)
        if header.is_control:
            passing.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in passing:
            values += [(record[3] or b"").decode() for record in read_records(each)]
    return values


def test_every_fetch_returns_the_aborted_transactions_that_kafka_returns() -> None:
    log = ended(opened(moved()))
    assert log.log_end_offset == 27
    assert [aborted_at(log, offset) for offset in range(27)] == [
        fetch["aborted"] for fetch in READ["fetch"][:27]
    ]
    assert aborted_at(log, 27) == []


def test_what_a_consumer_keeps_is_what_it_kept_there() -> None:
    log = ended(opened(moved()))
    stored = list(log.batches(0))
    assert committed(stored, log.aborted_among(b"".join(stored))) == READ["read_committed"]
    assert "open 0" not in READ["read_committed"]  # its producer never came back
    everything = READ["read_uncommitted"]
    assert (
        committed([batch for batch in stored if not read_header(batch).is_control], ())
        == everything
    )


def test_they_are_found_out_once() -> None:
    disk = moved()
    log = opened(disk)
    assert log.moved.is_newly_read
    assert (log.moved.aborted, log.left_open, log.last_producer_id) == (3, [(2, 23)], 2)
    first = aborted_at(log, 16)
    log.append(batch("ours"), NOW_MS)
    disk = disk.after_kill()
    again = opened(disk)
    assert not again.moved.is_newly_read
    assert (again.left_open, again.last_producer_id) == ([(2, 23)], 2)
    assert again.log_end_offset == 27
    assert aborted_at(again, 16) == first


def test_with_the_state_of_its_coordinator_a_transaction_stays_open() -> None:
    disk = moved()
    disk.make_dir(f"{DATA}/__transaction_state-3")
    disk.open(f"{DATA}/__transaction_state-3/{9:020d}.snapshot", create=True)
    assert opened(disk).left_open == []
    assert opened(disk.after_kill()).left_open == []


def test_a_transaction_state_of_ours_did_not_come_with_it() -> None:
    disk = moved()
    disk.make_dir(f"{DATA}/__transaction_state-3")
    disk.open(f"{DATA}/__transaction_state-3/{0:020d}.log", create=True)
    assert opened(disk).left_open == [(2, 23)]


def test_kafkas_index_is_not_needed() -> None:
    for missing in INDEXES:
        log = ended(opened(moved(missing)))
        assert [aborted_at(log, offset) for offset in range(26)] == [
            fetch["aborted"] for fetch in READ["fetch"][:26]
        ]


def test_the_index_is_the_one_that_kafka_has_written() -> None:
    disk = moved(".txnindex")
    opened(disk)
    for path in sorted(GOLDEN.glob("*.txnindex")):
        assert read_file(disk, f"{FOLDER}/{path.name}") == path.read_bytes()


def test_a_log_that_a_kafka_has_had_again_is_read_again() -> None:
    disk = moved()
    opened(disk)
    disk = disk.after_kill()
    put(disk, f"{27:020d}.snapshot", producer_snapshot(7))
    assert opened(disk).moved.is_newly_read
    # And what went meanwhile, with a segment, is no reason to.
    disk = disk.after_kill()
    disk.remove(f"{FOLDER}/{13:020d}.snapshot")
    assert not opened(disk).moved.is_newly_read


def test_a_log_of_ours_is_never_read_through() -> None:
    log = opened(moved(*INDEXES))
    assert (log.left_open, log.last_producer_id) == ((), -1)
    assert ABORTED_FILE not in log._disk.listdir(FOLDER)


def test_a_disk_that_does_not_take_the_file_keeps_nobody_from_reading() -> None:
    disk = moved()
    disk.fail_write(ABORTED_FILE)
    log = opened(disk)
    assert aborted_at(log, 16) == READ["fetch"][16]["aborted"][:-1]  # one is open
    disk = disk.after_kill()
    assert opened(disk).moved.is_newly_read  # as the last start could not write it down
    assert not opened(disk.after_kill()).moved.is_newly_read


@pytest.mark.parametrize("content", [b"", b"[]", b'{"found_beside": []', b'{"version": 1}'])
def test_a_damaged_file_is_rebuilt_from_the_log(content: bytes) -> None:
    disk = moved()
    put(disk, ABORTED_FILE, content)
    log = opened(disk)
    assert log.moved.is_newly_read
    assert aborted_at(log, 16) == READ["fetch"][16]["aborted"][:-1]  # one is open
    assert not opened(disk.after_kill()).moved.is_newly_read


def test_producers_whose_records_are_gone_are_in_the_snapshots() -> None:
    disk = moved()
    put(disk, f"{25:020d}.snapshot", producer_snapshot(7, 4_711, 12))
    log = opened(disk)
    assert log.greatest_producer_id() == 2
    assert log.last_producer_id == 4_711
    assert opened(disk.after_kill()).last_producer_id == 4_711


@pytest.mark.parametrize("kept", [0, 9, -1])
def test_a_torn_snapshot_is_ignored(kept: int) -> None:
    disk = moved()
    put(disk, f"{25:020d}.snapshot", producer_snapshot(4_711)[:kept])
    assert opened(disk).last_producer_id == 2


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_earlier_version_is_rebuilt(version: int) -> None:
    disk = moved()
    put(disk, f"{25:020d}.snapshot", producer_snapshot(4_711))
    opened(disk)
    content = json.loads(read_file(disk, f"{FOLDER}/{ABORTED_FILE}"))
    disk.remove(f"{FOLDER}/{ABORTED_FILE}")
    changed = json.dumps({**content, "version": version, "last_producer_id": 2}).encode()
    put(disk, ABORTED_FILE, changed)
    assert opened(disk.after_kill()).last_producer_id == 4_711


def test_a_damaged_segment_sets_the_partition_aside() -> None:
    disk = moved()
    disk.open(f"{DATA}/.kafka_cleanshutdown", create=True)  # its tail is trusted then
    path = f"{FOLDER}/{13:020d}.log"
    disk.open(path).pwrite(b"\xff\xff\xff\xff", 8)
    store = LogStore(disk, DATA)
    store.open()
    assert store.damaged[MOVED].path == path


@pytest.mark.pure  # a compiled class has no interpreted subclass
def test_a_journaled_view_returns_aborted_transactions_too() -> None:
    class NeverWritten(JournaledLog):
        def __init__(self) -> None:
            """It has nothing."""

    log = opened(moved())
    view = JournaledView(log, NeverWritten())
    assert view.aborted_among(fetched(log, 16)) == log.aborted_among(fetched(log, 16)) != ()


def test_a_transaction_that_spans_others_is_returned_wherever_it_overlaps() -> None:
    partition = Partition(settings=LogSettings(index_interval_bytes=256))
    partition.in_transaction(1, a=1)  # 0, ended at 7
    partition.in_transaction(2, b=1)  # 1
    partition.mark(2, ABORT)  # 2
    partition.write(c=1)  # 3
    partition.in_transaction(3, d=1)  # 4
    partition.mark(3, COMMIT)  # 5
    partition.in_transaction(4, e=1)  # 6, never ended
    partition.mark(1, ABORT)  # 7
    partition.write(f=1)  # 8
    put_sign = f"{partition.log.path}/{9:020d}.snapshot"
    partition.disk.open(put_sign, create=True)
    log = partition.reopened().log
    by_batch = {
        read_header(batch).base_offset: [each[0] for each in log.aborted_among(batch)]
        for batch in log.batches(0)
    }
    assert by_batch == {
        0: [1], 1: [2, 1], 2: [2, 1], 3: [1], 4: [1], 5: [1], 6: [1], 7: [1], 8: [],
    }  # fmt: skip
    assert log.left_open == [(4, 6)]


STEPS = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["write", "abort", "commit", "roll"])), max_size=25
)


@given(STEPS, st.booleans())
def test_the_transactions_that_overlap_are_returned(
    steps: list[tuple[int, str]], reopens: bool
) -> None:
    """However they are nested, and in whichever segments they end."""
    partition = Partition(settings=LogSettings(index_interval_bytes=256))
    begun: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    for producer, step in steps:
        if step == "write":
            begun.setdefault(producer, partition.in_transaction(producer, a=1))
        elif step == "roll":
            partition.roll()
        else:
            offset = partition.mark(producer, ABORT if step == "abort" else COMMIT)
            first = begun.pop(producer, None)
            if first is not None and step == "abort":
                aborted.append((producer, first, offset))
                stable = min(begun.values(), default=offset + 1)
                partition.log.add_aborted(AbortedTransaction(producer, first, offset, stable))
    if reopens:
        partition.log.sync_aborted()
        partition = partition.reopened()
    log = partition.log
    batches = list(log.batches(0))
    for start in range(len(batches)):
        for end in range(start + 1, len(batches) + 1):
            assert [each[:3] for each in log.aborted_among(b"".join(batches[start:end]))] == [
                each for each in aborted if each[1] < end and each[2] >= start
            ]


def test_a_damaged_index_is_made_again_from_the_log() -> None:
    disk = moved()
    ended(opened(disk)).flush()
    disk = disk.after_kill()
    name = f"{FOLDER}/{16:020d}.txnindex"
    whole = read_file(disk, name)
    for damaged in (whole[:-1], whole[:40], b"\xff" * 34):
        file = disk.open(name)
        file.truncate(0)
        file.pwrite(damaged, 0)
        log = opened(disk)
        assert [aborted_at(log, offset) for offset in range(26)] == [
            fetch["aborted"] for fetch in READ["fetch"][:26]
        ], damaged
        assert read_file(disk, name) == whole
        disk = disk.after_kill()


def test_an_index_of_which_a_crash_took_entries_is_replaced() -> None:
    """What follows the offset of the producer states is read again, and says it."""
    disk = moved()
    log = ended(opened(disk))
    every = log.aborted_among(b"".join(log.batches(0)))
    for from_offset in (0, 10, 26):
        log.replace_aborted(from_offset, [])
        assert [each for each in every if each.last_offset < from_offset] == list(
            log.aborted_among(b"".join(log.batches(0)))
        )
        log.replace_aborted(0, every)
        log.sync_aborted()
        log = opened(disk.after_kill())
        assert log.aborted_among(b"".join(log.batches(0))) == list(every)


def test_a_transactional_batch_without_a_producer_is_not_an_open_transaction() -> None:
    """No marker could end it: the cleaner would stop there for good."""
    partition = Partition()
    partition.in_transaction(-1, a=1)
    partition.in_transaction(7, b=2)
    assert all_outcomes(partition.disk, partition.log.segments).begun == ((1, 7),)
