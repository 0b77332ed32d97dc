"""A stopped data directory: a command recovers it as the daemon's start does, and refuses the same.

What a start has to notice, a command must not hide from it: afterwards the directory counts as
cleanly stopped.
"""

import shutil
from pathlib import Path

import pytest

from config.keys import Config
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC
from storage.api import Corrupt, TopicPartition
from storage.log.log_store import CLEAN_SHUTDOWN
from tests.storage.rig import batch, keys_in, records
from tests.transfer.given import NOW_MS
from transfer.rollcall_dir import RollcallDir

HISTORY = TopicPartition(HISTORY_TOPIC, 0)


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
