"""Transactional offsets in a log: lint and stat read what a coordinator writes."""

import json
from pathlib import Path

from storage.api import BatchProducer, EndMarker
from storage.journal.journaled_log import JournaledLog
from tests.cli.test_command import Command, rollcall
from tests.logtools.logs import NOW_MS, PARTITION, commit, write_partition
from tests.storage.batch.test_control_batch import Queue
from tests.storage.rig import Rig, new_disk

__all__ = ["rollcall"]


def given_log(data_dir: Path) -> Path:
    """Plain, committed, aborted and open, as the log of a shard encodes them."""
    queue = Queue()
    log = JournaledLog(queue, Rig(new_disk()).log().partition_log)  # type: ignore[arg-type]
    log.append([commit(1)], NOW_MS)
    log.append([commit(2), commit(3, 1)], NOW_MS, BatchProducer(7, 0))
    log.append_marker(EndMarker(7, 0, is_commit=True, coordinator_epoch=4), NOW_MS)
    log.append([commit(9)], NOW_MS, BatchProducer(8, 3))
    log.append_marker(EndMarker(8, 3, is_commit=False, coordinator_epoch=4), NOW_MS)
    log.append([commit(5)], NOW_MS, BatchProducer(9, 0))
    return write_partition(data_dir, "__consumer_offsets", PARTITION, queue.batches)


def test_lint_finds_nothing_in_it(tmp_path: Path, rollcall: Command) -> None:
    given_log(tmp_path)
    linted = rollcall("log", "lint", str(tmp_path), "--json")
    assert linted.exit_code == 0, linted.out


def test_stat_counts_its_records(tmp_path: Path, rollcall: Command) -> None:
    given_log(tmp_path)
    shown = rollcall("log", "stat", str(tmp_path), "--json")
    assert shown.exit_code == 0, shown.err
    total = json.loads(shown.out)["total"]
    assert total["records"] == 7
