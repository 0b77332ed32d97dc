"""Cleaner crashes: a pass and its swap, stopped before every operation; the log stays whole.

Before each write, rename, sync and removal the power is cut (of what was not synced some survives,
by seed) or the process is killed (all of it does). The next start must find a log that says the
same: the newest value of each key, the same end, no file that is half of something. It may be cut
down in its turn. A pass after that comes to the same end as one that nobody disturbed.
"""

import copy
import random
from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest
from msgspec.structs import replace

from storage.api import LogSettings, Record, TopicPartition
from storage.batch.record_batch import encode_batch, iter_batches, read_records
from storage.cleaner.cleaner import (
    inspect_log,
    plan_pass,
    read_clean_offsets,
    swap_in_pass,
    write_clean_offsets,
)
from storage.cleaner.cleaner_pass import run_pass
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import remove_deleted
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.cleaner.rig import FOLDER, KEY, SETTINGS
from tests.storage.rig import DATA, NOW_MS, TOPIC_ID, new_disk

SMALL: LogSettings = replace(SETTINGS, segment_bytes=900, min_cleanable_dirty_ratio=0.0)
HORIZON_MS = NOW_MS + SMALL.delete_retention_ms
SEEDS = (1, 2)
KEYS = [f"key-{number}" for number in range(12)]
DELETED = KEYS[:2]


def opened(disk: SimulatedDisk) -> tuple[LogStore, PartitionLog]:
    store = LogStore(disk, DATA, lambda _: SMALL)
    found = store.open()
    assert found.damaged == ()
    log = store.partition_log(KEY)
    assert log is not None
    return store, log


def write(log: PartitionLog, seed: int, keys: list[str] = KEYS, *deleted: str) -> None:
    """Some batches of these keys, then tombstones of others."""
    dice = random.Random(seed)
    for number in range(30):
        append(
            log,
            {
                key: None if dice.random() < 0.2 else f"{number}-{key}-{'x' * dice.randrange(20)}"
                for key in dice.sample(keys, dice.randint(1, 3))
            },
        )
    append(log, dict.fromkeys(deleted))
    log.roll()


def append(log: PartitionLog, values: Mapping[str, str | None]) -> None:
    if values:
        base, end = log.log_end_offset, log.log_end_offset + len(values)
        records = [
            Record(key.encode(), None if value is None else value.encode())
            for key, value in values.items()
        ]
        log.append_placed([(encode_batch(records, base, NOW_MS + base), end - 1, NOW_MS)], NOW_MS)


def prepared() -> SimulatedDisk:
    """A log that was cleaned once, so that its tombstones have horizons, and is dirty again."""
    disk = new_disk()
    store = LogStore(disk, DATA, lambda _: SMALL)
    store.open()
    log = store.create(KEY, TOPIC_ID, SMALL)
    write(log, 1, KEYS, *DELETED)
    log.flush()
    store.write_checkpoints()
    clean(disk, store, log, NOW_MS)
    write(log, 2, KEYS[2:])
    log.flush()
    store.write_checkpoints()
    return disk


def clean(disk: SimulatedDisk, store: LogStore, log: PartitionLog, now_ms: int) -> None:
    """As the daemon does it, in one thread."""
    offsets = read_clean_offsets(disk, DATA)
    found = inspect_log(
        log, checkpoint=offsets.get(KEY), stable_to=store.durable_to(log), now_ms=now_ms
    ).found
    job = plan_pass(log, found, stable_to=store.durable_to(log), now_ms=now_ms, producers={})
    result = run_pass(disk, job)
    replaced = swap_in_pass(disk, log, result)
    write_clean_offsets(disk, DATA, {KEY: result.end_offset})
    remove_deleted(disk, log, replaced)


def values(log: PartitionLog) -> dict[str, str]:
    """What a reader from the start makes of the log."""
    found: dict[str, str] = {}
    previous = -1
    for batch in log.batches(0):
        for offset, _, key, value, _ in read_records(batch):
            assert offset > previous, "offsets rise"
            previous = offset
            assert key is not None
            if value is None:
                found.pop(key.decode(), None)
            else:
                found[key.decode()] = value.decode()
    return found


def check(disk: SimulatedDisk, expected: dict[str, str], end: int) -> None:
    _, log = opened(disk)
    assert values(log) == expected
    assert log.log_end_offset == end
    assert not [name for name in disk.listdir(FOLDER) if name.count(".") > 1]
    for segment in log.segments[:-1]:
        for _, _ in iter_batches(segment.pread(0, segment.size)):
            pass
        assert log.read(segment.base_offset, 1, up_to=log.log_end_offset, at_least_one=True), (
            "readable from each segment's begin"
        )


@pytest.fixture(scope="module")
def start() -> SimulatedDisk:
    return prepared()


