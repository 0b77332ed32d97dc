"""Control batches: markers and transactional batches have the bytes of Kafka's own classes."""

from storage.api import (
    BatchProducer,
    EndMarker,
    StoredMarker,
    StoredRecord,
    TopicPartition,
    TransactionalRecord,
)
from storage.batch.control_batch import encode_marker, logged_records, read_marker
from storage.batch.record_batch import CONTROL_FLAG, encode_batch, read_header
from storage.journal.journaled_log import Entry, JournaledLog
from tests.storage.rig import OFFSETS, Rig, new_disk, records

AT_MS = 1_700_000_000_000
PRODUCER = BatchProducer(7001, 5)

# MemoryRecords.withEndTransactionMarker(41, AT_MS, 3, 7001, 5, EndTransactionMarker(type, 9))
ABORT_MARKER = bytes.fromhex(
    "00000000000000290000004200000003022f1ff5c10030000000000000018bcfe568000000018bcfe568000000"
    "000000001b590005ffffffff000000012000000008000000000c00000000000900"
)
COMMIT_MARKER = bytes.fromhex(
    "0000000000000029000000420000000302db2123890030000000000000018bcfe568000000018bcfe568000000"
    "000000001b590005ffffffff000000012000000008000000010c00000000000900"
)
# MemoryRecords.builder(..., 40, AT_MS, 7001, 5, 0, isTransactional, 3)
DATA = bytes.fromhex(
    "00000000000000280000004f0000000302bbbc18e10010000000010000018bcfe568000000018bcfe568000000"
    "000000001b59000500000000000000021c0000000a6b65792d61066f6e65001c0000020a6b65792d620674776f"
    "00"
)


def marker(*, is_commit: bool) -> EndMarker:
    return EndMarker(*PRODUCER, is_commit, 9)


class Queue:
    """An append queue that keeps what it gets."""

    term = 0

    def __init__(self) -> None:
        self.batches: list[bytes] = []

    def enqueue(self, entry: Entry, _term: int) -> None:
        self.batches.append(entry[1])


def test_markers_have_kafkas_bytes() -> None:
    assert encode_marker(marker(is_commit=False), 41, AT_MS, 3) == ABORT_MARKER
    assert encode_marker(marker(is_commit=True), 41, AT_MS, 3) == COMMIT_MARKER


def test_a_marker_is_read_back() -> None:
    for batch, is_commit in ((ABORT_MARKER, False), (COMMIT_MARKER, True)):
        assert read_marker(batch, read_header(batch)) == marker(is_commit=is_commit)
        assert logged_records(batch) == [StoredMarker(41, AT_MS, marker(is_commit=is_commit))]


def test_a_transactional_batch_is_read_with_its_producer() -> None:
    assert logged_records(DATA) == [
        TransactionalRecord(40, AT_MS, b"key-a", b"one", *PRODUCER, 0),
        TransactionalRecord(41, AT_MS, b"key-b", b"two", *PRODUCER, 1),
    ]


def test_other_batches_are_plain_records_or_say_nothing() -> None:
    plain = encode_batch([(b"k", b"v")], 3, AT_MS)
    assert logged_records(plain) == [StoredRecord(3, AT_MS, b"k", b"v")]
    leader_change = encode_batch([(b"\0\0\0\2", b"\0\0")], 3, AT_MS, attributes=CONTROL_FLAG)
    assert logged_records(leader_change) == []


def test_the_log_of_a_shard_appends_kafkas_bytes() -> None:
    rig = Rig(new_disk())
    log, queue = rig.log(), Queue()
    shard_log = JournaledLog(queue, log.partition_log)  # type: ignore[arg-type]
    shard_log.end_position, shard_log.leader_epoch = 40, 3
    assert shard_log.append([(b"key-a", b"one"), (b"key-b", b"two")], AT_MS, PRODUCER) == 42
    shard_log.end_position = 41
    assert shard_log.append_marker(marker(is_commit=True), AT_MS) == 42
    assert queue.batches == [DATA, COMMIT_MARKER]


def test_transactions_go_through_the_journal_like_any_other_batch() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    assert log.append(records("a", "b"), AT_MS, PRODUCER) == 2
    assert log.append_marker(marker(is_commit=True), AT_MS) == 3
    assert rig.journal.pump()
    assert rig.stored[-1] == (TopicPartition(OFFSETS, 0), 3)
    (view,) = rig.store.partitions().values()
    read = [record for batch in view.batches(0) for record in logged_records(batch)]
    assert [type(record) for record in read] == [
        TransactionalRecord,
        TransactionalRecord,
        StoredMarker,
    ]
