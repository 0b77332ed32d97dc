"""Load tail: what is parsed on the loop is what a thread parses, and damage is reported."""

import random
from collections.abc import Iterator, Sequence
from itertools import chain
from uuid import UUID

import pytest

from broker.partitions import loading
from broker.partitions.load_progress import LoadProgress
from broker.partitions.loading import LOAD_READ_BYTES, SLICE_BYTES, PartitionLoad, Tail
from coordinator.group import CommittedOffset
from coordinator.image import LoadStart
from coordinator.loaded_record import LoadedRecord, StoredCommits
from coordinator.records import add_offset_commits
from coordinator.stored_commits import COMMITS_IN_C, loaded_records
from protocol.names import OFFSETS_TOPIC, GroupId, TopicName
from storage.api import Corrupt, LogSettings, RecordPair, TopicPartition
from storage.batch.record_batch import batch_offsets, encode_batch, records_count
from storage.log.partition_log import PartitionLog
from storage.snapshot import Snapshot
from tests.broker.partitions.test_ownership import MemoryLogs, a_snapshot
from tests.build import IS_COMPILED
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import NOW_MS, TOPIC_ID

FOLDER = f"/{OFFSETS_TOPIC}-0"
pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")


class CheckedLog(PartitionLog):
    """As the view of a journaled log: each checksum is checked."""

    def batches(self, from_offset: int, *, check: bool = True) -> Iterator[bytes]:
        return super().batches(from_offset, check=check)


def commits(number: int, partitions: int, base_offset: int) -> bytes:
    rows: list[RecordPair] = []
    found = {
        n: CommittedOffset(number * 1000 + n, 3, "", NOW_MS + number, -1, UUID(int=7))
        for n in range(partitions)
    }
    add_offset_commits(rows, GroupId(f"group-{number % 50}"), TopicName("orders"), found, 4)
    return encode_batch(rows, base_offset, NOW_MS + number)


def unusual(number: int, base_offset: int) -> bytes:
    """Tombstones of commits: the reader in C leaves them."""
    return encode_batch([(b"\0\1\0\1g\0\1t\0\0\0\1", None)] * (number % 3 + 1), base_offset, NOW_MS)


def log_of(dice: random.Random, count: int, *, share_unusual: float) -> PartitionLog:
    disk = SimulatedDisk()
    log = CheckedLog(
        disk, FOLDER, TopicPartition(OFFSETS_TOPIC, 0), LogSettings(segment_bytes=1 << 20)
    )
    log.create(TOPIC_ID)
    log.open(0)
    for number in range(count):
        at = log.log_end_offset + dice.choice((0, 0, 0, 0, 3))  # compaction leaves gaps
        if dice.random() < share_unusual:
            batch = unusual(number, at)
        else:
            batch = commits(number, dice.choice((1, 50)), at)
        _, last_offset, time_ms = batch_offsets(batch)
        log.append_placed([(batch, last_offset, time_ms)], time_ms)
    return log


def in_thread(log: PartitionLog) -> list[LoadedRecord]:
    tail = Tail(log, None, loaded_records)
    found: list[LoadedRecord] = []
    while tail.read_on():
        found += chain.from_iterable(tail.slices())
    return found


def on_loop(tail: Tail[LoadedRecord]) -> Iterator[list[LoadedRecord]]:
    """As `PartitionLoad` does it."""
    while tail.has_more and tail.read_next():
        yield from tail.slices()


def said(records: list[LoadedRecord]) -> list[object]:
    return [
        (each.group_id, each.topic, dict(each.commits.items()), each.timestamp_ms)
        if isinstance(each, StoredCommits)
        else each
        for each in records
    ]


@pytest.mark.parametrize("share_unusual", [0.0, 0.002, 0.3, 1.0])
def test_what_is_parsed_on_the_loop_is_what_the_thread_parses(share_unusual: float) -> None:
    log = log_of(random.Random(int(share_unusual * 1000)), 1_000, share_unusual=share_unusual)
    tail = Tail(log, None, loaded_records, COMMITS_IN_C)
    found = list(on_loop(tail))
    assert said(list(chain.from_iterable(found))) == said(in_thread(log))
    assert tail.next_offset == log.log_end_offset
    assert all(found)


