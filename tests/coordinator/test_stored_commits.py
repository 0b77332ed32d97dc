"""Stored commits: a batch read as a whole says what its records say one by one, damaged or not."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group import CommittedOffset
from coordinator.loaded_record import LoadedRecord, StoredCommits
from coordinator.records import (
    OFFSET_COMMIT,
    UnreadableRecord,
    add_offset_commits,
    add_offset_tombstones,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from coordinator.stored_commits import RUN_RECORDS_MAX, loaded_records, records_in_python
from protocol.compiled_codec import function_in_c
from protocol.names import GroupId, TopicName
from storage.api import RecordPair, StoredRecord
from storage.batch.control_batch import logged_records
from storage.batch.record_batch import HEADER_BYTES, InvalidBatch, encode_batch
from tests.build import IS_COMPILED

AT_MS = 1_790_000_000_000

names = st.sampled_from(("", "g", "group-1", "group-2", "x" * 40, "y" * 58, "é" * 30))
topic_ids = st.sampled_from((UUID(int=0), UUID(int=5), UUID(int=1 << 90)))


def commit(
    offset: int, topic_id: UUID, metadata: str = "", expire_at_ms: int = -1
) -> CommittedOffset:
    return CommittedOffset(offset, 3, metadata, AT_MS, expire_at_ms, topic_id)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    rows: list[RecordPair] = []
    for _ in range(draw(st.integers(1, 4))):
        group_id, topic = GroupId(draw(names)), TopicName(draw(names))
        topic_id = draw(topic_ids)
        count, first = draw(st.sampled_from((1, 2, 3, 70, 140))), draw(st.sampled_from((0, 300)))
        metadata = draw(st.sampled_from(("", "", "", "note")))
        expire_at_ms = draw(st.sampled_from((-1, -1, -1, AT_MS)))
        commits = {
            first + n: commit(draw(st.integers(-1, 1 << 62)) + n, topic_id, metadata, expire_at_ms)
            for n in range(count)
        }
        version = draw(st.sampled_from((4, 4, 4, 3)))
        if draw(st.integers(0, 5)):
            add_offset_commits(rows, group_id, topic, commits, version)
        else:
            add_offset_tombstones(rows, group_id, topic, commits)
    return encode_batch(rows, draw(st.sampled_from((0, 7, 1 << 40))), AT_MS, 2)


Adjacent = dict[tuple[str, str, int], CommittedOffset]


def one_by_one(records: list[LoadedRecord]) -> list[Adjacent | StoredRecord]:
    """Each commit by itself, of adjacent ones the last for a partition; the rest as it is."""
    rows: list[Adjacent | StoredRecord] = []

    def add(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        adjacent = rows[-1] if rows else None
        if not isinstance(adjacent, dict):
            adjacent = {}
            rows.append(adjacent)
        adjacent[group_id, topic, partition] = committed

    for record in records:
        if isinstance(record, StoredCommits):
            for partition, committed in record.commits.items():
                add(record.group_id, record.topic, partition, committed)
            assert record.timestamp_ms == AT_MS
            continue
        assert isinstance(record, StoredRecord)
        if record_type(record.key) == OFFSET_COMMIT and record.value is not None:
            assert record.key is not None
            add(*read_offset_key(record.key), read_offset_commit_value(record.value))
        else:
            rows.append(record)
    return rows


@given(batches())
def test_a_batch_says_what_its_records_say(batch: bytes) -> None:
    assert one_by_one(list(loaded_records(batch))) == one_by_one(list(logged_records(batch)))


@given(batches(), st.data())
def test_a_damaged_batch_is_read_as_its_records_are(batch: bytes, data: st.DataObject) -> None:
    damaged = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    assert outcome(loaded_records, bytes(damaged)) == outcome(logged_records, bytes(damaged))


@pytest.mark.parametrize("name", ["g", "x" * 58, "y" * 600])
def test_every_byte_of_a_batch_of_one_commit_counts(name: str) -> None:
    rows: list[RecordPair] = []
    add_offset_commits(rows, GroupId(name), TopicName("orders"), {3: commit(9, UUID(int=5))}, 4)
    batch = encode_batch(rows, 0, AT_MS)
    assert len(loaded_records(batch)) == 1
    assert isinstance(loaded_records(batch)[0], StoredCommits)
    for at in range(HEADER_BYTES, len(batch)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, batch[at] ^ 1, batch[at] ^ 0x40):
            damaged = batch[:at] + bytes((value,)) + batch[at + 1 :]
            assert outcome(loaded_records, damaged) == outcome(logged_records, damaged), at
    shorter = bytearray(batch[:-1])
    shorter[8:12] = (len(shorter) - 12).to_bytes(4, "big")
    longer = bytearray(batch + b"\x00")
    longer[8:12] = (len(longer) - 12).to_bytes(4, "big")
    for other in (bytes(shorter), bytes(longer)):
        assert outcome(loaded_records, other) == outcome(logged_records, other)


@pytest.mark.parametrize("records", [b"\x00\x00", b"\x02\x00", b"\x04\x00\x00", b"\x54" * 43])
def test_records_too_short_for_a_commit_are_invalid(records: bytes) -> None:
    batch = bytearray(encode_batch([(b"k", b"v")], 0, AT_MS, 2)[:HEADER_BYTES] + records)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    with pytest.raises(InvalidBatch):
        loaded_records(bytes(batch))


def outcome(read: object, batch: bytes) -> object:
    assert callable(read)
    try:
        return one_by_one(list(read(batch)))
    except (InvalidBatch, UnreadableRecord, AssertionError) as refused:
        return type(refused)


def test_commits_of_one_topic_are_read_as_one() -> None:
    rows: list[RecordPair] = []
    commits = {
        partition: commit(partition * 7, UUID(int=9))
        for partition in range(64 + RUN_RECORDS_MAX + 1)
    }
    add_offset_commits(rows, GroupId("group"), TopicName("orders"), commits, 4)
    batch = encode_batch(rows, 0, AT_MS)
    found = records_in_python(batch)
    assert all(isinstance(each, StoredCommits) for each in found)
    assert len(found) == 3, "offsets of one byte, offsets of two, and what is over the limit"
    assert one_by_one(list(loaded_records(batch))) == one_by_one(list(found))


@pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 8_191, 8_192, 8_193])
def test_usual_batches_are_read_in_c(count: int) -> None:
    read_in_c = function_in_c("read_commits")
    assert read_in_c is not None
    rows: list[RecordPair] = []
    for group in ("group-1", "é" * 100, "group-1"):
        commits = {n: commit(n << 40, UUID(int=1 + n % 2)) for n in range(count)}
        add_offset_commits(rows, GroupId(group), TopicName("orders"), commits, 4)
    batch = encode_batch(rows, 7, AT_MS)

    found = read_in_c(batch)

    assert [(each.group_id, each.topic) for each in found] == [
        ("group-1", "orders"), ("é" * 100, "orders"), ("group-1", "orders")
    ]  # fmt: skip
    assert one_by_one(found) == one_by_one(list(logged_records(batch)))


@pytest.mark.parametrize("topics", [("aa", "bb"), ("a", "bbb")])
def test_topics_of_one_batch_are_kept_apart(topics: tuple[str, str]) -> None:
    rows: list[RecordPair] = []
    for topic in topics:
        commits = {0: commit(1, UUID(int=1)), 1: commit(2, UUID(int=1))}
        add_offset_commits(rows, GroupId("group"), TopicName(topic), commits, 4)
    found = loaded_records(encode_batch(rows, 0, AT_MS))
    assert [each.topic for each in found if isinstance(each, StoredCommits)] == list(topics)
