"""A stopped data directory: a command recovers it as the daemon's start does, and refuses the same.

What a start has to notice, a command must not hide from it: afterwards the directory counts as
cleanly stopped.
"""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from config.keys import Config
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC
from storage.api import Corrupt, TopicPartition
from storage.disk import RealDisk
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.open import TOPICS_FILE
from storage.repair.repair_plan import REPAIR_FILE, Repaired, RepairPlan
from tests.storage.rig import batch, keys_in, records
from tests.transfer.given import NOW_MS
from topics.catalog import CatalogDamaged
from transfer.errors import Unusable
from transfer.rollcall_dir import RollcallDir

HISTORY = TopicPartition(HISTORY_TOPIC, 0)
INTERRUPTED_REPAIR = Repaired("x.log", 1, "a bad checksum", 1, (), ())


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(log_dirs=(str(tmp_path / "data"),), offsets_topic_num_partitions=2)


def test_a_missing_partition_of_the_offsets_topic_is_damage_and_stays_known(
    config: Config,
) -> None:
    with RollcallDir(config, must_exist=False) as opened:
        for partition in range(2):
            opened.log(partition).append(batch("k"), NOW_MS)
    shutil.rmtree(config.data_dir / f"{OFFSETS_TOPIC}-1")

    for _ in range(2):  # the first refusal changes nothing
        with pytest.raises(Corrupt, match="the folder is missing"):
            RollcallDir(config, must_exist=True)


def test_after_a_kill_a_command_begins_the_epoch_that_the_next_start_does_not(
    config: Config,
) -> None:
    with RollcallDir(config, must_exist=False) as opened:
        (log,) = (log for log in opened.history() if log is not None)
        log.append(batch("k"), NOW_MS)
        before = log.leader_epoch

    with RollcallDir(config, must_exist=True) as opened:
        assert [log and log.leader_epoch for log in opened.history()] == [before]
    (config.data_dir / CLEAN_SHUTDOWN).unlink()  # as a kill leaves it
    with RollcallDir(config, must_exist=True) as opened:
        assert [log and log.leader_epoch for log in opened.history()] == [before + 1]


def test_damaged_history_is_left_out_and_the_offsets_are_recovered(config: Config) -> None:
    opened = RollcallDir(config, must_exist=False)
    opened.log(0)
    logs = [opened.storage.journal.log(key) for key in (HISTORY, TopicPartition(OFFSETS_TOPIC, 0))]
    for number in range(4):
        for log in logs:
            log.append(records(f"k{number}"), NOW_MS)
        opened.storage.journal.pump()
        if number == 2:
            for log in logs:
                log.partition_log.flush()
            opened.storage.store.write_checkpoints()
    opened.abandon()
    with (config.data_dir / f"{HISTORY_TOPIC}-0" / f"{0:020d}.log").open("r+b") as segment:
        segment.seek(65)
        segment.write(b"?????")

    with RollcallDir(config, must_exist=True) as again:
        assert again.history() == [None]
        log = again.existing(0)
        assert log is not None
        assert keys_in(list(log.batches(0))) == ["k0", "k1", "k2", "k3"]


def test_a_damaged_catalog_is_reported_before_an_interrupted_repair(config: Config) -> None:
    """The daemon's next start refuses it too, so "start the daemon once" would not help."""
    RollcallDir(config, must_exist=False).close()
    RepairPlan(RealDisk(), str(config.data_dir)).note(INTERRUPTED_REPAIR)
    catalog = config.data_dir / TOPICS_FILE
    sound = catalog.read_bytes()
    catalog.write_bytes(sound[: len(sound) // 2])

    with pytest.raises(CatalogDamaged, match=TOPICS_FILE):
        RollcallDir(config, must_exist=True)
    catalog.write_bytes(sound)
    with pytest.raises(Unusable, match="start the daemon once"):
        RollcallDir(config, must_exist=True)

    assert (config.data_dir / REPAIR_FILE).exists()


def test_a_disk_without_the_reserve_is_read_and_recovered_and_not_written_to(
    config: Config,
) -> None:
    opened = RollcallDir(config, must_exist=False)
    opened.log(0)
    log = opened.storage.journal.log(TopicPartition(OFFSETS_TOPIC, 0))
    log.append(records("k0"), NOW_MS)
    opened.storage.journal.pump()
    opened.abandon()  # as a kill: the flush may be in the journal alone
    full = replace(config, rollcall_disk_reserve_bytes=2**62)

    with RollcallDir(full, must_exist=True) as again:
        found = again.log(0)
        assert keys_in(list(found.batches(0))) == ["k0"]
        with pytest.raises(OSError, match="the reserve is"):
            found.append(batch("k1"), NOW_MS)

    with RollcallDir(config, must_exist=True) as again:
        found = again.log(0)
        found.append(batch("k1"), NOW_MS)
        assert keys_in(list(found.batches(0))) == ["k0", "k1"]
