"""Log races: what another thread does to a log in the middle of a step, without threads.

The appender, the checkpointer, the sealed flush, retention and readers meet in one PartitionLog.
Each test lets one of them run at the point in another's step where the two would hurt each other.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.api import LogSettings, TopicPartition
from storage.batch.batch_walk import checked_batches, whole_batches
from storage.disk import File, RealDisk, RealFile
from storage.log.log_store import CLEAN_SHUTDOWN, LogStore
from storage.log.partition_log import PartitionLog
from storage.log.sealed_flush import SealedFlush
from storage.log.segment import Segment
from tests.simulator.disk import SimulatedDisk, SimulatedFile, _Inode
from tests.storage.rig import DATA, NOW_MS, TOPIC_ID, batch, keys_in, new_disk

KEY = TopicPartition("orders", 0)
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=64, retention_ms=1_000)


class MeddlingDisk(SimulatedDisk):
    """Lets others run right before a write to a file, or before a file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.before_write: Callable[[], None] | None = None
        self.before_open: Callable[[], None] | None = None
        self.make_dir(DATA)
        self.sync_dir("/")

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        meddle, self.before_open = self.before_open, None
        if meddle is not None:
            meddle()
        return super().open(path, create=create)

    def write(self, inode: _Inode, path: str, content: bytes, position: int) -> None:
        meddle, self.before_write = self.before_write, None
        if meddle is not None:
            meddle()
        super().write(inode, path, content, position)


def filled(disk: SimulatedDisk, count: int = 12) -> tuple[LogStore, PartitionLog]:
    """One record of about 80 bytes a batch: three to a segment."""
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    store.open()
    log = store.create(KEY, TOPIC_ID, SETTINGS)
    for number in range(count):
        log.append(batch(f"k{number}", timestamp_ms=NOW_MS + number), NOW_MS)
    return store, log


def test_what_is_written_during_a_flush_is_flushed_by_the_next_one() -> None:
    disk = MeddlingDisk()
    store, log = filled(disk, 1)
    disk.before_write = log.flush  # the checkpointer's thread, between two steps of the append
    log.append(batch("k1"), NOW_MS)
    log.flush()
    store.write_checkpoints()
    assert log.recovery_point == 2

    for seed in range(20):
        after = SimulatedDisk(disk.after_crash(random.Random(seed))._root)
        again = LogStore(after, DATA, lambda _: SETTINGS)
        assert again.open().damaged == ()
        assert keys_in(list(again.partitions()[KEY].batches(0))) == ["k0", "k1"]


def test_a_log_whose_fsync_failed_is_not_marked_as_closed_cleanly() -> None:
    disk = new_disk()
    store, log = filled(disk)
    store.create(TopicPartition("paid", 0), TOPIC_ID, SETTINGS).append(batch("p"), NOW_MS)
    disk.fail_sync("orders-0/")
    flush = SealedFlush(store, 0, lambda _key, _failure: None)
    store.rolled.add(log)
    flush.flush_due()
    assert not log.is_open

    assert [type(failure) for failure in store.close()] == [OSError]
    assert not disk.exists(f"{DATA}/{CLEAN_SHUTDOWN}")
    # All of the others is on the disk, and the next start knows it.
    after = LogStore(disk.after_crash(random.Random(1)), DATA, lambda _: SETTINGS)
    assert not after.open().was_clean
    assert keys_in(list(after.partitions()[TopicPartition("paid", 0)].batches(0))) == ["p"]


def test_a_look_up_by_time_goes_on_behind_what_retention_drops_at_this_moment() -> None:
    disk = MeddlingDisk()
    _, log = filled(disk)
    for segment in log.segments[:-1]:
        segment.release()
    disk.before_open = lambda: _retain_all_but_the_last(log)
    found = log.offset_for_timestamp(NOW_MS)
    assert found == (NOW_MS + 9, 9)
    assert log.log_start_offset == 9


def test_the_greatest_timestamp_is_searched_again_if_retention_drops_it() -> None:
    disk = MeddlingDisk()
    _, log = filled(disk)
    late = max(log.segments[:-1], key=lambda segment: segment.max_timestamp)
    late.max_timestamp, late.max_timestamp_offset = NOW_MS + 500, late.next_offset - 1
    late.release()
    disk.before_open = lambda: _retain_all_but_the_last(log)
    assert log.max_timestamp() == (NOW_MS + 11, 11)


