"""The store: partitions come back as they were, deleted ones do not, damaged ones stand aside."""

import random
from uuid import UUID

import pytest
from msgspec.structs import replace

from storage.api import Corrupt, LogClosed, LogSettings, TopicPartition
from storage.log.checkpoints import (
    CLEAN_OFFSETS,
    LOG_STARTS,
    NO_TOPIC_ID,
    RECOVERY_POINTS,
    read_offsets,
)
from storage.log.log_store import CLEAN_SHUTDOWN, LogStore
from storage.log.segment import TailCut
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


def test_a_deleted_partition_is_gone_and_may_be_recreated() -> None:
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


def test_a_log_of_an_earlier_name_begins_at_its_own_beginning() -> None:
    """Wherever the power goes: the old log's start, recovery point and clean offset are not its."""
    key = ORDERS[1]
    lines = (RECOVERY_POINTS, LOG_STARTS, CLEAN_OFFSETS)
    steps, is_done = 0, False
    while not is_done:
        disk, store = with_orders()
        old = store.partition_log(key)
        assert old is not None
        old.flush()
        old.delete_before(1)
        store.write_checkpoints()
        store.set_clean_offsets({old: 1})
        assert all(key in read_offsets(disk, f"{DATA}/{name}") for name in lines)

        disk.cut_power_at = disk.operations + steps
        try:
            store.delete(key)
            store.create(key, OTHER_ID, LogSettings()).append(batch("new"), NOW_MS)
            is_done = True
        except PowerCut:
            pass
        for left in (disk.after_crash(random.Random(steps)), disk.after_kill()):
            again = opened(left)
            log = again.partition_log(key)
            if log is None or log.topic_id != OTHER_ID:
                # Not made yet, or its id was lost with the power: the old one, or nothing.
                again.delete(*([] if log is None else [key]))
                log = again.create(key, OTHER_ID, LogSettings())
                log.append(batch("new"), NOW_MS)
            assert log.log_start_offset == 0
            assert keys_in(list(log.batches(0))) in (["new"], [])
            assert not any(key in read_offsets(left, f"{DATA}/{name}") for name in lines)
        steps += 1
    assert steps > 8


def test_what_a_cleaner_says_of_a_log_that_was_deleted_is_not_taken_for_the_next() -> None:
    disk, store = with_orders()
    old = store.partition_log(ORDERS[0])
    assert old is not None
    store.delete(ORDERS[0])
    new = store.create(ORDERS[0], OTHER_ID, LogSettings())
    store.set_clean_offsets({old: 2})
    assert read_offsets(disk, f"{DATA}/{CLEAN_OFFSETS}") == {}
    store.set_clean_offsets({new: 0})
    assert read_offsets(disk, f"{DATA}/{CLEAN_OFFSETS}") == {ORDERS[0]: 0}


def test_what_is_known_of_a_damaged_partition_outlives_the_checkpoints() -> None:
    """Otherwise a later start would take its damage for a torn tail, and cut it."""
    disk, store = with_orders()
    log = store.partition_log(ORDERS[1])
    assert log is not None
    log.flush()
    assert store.close() == []
    disk.open(f"{DATA}/orders-1/{0:020d}.log").truncate(50)
    for _ in range(3):
        disk = disk.after_kill()
        store = opened(disk)
        assert ORDERS[1] in store.damaged
        store.write_checkpoints()
        assert read_offsets(disk, f"{DATA}/{RECOVERY_POINTS}")[ORDERS[1]] == 2


@pytest.mark.parametrize("left", [(), ("partition.metadata",), ("leader-epoch-checkpoint",)])
def test_a_folder_that_was_not_made_in_full_is_used(left: tuple[str, ...]) -> None:
    disk = new_disk()
    disk.make_dir(f"{DATA}/orders-0")
    for name in left:
        disk.open(f"{DATA}/orders-0/{name}", create=True)
    log = opened(disk).create(ORDERS[0], TOPIC_ID, LogSettings())
    log.append(batch("a"), NOW_MS)
    log.flush()
    again = opened(disk.after_crash(random.Random(1)))
    assert again.partitions()[ORDERS[0]].topic_id == TOPIC_ID


