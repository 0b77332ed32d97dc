"""Expired offsets: they stay gone, also after the cleaner has removed their tombstones.

The one thing that could bring an offset back is something older than its tombstone that outlives
it: a snapshot, or a segment that was cleaned before. So a snapshot is taken while the offsets live;
then they expire, their tombstones wait for the delete horizon and go, and the daemon is killed.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.records import OFFSET_COMMIT, read_offset_key, record_type
from logtools.walk import Batch, walk
from storage.batch.record_batch import stored_records
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.conftest import StartDaemon
from tests.interop.conftest import create_topic
from tests.interop.offsets_givens import commit_by_hand, fetch_by_hand
from tests.interop.swaps import holds_of_whole

DAY_MS = 86_400_000
TIMEOUT_S = 240  # the cleaner works at a low priority: a busy machine gives it little
ONE_LOG = {
    **TEST_SETTINGS,
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "60000",
    "rollcall.checkpoint.idle.ms": "1",
}
EXPIRING = {
    "offsets.retention.minutes": "1440",
    "offsets.retention.check.interval.ms": "50",
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.cleaner.delete.retention.ms": "1",
    "rollcall.offsets.history.ms": "0",
}


def given_old_offsets(data_dir: Path, file: Path) -> None:
    """Two groups that nobody has used for three days."""
    committed_at_ms = time.time_ns() // 1_000_000 - 3 * DAY_MS
    groups = [
        {
            "group": group,
            "offsets": [
                {"topic": "orders", "partition": 0, "offset": 7, "committed_at_ms": committed_at_ms}
            ],
        }
        for group in ("old-0", "old-1")
    ]
    file.write_text(json.dumps({"format": "rollcall-offsets", "version": 1, "groups": groups}))
    rollcall = Path(sys.executable).with_name("rollcall")
    command = [rollcall, "offsets", "import", "--from", file, "--data-dir", data_dir]
    more = [word for key, value in ONE_LOG.items() for word in ("--set", f"{key}={value}")]
    subprocess.run([*command, *more], check=True, stdout=subprocess.DEVNULL)


def values_of_old(data_dir: Path) -> list[bool]:
    """Of each record of these groups' offsets, in order: is it a tombstone?"""
    found = []
    for path in sorted((data_dir / "__consumer_offsets-0").glob("*.log")):
        for part in walk(path):
            for record in stored_records(part.content) if isinstance(part, Batch) else ():
                if record.key is None or record_type(record.key) != OFFSET_COMMIT:
                    continue
                if read_offset_key(record.key).group_id.startswith("old-"):
                    found.append(record.value is None)
    return found


def old_are_gone(data_dir: Path) -> bool:
    folder = data_dir / "__consumer_offsets-0"
    return holds_of_whole(folder, lambda: not values_of_old(data_dir))


def until(daemon: Daemon, fact: Callable[[], bool]) -> None:
    """Others commit meanwhile, so that segments fill and are sealed."""
    deadline = time.monotonic() + TIMEOUT_S
    offset = 0
    while True:
        if fact():
            return
        assert time.monotonic() < deadline, daemon.log()[-3_000:]
        commit_by_hand(daemon.port, "fresh", "orders", range(offset, offset + 1))
        offset += 1


def snapshots(daemon: Daemon) -> list[Path]:
    return list(daemon.data_dir.glob("__consumer_offsets-0/*.groups"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("with_snapshots", [True, False], ids=["snapshots", "the log alone"])
def test_an_expired_offset_stays_gone_once_its_tombstone_is_gone(
    start_daemon: StartDaemon, tmp_path: Path, with_snapshots: bool
) -> None:
    often, never = {"rollcall.snapshot.bytes": "4096"}, {"rollcall.snapshot.bytes": "1000000000"}
    daemon = start_daemon({**ONE_LOG, **(often if with_snapshots else never)})
    assert daemon.stop() == 0
    given_old_offsets(daemon.data_dir, tmp_path / "old.json")
    daemon.start()
    create_topic(daemon.bootstrap, "orders", 10)
    assert fetch_by_hand(daemon.port, "old-0", "orders", 0)[0] == 7
    until(daemon, lambda: bool(snapshots(daemon)) == with_snapshots)
    daemon.kill()
    assert values_of_old(daemon.data_dir) == [False, False]

    # They expire; then their values go, and one horizon later the tombstones too. No newer snapshot
    # takes the place of the one that knows them.
    daemon.settings = {**ONE_LOG, **never, **EXPIRING}
    daemon.start()
    until(daemon, lambda: old_are_gone(daemon.data_dir))

    for _ in range(2):  # the second time on what the first has read and written
        daemon.kill()
        daemon.start()
        assert fetch_by_hand(daemon.port, "old-0", "orders", 0)[0] == -1
        assert fetch_by_hand(daemon.port, "old-1", "orders", 0)[0] == -1
        assert fetch_by_hand(daemon.port, "fresh", "orders", 0)[0] >= 0
        assert values_of_old(daemon.data_dir) == [], "nor has it been written anew"
    _, body = daemon.get("/api/history?group=old-0&offsets=true")
    moved = [event["by"] for event in json.loads(body)["events"] if "by" in event]
    assert moved == ["group_expiry", "import"]
