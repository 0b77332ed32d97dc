"""Sealed segments are synced without anybody asking: a kill leaves little to scan or to lose."""

import errno
import random
import threading
from collections.abc import Callable

import pytest

from storage.api import LogClosed, LogSettings, SyncFailed, TopicPartition
from storage.batch.record_batch import HEADER_BYTES
from storage.log.checkpoints import RECOVERY_POINTS, read_offsets
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.sealed_flush import SealedFlush
from storage.log.segment import Segment
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import (
    DATA,
    NOW_MS,
    OFFSETS,
    SMALL_SEGMENTS,
    TOPIC_ID,
    Rig,
    batch,
    keys_in,
    new_disk,
    records,
)

KEY = TopicPartition("orders", 0)
FOLDER = f"{DATA}/orders-0"
SETTINGS = LogSettings(segment_bytes=800, index_interval_bytes=64)


class World:
    """A topic of five segments with ten records each, and its sealed flush."""

    def __init__(self, *, interval_ms: int = 0) -> None:
        self.disk = new_disk()
        self.store = LogStore(self.disk, DATA, lambda _: SETTINGS)
        self.store.open()
        self.log = self.store.create(KEY, TOPIC_ID, SETTINGS)
        self.failures: list[tuple[TopicPartition | None, OSError]] = []
        self.flush = SealedFlush(
            self.store, interval_ms, lambda key, failure: self.failures.append((key, failure))
        )

    def fill(self, count: int = 50) -> list[str]:
        names = [f"k{number:03}" for number in range(count)]
        for name in names:
            self.log.append(batch(name), NOW_MS)
        assert len(self.log.segments) > 4
        return names

    @property
    def known(self) -> int:
        return read_offsets(self.disk, f"{DATA}/{RECOVERY_POINTS}").get(KEY, 0)


def started(disk: SimulatedDisk) -> tuple[LogStore, list[str]]:
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    assert not store.open().damaged
    return store, keys_in(list(store.partitions()[KEY].batches(0)))


def test_a_kill_leaves_the_active_segment_alone_to_scan() -> None:
    world = World()
    names = world.fill()
    world.flush.flush_due()
    active = world.log.segments[-1].base_offset
    assert world.log.recovery_point == world.known == active
    assert not any(segment.is_dirty for segment in world.log.segments[:-1])

    # The case: a bad byte in the first of five sealed segments.
    disk = world.disk.after_kill()
    disk.open(f"{FOLDER}/{0:020d}.log").pwrite(b"?", HEADER_BYTES + 5)
    store, found = started(disk)
    assert found[1:] == names[1:]
    log = store.partition_log(KEY)
    assert log is not None
    assert log.repairs == []
    # And a power failure takes nothing from them.
    for seed in range(10):
        world = World()
        names = world.fill()
        world.flush.flush_due()
        _, found = started(world.disk.after_crash(random.Random(seed)))
        assert found[: world.known] == names[: world.known]


def test_there_is_nothing_to_do_twice_and_nothing_before_the_first_roll() -> None:
    world = World()
    world.log.append(batch("a"), NOW_MS)
    operations = world.disk.operations
    world.flush.flush_due()
    assert world.disk.operations == operations
    world.fill()
    world.flush.flush_due()
    operations = world.disk.operations
    world.flush.flush_due()
    world.store.rolled.add(world.log)
    world.flush.flush_due()
    assert world.disk.operations == operations


def test_the_checkpoint_waits_for_its_interval() -> None:
    world = World(interval_ms=3_600_000)
    world.fill()
    world.flush.flush_due()
    assert world.log.recovery_point > 0
    assert world.known == 0


def test_what_the_journal_writes_is_left_to_its_checkpoints() -> None:
    rig = Rig(new_disk(), SMALL_SEGMENTS)
    log = rig.log()
    for number in range(60):
        log.append(records(f"{number}a", f"{number}b"), NOW_MS)
        rig.journal.pump()
    partition_log = rig.store.partition_log(TopicPartition(OFFSETS, 0))
    assert partition_log in rig.store.rolled
    point = partition_log.recovery_point
    SealedFlush(rig.store, 0, lambda *_: None).flush_due()
    assert partition_log.recovery_point == point


def test_a_failed_fsync_is_reported_and_closes_the_log() -> None:
    world = World()
    world.fill()
    world.disk.fail_sync(f"{FOLDER}/{0:020d}.log")
    world.flush.flush_due()
    ((key, failure),) = world.failures
    assert key == KEY
    assert isinstance(failure, SyncFailed)
    with pytest.raises(LogClosed):
        world.log.append(batch("next"), NOW_MS)
    world.flush.flush_due()  # and it is not asked again
    assert len(world.failures) == 1
    assert world.log.recovery_point == 0


def test_a_shortage_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.fill()
    sync = Segment.sync

    def lacking(segment: Segment) -> None:
        raise OSError(errno.EMFILE, "too many open files", segment.path)

    monkeypatch.setattr(Segment, "sync", lacking)
    world.flush.flush_due()
    assert (world.failures, world.log.recovery_point) == ([], 0)
    monkeypatch.setattr(Segment, "sync", sync)
    world.flush.flush_due()
    assert world.log.recovery_point == world.log.segments[-1].base_offset


def while_the_first_sync_runs(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]
) -> bool:
    """Sync the sealed segments in a thread, and act when its first fsync has begun."""
    begun, go_on = threading.Event(), threading.Event()
    sync = Segment.sync
    is_done: list[bool] = []

    def slow(segment: Segment) -> None:
        begun.set()
        assert go_on.wait(60)
        sync(segment)

    monkeypatch.setattr(Segment, "sync", slow)
    thread = threading.Thread(target=lambda: is_done.append(log.sync_sealed()))
    thread.start()
    assert begun.wait(60)
    monkeypatch.setattr(Segment, "sync", sync)
    act()
    go_on.set()
    thread.join(60)
    return is_done == [True]


def test_appends_and_rolls_do_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.fill()
    active = world.log.segments[-1].base_offset

    def append() -> None:
        for number in range(30):
            world.log.append(batch(f"more{number}"), NOW_MS)

    assert while_the_first_sync_runs(world.log, monkeypatch, append)
    assert world.log.segments[-1].base_offset > active
    assert world.log.recovery_point == active


def test_a_flush_meanwhile_does_not_take_an_fsync_that_runs_for_one_that_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.fill()
    flushed: list[int] = []
    flushing = threading.Thread(
        target=lambda: (world.log.flush(), flushed.append(world.log.recovery_point))
    )

    def flush_too() -> None:
        flushing.start()
        flushing.join(0.05)
        assert flushed == []
        assert world.log.recovery_point == 0

    assert while_the_first_sync_runs(world.log, monkeypatch, flush_too)
    flushing.join(60)
    assert flushed == [50]


def test_a_segment_that_retention_drops_meanwhile_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.fill()
    for segment in world.log.segments:
        segment.release()
    assert while_the_first_sync_runs(
        world.log, monkeypatch, lambda: world.log.delete_before(15) and None
    )
    assert world.log.is_open
    assert world.log.recovery_point == world.log.segments[-1].base_offset