def test_a_topic_id_outlives_a_kill_a_clean_stop_and_then_the_power() -> None:
    """The stop after the kill makes it durable, though it was written before."""
    for seed in range(20):
        disk, _ = with_orders()
        disk = disk.after_kill()
        assert opened(disk).close() == []
        again = opened(disk.after_crash(random.Random(seed)))
        assert {log.topic_id for log in again.partitions().values()} == {TOPIC_ID}


def test_a_creation_that_fails_leaves_no_folder() -> None:
    steps, failed = 0, 0
    while failed == steps:
        disk = new_disk()
        store = opened(disk)
        disk.fail_at = disk.operations + steps
        try:
            store.create_all(ORDERS, TOPIC_ID, LogSettings())
        except OSError:
            failed += 1
            assert store.partitions() == {}
            assert disk.listdir(DATA) == []
            store.create_all(ORDERS, TOPIC_ID, LogSettings())
        assert sorted(store.partitions()) == ORDERS
        steps += 1
    assert failed > 6


def test_a_folder_of_records_that_nobody_knows_is_set_aside_for_a_new_log() -> None:
    disk, _ = with_orders()
    store = LogStore(disk, DATA)  # not opened: it knows of none
    assert store.create(ORDERS[0], OTHER_ID, LogSettings()).log_end_offset == 0
    (stray,) = [name for name in disk.listdir(DATA) if name.endswith("-stray")]
    assert stray.startswith("orders-0.")
    assert f"{0:020d}.log" in disk.listdir(f"{DATA}/{stray}")
    assert sorted(opened(disk.after_kill()).partitions()) == ORDERS


def test_only_what_holds_a_log_is_a_partition() -> None:
    disk, _ = with_orders()
    disk.make_dir(f"{DATA}/backup-7")
    disk.open(f"{DATA}/backup-7/notes.txt", create=True)
    disk.make_dir(f"{DATA}/backup-20261122")
    disk.open(f"{DATA}/backup-20261122/{0:020d}.log", create=True)
    disk.make_dir(f"{DATA}/rename-then-delete")
    disk.open(f"{DATA}/rename-then-delete/mine", create=True)
    store = opened(disk.after_kill())
    assert sorted(store.partitions()) == ORDERS
    assert store.ignored_folders == [f"{DATA}/backup-20261122"]
    assert disk.exists(f"{DATA}/backup-7/notes.txt")
    assert disk.exists(f"{DATA}/rename-then-delete/mine")
    # Should there ever be a topic of that name, the notes are kept.
    store.create(TopicPartition("backup", 7), TOPIC_ID, LogSettings())
    assert [name for name in disk.listdir(DATA) if name.endswith("-stray")]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"version: 7\ntopic_id: x", b"version: \xe9"])
def test_a_partitions_metadata_that_cannot_be_read_is_damage_of_that_partition(
    content: bytes,
) -> None:
    disk, _ = with_orders()
    file = disk.open(f"{DATA}/orders-1/partition.metadata")
    file.truncate(0)
    file.pwrite(content, 0)
    store = opened(disk.after_kill())
    assert sorted(store.partitions()) == [ORDERS[0], ORDERS[2]]
    assert store.damaged[ORDERS[1]].path == f"{DATA}/orders-1/partition.metadata"


def test_the_longest_topic_name_can_be_deleted() -> None:
    disk = new_disk()
    store = opened(disk)
    key = TopicPartition("t" * 249, 0)
    store.create(key, TOPIC_ID, LogSettings())
    disk.cut_power_at = disk.operations + 1
    with pytest.raises(PowerCut):
        store.delete(key)
    (deleted,) = disk.listdir(DATA)
    assert len(deleted) == 255
    assert deleted.endswith(f".{TOPIC_ID.hex}-delete")


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