def crash_points(start: SimulatedDisk) -> Iterator[int]:
    disk = copy.deepcopy(start)
    store, log = opened(disk)
    before = disk.operations
    clean(disk, store, log, HORIZON_MS)
    yield from range(disk.operations - before)


def stopped_at(start: SimulatedDisk, point: int) -> SimulatedDisk:
    disk = copy.deepcopy(start)
    store, log = opened(disk)
    disk.cut_power_at = disk.operations + point
    with pytest.raises(PowerCut):
        clean(disk, store, log, HORIZON_MS)
    return disk


def test_there_is_something_to_stop_at(start: SimulatedDisk) -> None:
    disk = copy.deepcopy(start)
    store, log = opened(disk)
    segments, size = len(log.segments), log.size_bytes
    clean(disk, store, log, HORIZON_MS)
    assert len(log.segments) < segments
    assert log.size_bytes < size / 2
    assert len(list(crash_points(start))) > 50


def test_after_a_crash_at_any_point_the_log_says_the_same(start: SimulatedDisk) -> None:
    _, log = opened(copy.deepcopy(start))
    expected, end = values(log), log.log_end_offset
    undisturbed = copy.deepcopy(start)
    store, log = opened(undisturbed)
    clean(undisturbed, store, log, HORIZON_MS)
    final = list(log.batches(0))
    for point in crash_points(start):
        stopped = stopped_at(start, point)
        disks = [copy.deepcopy(stopped).after_crash(random.Random(seed)) for seed in SEEDS]
        for disk in [*disks, stopped.after_kill()]:
            check(disk, expected, end)
            store, log = opened(disk)
            log.flush()
            store.write_checkpoints()
            clean(disk, store, log, HORIZON_MS)
            assert values(log) == expected, point
            assert [batch[:8] for batch in log.batches(0)] == [batch[:8] for batch in final], point


def test_a_start_that_ends_a_swap_may_be_cut_down_as_well(start: SimulatedDisk) -> None:
    _, log = opened(copy.deepcopy(start))
    expected, end = values(log), log.log_end_offset
    completed = 0
    for point in crash_points(start):
        stopped = stopped_at(start, point)
        left = stopped.after_kill()
        if not any(name.endswith(".swap") for name in left.listdir(FOLDER)):
            continue
        probe = copy.deepcopy(left)
        before = probe.operations
        opened(probe)
        for step in range(point % 3, probe.operations - before, 3):
            disk = copy.deepcopy(left)
            disk.cut_power_at = disk.operations + step
            with pytest.raises(PowerCut):
                opened(disk)
            check(disk.after_crash(random.Random(step)), expected, end)
            completed += 1
    assert completed > 20


def test_a_tombstone_never_goes_before_the_value_that_it_deletes(start: SimulatedDisk) -> None:
    """Were the groups swapped in another order, a crash in between would bring values back."""
    for point in crash_points(start):
        disk = stopped_at(start, point).after_kill()
        assert not set(DELETED) & values(opened(disk)[1]).keys(), point


def test_what_a_real_kafka_has_left_half_done_is_completed_too() -> None:
    """Its `.swap` files, from a swap and from a split; its `.cleaned` and `.deleted` ones."""
    disk = prepared()
    _, log = opened(disk)
    expected, end = values(log), log.log_end_offset
    first, second = next(
        pair for pair in pairwise(log.segments[:-1]) if pair[0].size and pair[1].size
    )

    def put(name: str, content: bytes) -> None:
        file = disk.open(f"{FOLDER}/{name}", create=True)
        file.truncate(0)
        file.pwrite(content, 0)

    both = first.pread(0, first.size) + second.pread(0, second.size)
    put(f"{first.base_offset:020d}.log.swap", both)  # as good as compacted: sources not deleted yet
    put(f"{second.base_offset:020d}.log.deleted", b"old")
    put(f"{end + 100:020d}.index.cleaned", b"half")
    check(disk, expected, end)
    _, log = opened(disk)
    assert len(both) in [segment.size for segment in log.segments]
    assert second.base_offset not in {segment.base_offset for segment in log.segments}

    put(f"{first.base_offset:020d}.log.cleaned", both[:100])  # of a split: nothing was decided
    put(f"{second.base_offset:020d}.log.swap", second.pread(0, 0) + both[first.size :])
    check(disk, expected, end)


def test_another_partition_is_not_touched() -> None:
    disk = prepared()
    store, log = opened(disk)
    other = store.create(TopicPartition("other", 0), TOPIC_ID, SMALL)
    write(other, 3)
    other.flush()
    before = disk.listdir(f"{DATA}/other-0")
    clean(disk, store, log, HORIZON_MS)
    assert disk.listdir(f"{DATA}/other-0") == before
