"""The store: partitions come back as they were, deleted ones do not, damaged ones stand aside."""

import random
from uuid import UUID

import pytest
from msgspec.structs import replace

from storage.api import Corrupt, LogClosed, LogSettings, TopicPartition
from storage.checkpoints import NO_TOPIC_ID, read_offsets
from storage.log_store import CLEAN_SHUTDOWN, LogStore
from storage.segment import TailCut
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import (
    DATA,
    NOW_MS,
    SMALL_SEGMENTS,
    TOPIC_ID,
    Rig,
    batch,
    keys_in,
    new_disk,
)

ORDERS = [TopicPartition("orders", number) for number in range(3)]
OTHER_ID = UUID(int=77)


def opened(disk: SimulatedDisk) -> LogStore:
    store = LogStore(disk, DATA)
    store.open()
    return store


def with_orders() -> tuple[SimulatedDisk, LogStore]:
    disk = new_disk()
    store = opened(disk)
    for key in ORDERS:
        log = store.create(key, TOPIC_ID, LogSettings())
        log.append(batch(f"{key.partition}-a", f"{key.partition}-b"), NOW_MS)
    return disk, store


def contents(store: LogStore) -> dict[TopicPartition, list[str]]:
    return {key: keys_in(list(log.batches(0))) for key, log in store.partitions().items()}


ALL_ORDERS = {key: [f"{key.partition}-a", f"{key.partition}-b"] for key in ORDERS}


def test_a_clean_stop_needs_no_scan() -> None:
    disk, store = with_orders()
    assert store.close() == []
    assert CLEAN_SHUTDOWN in disk.listdir(DATA)
    disk = disk.after_crash(random.Random(1))
    again = LogStore(disk, DATA)
    assert again.open() == (True, 3, (), (), ())
    assert CLEAN_SHUTDOWN not in disk.listdir(DATA)
    assert contents(again) == ALL_ORDERS
    assert all(log.topic_id == TOPIC_ID for log in again.partitions().values())
    # What is opened and not closed is not clean any more.
    assert not LogStore(disk.after_kill(), DATA).open().was_clean


def test_a_kill_loses_nothing_and_says_it_was_one() -> None:
    disk, _ = with_orders()
    again = LogStore(disk.after_kill(), DATA)
    assert again.open() == (False, 3, (), (), ())
    assert contents(again) == ALL_ORDERS


def test_a_torn_tail_is_reported() -> None:
    disk, _ = with_orders()
    path = f"{DATA}/orders-1/{0:020d}.log"
    size = disk.open(path).size()
    disk.open(path).truncate(size - 1)
    found = LogStore(disk, DATA).open()
    assert [repair[:3] for repair in found.repairs if isinstance(repair, TailCut)] == [
        (path, 0, size - 1)
    ]


def test_a_damaged_partition_stands_aside() -> None:
    disk, store = with_orders()
    assert store.close() == []
    disk.open(f"{DATA}/orders-1/{0:020d}.log").truncate(50)
    again = LogStore(disk, DATA)
    found = again.open()
    assert [damage.path for damage in found.damaged] == [f"{DATA}/orders-1/{0:020d}.log"]
    assert sorted(again.partitions()) == [ORDERS[0], ORDERS[2]]
    with pytest.raises(Corrupt):
        again.create(ORDERS[1], TOPIC_ID, LogSettings())


def test_creation_is_durable_once_synced() -> None:
    for seed in range(20):
        disk = new_disk()
        store = opened(disk)
        for key in ORDERS:
            store.create(key, TOPIC_ID, LogSettings())
        store.sync()
        operations = disk.operations
        store.sync()
        assert disk.operations == operations
        again = opened(disk.after_crash(random.Random(seed)))
        assert {key: log.topic_id for key, log in again.partitions().items()} == dict.fromkeys(
            ORDERS, TOPIC_ID
        )


def test_what_a_partition_flushed_survives_with_its_folder() -> None:
    for seed in range(20):
        disk, store = with_orders()
        store.partitions()[ORDERS[1]].flush()
        again = opened(disk.after_crash(random.Random(seed)))
        assert contents(again)[ORDERS[1]] == ["1-a", "1-b"]


def test_a_partition_is_created_once_and_adopted_when_its_id_was_lost() -> None:
    disk, store = with_orders()
    log = store.partition_log(ORDERS[0])
    settings = replace(LogSettings(), segment_bytes=1 << 20)
    assert store.create(ORDERS[0], TOPIC_ID, settings) is log
    assert store.partitions()[ORDERS[0]].settings == settings
    with pytest.raises(FileExistsError):
        store.create(ORDERS[0], OTHER_ID, settings)
    disk.remove(f"{DATA}/orders-0/partition.metadata")
    again = opened(disk.after_kill())
    assert again.partitions()[ORDERS[0]].topic_id == NO_TOPIC_ID
    assert again.create(ORDERS[0], TOPIC_ID, settings).topic_id == TOPIC_ID