def test_who_reads_a_log_through_goes_on_behind_what_retention_drops() -> None:
    disk = MeddlingDisk()
    _, log = filled(disk)
    for segment in log.segments[:-1]:
        segment.release()
    disk.before_open = lambda: _retain_all_but_the_last(log)
    assert keys_in(list(log.batches(0))) == ["k9", "k10", "k11"]


def test_the_start_has_moved_before_a_file_is_gone() -> None:
    disk = MeddlingDisk()
    _, log = filled(disk)
    seen: list[tuple[int, bool]] = []
    path = log.segments[0].path
    remove = disk.remove

    def watched(gone: str) -> None:
        if gone == path:
            seen.append((log.log_start_offset, disk.exists(path)))
        remove(gone)

    disk.remove = watched  # type: ignore[method-assign]
    _retain_all_but_the_last(log)
    assert seen == [(3, True)]


def _retain_all_but_the_last(log: PartitionLog) -> None:
    log.remove_oldest(lambda segment: segment is not log.segments[-1])


def test_a_shortage_of_memory_does_not_end_the_sealed_flush() -> None:
    disk = new_disk()
    store, log = filled(disk)
    failures: list[OSError] = []
    flush = SealedFlush(store, 0, lambda _, failure: failures.append(failure))
    store.rolled.add(log)
    sync = type(log).sync_sealed
    is_short = [True]

    def short_once(log: PartitionLog) -> bool:
        if is_short and is_short.pop():
            raise MemoryError
        return sync(log)

    PartitionLog.sync_sealed = short_once  # type: ignore[method-assign]
    try:
        flush.flush_due()
        assert log.recovery_point == 0
        flush.flush_due()
    finally:
        PartitionLog.sync_sealed = sync  # type: ignore[method-assign]
    assert log.recovery_point == log.segments[-1].base_offset
    assert failures == []


def test_a_topic_deleted_during_its_sealed_flush_is_no_failure() -> None:
    disk = MeddlingDisk()
    store, log = filled(disk)
    for segment in log.segments[:-1]:
        segment.release()
    failures: list[OSError] = []
    flush = SealedFlush(store, 0, lambda _, failure: failures.append(failure))
    store.rolled.add(log)
    disk.before_open = lambda: store.delete(KEY)
    flush.flush_due()
    assert not log.is_open
    assert failures == []


# Closing a file lets other threads run.


class MeddlingFile(RealFile):
    """Lets others run while it is closed."""

    def __init__(self, path: str, before_close: Callable[[], object]) -> None:
        super().__init__(os.open(path, os.O_RDWR | os.O_CLOEXEC), path)
        self.before_close: Callable[[], object] | None = before_close

    def close(self) -> None:
        meddle, self.before_close = self.before_close, None
        if meddle is not None:
            meddle()
        super().close()


def real_segment(folder: Path, base_offset: int) -> Segment:
    """Five batches on the real disk."""
    segment = Segment(RealDisk(), str(folder), base_offset, 64)
    segment.create()
    for offset in range(base_offset, base_offset + 5):
        segment.append([(batch("k", base_offset=offset), offset, NOW_MS)])
    return segment


def test_nobody_finds_a_file_that_is_being_closed(tmp_path: Path) -> None:
    segment = real_segment(tmp_path, 0)
    found: list[File | None] = []
    segment._file = MeddlingFile(segment.path, lambda: found.append(segment.opened_file))
    segment.release()
    segment._pinned = MeddlingFile(segment.path, lambda: found.append(segment.opened_file))
    segment.unpin()
    assert found == [None, None]


Walk = Callable[[Segment, File], Iterator[object]]


@pytest.mark.parametrize(
    "walk",
    [
        lambda segment, file: segment.headers(0, segment.size, file),
        lambda segment, file: whole_batches(file, 0, segment.size),
        lambda segment, file: checked_batches(file, 0, segment.size),
    ],
)
def test_who_begins_to_read_while_a_readers_file_is_closed_reads_all(
    tmp_path: Path, walk: Walk
) -> None:
    """The reader was the last to hold it; the two may be of different logs."""
    segment, other = real_segment(tmp_path, 0), real_segment(tmp_path, 100)
    begun: list[Iterator[object]] = []

    def begin() -> None:
        begun.append(walk(other, RealDisk().open(other.path)))
        next(begun[0])

    reader = walk(segment, MeddlingFile(segment.path, begin))
    next(reader)
    del reader
    assert len(list(begun[0])) == 4
