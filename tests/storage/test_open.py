"""Opening a data directory: damage in one topic, a repair that was interrupted, any node's lock."""

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from storage.api import LogSettings, TopicPartition
from storage.data_dir import DataDir
from storage.log.log_store import LogStore
from storage.open import (
    DamageRepaired,
    OpenEvent,
    PartitionSetAside,
    RepairResumed,
    RepairUnfinished,
    StorageSettings,
    lock_data_dir,
    open_logs,
    open_storage,
)
from storage.repair.repair_plan import REPAIR_FILE, Repaired, RepairPlan
from tests.storage.rig import (
    DATA,
    NOW_MS,
    OFFSETS,
    SMALL_LIMITS,
    TOPIC_ID,
    Rig,
    batch,
    keys_in,
    new_disk,
    records,
)

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("paid", 0)
STORAGE = StorageSettings(SMALL_LIMITS, (OFFSETS,))
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=64, segment_ms=1_000)


def test_damage_before_an_empty_active_segment_sets_its_partition_aside() -> None:
    disk = new_disk()
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    store.open()
    for key in (KEY, OTHER):
        log = store.create(key, TOPIC_ID, SETTINGS)
        log.append(batch("k0", timestamp_ms=NOW_MS), NOW_MS)
        assert log.roll_if_old(NOW_MS + 5_000)
        log.flush()
    store.write_checkpoints()

    disk = disk.after_kill()
    disk.open(f"{DATA}/orders-0/{0:020d}.log").pwrite(b"?", 16)  # its magic
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    events: list[OpenEvent] = []
    open_logs(store, STORAGE, events.append)
    assert list(store.damaged) == [KEY]
    assert list(store.partitions()) == [OTHER]
    assert [type(event) for event in events] == [PartitionSetAside]
    # What the checkpoints know of it stays, and forbids nothing at the next start.
    store.write_checkpoints()
    assert store.close() == []
    again = LogStore(disk, DATA, lambda _: SETTINGS)
    again.open()
    log = again.partition_log(KEY)
    assert log is not None
    assert log.log_end_offset == 1


def test_a_command_changes_nothing_where_a_repair_was_interrupted_and_a_start_finishes_it() -> None:
    disk = new_disk()
    repaired = Repaired(f"{DATA}/orders-0/{0:020d}.log", 0, "a bad checksum", 8, (), ())
    RepairPlan(disk, DATA).note(repaired)
    before = disk.operations

    with pytest.raises(RepairUnfinished):
        open_storage(disk, DATA, STORAGE, pytest.fail, may_resume_repair=False)

    assert disk.operations == before
    events: list[OpenEvent] = []
    storage = open_storage(disk, DATA, STORAGE, events.append)
    assert events == [RepairResumed(), DamageRepaired(repaired)]
    assert storage.was_repaired
    assert not disk.exists(f"{DATA}/{REPAIR_FILE}")


def test_a_command_locks_the_directory_of_any_node(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    DataDir(path, 7).close()

    with closing(lock_data_dir(path, 1)) as locked:
        assert locked.identity.node_id == 7
    with closing(lock_data_dir(str(tmp_path / "new"), 3)) as locked:
        assert locked.identity.node_id == 3


@pytest.mark.parametrize("is_synced", [True, False])
def test_what_a_recovery_restored_survives_a_power_failure_whatever_the_flush_mode(
    is_synced: bool,
) -> None:
    """`rollcall.flush=os` is for the commits to come: an opening still syncs what was promised."""
    disk = new_disk()
    rig = Rig(disk)
    log = rig.log()
    for number in range(5):
        log.append(records(f"k{number}"), NOW_MS)
        rig.journal.pump()
    settings = StorageSettings(SMALL_LIMITS, (OFFSETS,), is_synced=is_synced)

    for seed in range(20):
        crashed = disk.after_crash(Random(seed))
        open_storage(crashed, DATA, settings, lambda _: None)
        again = crashed.after_crash(Random(seed + 100))
        storage = open_storage(again, DATA, settings, lambda _: None)

        found = storage.store.partition_log(TopicPartition(OFFSETS, 0))
        assert found is not None
        assert keys_in(list(found.batches(0))) == [f"k{number}" for number in range(5)]