def test_a_log_of_usual_batches_is_not_parsed_in_the_thread() -> None:
    log = log_of(random.Random(1), 500, share_unusual=0)
    assert log.size_bytes > 2 * LOAD_READ_BYTES

    def not_asked(_batch: bytes) -> list[LoadedRecord]:
        raise AssertionError("a usual batch")

    tail = Tail(log, None, not_asked, COMMITS_IN_C)
    slices = list(on_loop(tail))
    assert len(slices) >= log.size_bytes // (SLICE_BYTES * 2)
    assert tail.next_offset == log.log_end_offset


def test_the_slices_count_all_records_and_bytes() -> None:
    log = log_of(random.Random(2), 500, share_unusual=0.01)
    tail = Tail(log, None, loaded_records, COMMITS_IN_C)
    count = size = 0
    while tail.has_more and tail.read_next():
        for _ in tail.slices():
            pass
        count += tail.count
        size += tail.size
    batches = list(log.batches(0))
    assert size == sum(map(len, batches)) == log.size_bytes
    assert count == sum(map(records_count, batches))


@pytest.mark.parametrize("place", [0, 16, 20, 70, -1])
def test_damage_is_reported_as_by_the_thread(place: int) -> None:
    log = log_of(random.Random(3), 200, share_unusual=0)
    (segment,) = log.segments
    at = segment.position_of(log.log_end_offset // 2)
    size = 12 + int.from_bytes(segment.pread(at + 8, at + 12), "big")
    at += place % size
    file = segment.opened_file
    assert file is not None
    file.pwrite(bytes([segment.pread(at, at + 1)[0] ^ 0x55]), at)
    if place == 0:  # of the base offset, which no checksum covers
        return_to = said(in_thread(log))
        tail = Tail(log, None, loaded_records, COMMITS_IN_C)
        assert said(list(chain.from_iterable(on_loop(tail)))) == return_to
        return
    with pytest.raises(Corrupt) as by_thread:
        in_thread(log)
    with pytest.raises(Corrupt) as by_loop:
        list(on_loop(Tail(log, None, loaded_records, COMMITS_IN_C)))
    assert str(by_loop.value) == str(by_thread.value)


class Coordinator:
    """Notes who parses."""

    def __init__(self) -> None:
        self.parsed_by: list[str] = []
        self.commits = 0

    def records_of(self, batch: bytes) -> Sequence[LoadedRecord]:
        self.parsed_by.append("thread")
        return loaded_records(batch)

    def quick_records_of(self, batch: bytes) -> Sequence[LoadedRecord] | None:
        assert COMMITS_IN_C is not None
        self.parsed_by.append("loop")
        return COMMITS_IN_C(batch)

    def load_from(self, partition: int, load_start: LoadStart) -> None:
        self.commits = 0

    def load(self, partition: int, records: Sequence[LoadedRecord], next_offset: int) -> None:
        self.commits += sum(
            len(each.commits) for each in records if isinstance(each, StoredCommits)
        )


class CleanedWhileRead(MemoryLogs):
    """After the first load its snapshot is gone."""

    def stands(self, snapshot: Snapshot) -> bool:
        return self.snapshots.pop(0, None) is None


async def test_without_a_snapshot_one_version_of_the_segments_is_read() -> None:
    log, coordinator = log_of(random.Random(5), 300, share_unusual=0), Coordinator()
    logs = CleanedWhileRead([0])
    logs.snapshots[0] = a_snapshot(0)
    load = PartitionLoad(logs, coordinator, lambda _: None, LoadProgress(0))

    count = await load.run(0, log, lambda: True, use_snapshot=True)

    batches = len(list(log.batches(0)))
    assert coordinator.parsed_by == ["loop"] * batches + ["thread"] * batches
    assert coordinator.commits == log.log_end_offset - gaps_in(log)
    assert count == 2 * coordinator.commits


def gaps_in(log: PartitionLog) -> int:
    records = sum(records_count(batch) for batch in log.batches(0))
    return log.log_end_offset - records


def test_a_log_without_a_reader_in_c_is_parsed_in_the_thread() -> None:
    assert not Tail(log_of(random.Random(4), 1, share_unusual=0), None, loaded_records).may_be_quick
    assert loading.LEADING_BATCHES_IN_C is not None