def test_a_deleted_partition_is_gone_and_may_be_made_anew() -> None:
    disk, store = with_orders()
    log = store.partitions()[ORDERS[1]]
    store.delete(ORDERS[1])
    assert sorted(store.partitions()) == [ORDERS[0], ORDERS[2]]
    assert sorted(name for name in disk.listdir(DATA) if "orders" in name) == [
        "orders-0",
        "orders-2",
    ]
    with pytest.raises(LogClosed, match="deleted"):
        log.append(batch("late"), NOW_MS)
    assert store.create(ORDERS[1], OTHER_ID, LogSettings()).log_end_offset == 0


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start() -> None:
    for steps in range(1, 5):
        disk, store = with_orders()
        disk.cut_power_at = disk.operations + steps
        with pytest.raises(PowerCut):
            store.delete(ORDERS[1])
        again = disk.after_kill()
        assert sorted(opened(again).partitions()) == [ORDERS[0], ORDERS[2]]
        assert not any(name.endswith("-delete") for name in again.listdir(DATA))


def test_the_longest_topic_name_can_be_deleted() -> None:
    disk = new_disk()
    store = opened(disk)
    key = TopicPartition("t" * 249, 0)
    store.create(key, TOPIC_ID, LogSettings())
    disk.cut_power_at = disk.operations + 1
    with pytest.raises(PowerCut):
        store.delete(key)
    (grave,) = disk.listdir(DATA)
    assert len(grave) == 255
    assert grave.endswith(f".{TOPIC_ID.hex}-delete")


def test_log_starts_and_recovery_points_are_written_as_kafka_does() -> None:
    disk, store = with_orders()
    log = store.partitions()[ORDERS[2]]
    log.delete_before(1)
    log.flush()
    store.write_checkpoints()
    assert read_offsets(disk, f"{DATA}/log-start-offset-checkpoint") == {ORDERS[2]: 1}
    points = {ORDERS[0]: 0, ORDERS[1]: 0, ORDERS[2]: 2}
    assert read_offsets(disk, f"{DATA}/recovery-point-offset-checkpoint") == points
    again = opened(disk.after_crash(random.Random(4)))
    assert again.partitions()[ORDERS[2]].log_start_offset == 1
    assert again.partitions()[ORDERS[2]].log_end_offset == 2


def test_names_that_are_no_partitions_are_left_alone() -> None:
    disk = new_disk()
    for name in ("meta.properties", "orders-x", "orders-01", "orders-7"):
        disk.open(f"{DATA}/{name}", create=True)
    disk.make_dir(f"{DATA}/lost+found")
    store = opened(disk)
    assert store.partitions() == {}
    assert len(disk.listdir(DATA)) == 5


def test_a_stop_that_fails_is_not_called_clean() -> None:
    disk, store = with_orders()
    disk.fail_sync("orders-1/")
    failures = store.close()
    assert len(failures) == 1
    assert CLEAN_SHUTDOWN not in disk.listdir(DATA)
    disk, store = with_orders()
    disk.fail_sync("checkpoint")
    assert len(store.close()) == 1
    assert CLEAN_SHUTDOWN not in disk.listdir(DATA)


def test_what_was_deleted_before_an_offset_stays_deleted_after_a_crash() -> None:
    for seed in range(20):
        disk = new_disk()
        rig = Rig(disk)
        key = TopicPartition("orders", 0)
        log = rig.store.create(key, TOPIC_ID, SMALL_SEGMENTS)
        for number in range(10):
            log.append(batch(f"{number}", "x" * 900), NOW_MS)
        log.flush()
        assert log.delete_before(9) == 9
        again = rig.restarted_on(disk.after_crash(random.Random(seed)))
        left = again.store.partition_log(key)
        assert left is not None
        assert left.log_start_offset == 9
        with pytest.raises(IndexError):
            left.read(8, 1 << 20, up_to=20, at_least_one=True)


def test_a_log_start_that_cannot_be_written_down_does_not_move() -> None:
    disk = new_disk()
    rig = Rig(disk)
    log = rig.store.create(TopicPartition("orders", 0), TOPIC_ID, SMALL_SEGMENTS)
    log.append(batch("a", "b"), NOW_MS)
    disk.room = 0
    with pytest.raises(OSError, match="no space"):
        log.delete_before(1)
    assert log.log_start_offset == 0


def test_a_damaged_partition_can_be_deleted() -> None:
    disk = new_disk()
    rig = Rig(disk)
    key = TopicPartition("orders", 0)
    log = rig.store.create(key, TOPIC_ID, SMALL_SEGMENTS)
    log.append(batch("a", "b"), NOW_MS)
    rig.stop()
    path = f"{DATA}/orders-0/{0:020d}.log"
    disk.after_kill().open(path).pwrite(b"\x07", 16)
    left = disk.after_kill()
    again = rig.restarted_on(left)
    assert key in again.store.damaged
    again.store.delete(key)
    assert again.store.damaged == {}
    assert not [name for name in left.listdir(DATA) if name.startswith("orders")]
    again.store.create(key, TOPIC_ID, SMALL_SEGMENTS).append(batch("new"), NOW_MS)
