"""Import crashes: an import is complete or absent, wherever the power fails.

The same import runs again and again on a simulated disk; each time the power is cut one operation
later, and the disk forgets what a real one may forget. Then the directory is opened as a daemon
opens it. Killing the process alone, which loses nothing that was written, is the second round.
"""

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from protocol.names import GroupId
from storage.api import Corrupt, LogSettings, TopicPartition
from storage.disk import Disk
from storage.log.checkpoints import HIGH_WATERMARKS
from storage.log.log_store import CLEAN_SHUTDOWN, LogStore
from storage.log.partition_log import PartitionLog
from storage.repair.rollback_journal import (
    ROLLBACK_JOURNAL_FILE,
    broker_stamp,
    read_journal,
    roll_back,
)
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import DATA, OFFSETS, TOPIC_ID, batch, new_disk
from tests.transfer.given import NOW_MS, commit, shown
from transfer.append import Appended, apply_plan
from transfer.contents import Contents
from transfer.plan import Plan, Rule, Terms, make_plan
from transfer.rollcall_dir import read_logs
from transfer.source_stats import SourceStats

PARTITIONS = 3
SETTINGS = LogSettings(segment_bytes=2 << 10, index_interval_bytes=256)

Shown = dict[str, dict[tuple[str, int], int]]


@dataclass
class StoreTarget:
    """A `Target` on any disk; the daemon's own way of opening it."""

    disk: Disk
    path: str = DATA
    partitions: int = PARTITIONS
    store: LogStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = LogStore(self.disk, self.path, lambda _: SETTINGS)
        opened = self.store.open()
        assert not opened.damaged

    def existing(self, partition: int) -> PartitionLog | None:
        return self.store.partition_log(TopicPartition(OFFSETS, partition))

    def log(self, partition: int) -> PartitionLog:
        key = TopicPartition(OFFSETS, partition)
        return self.existing(partition) or self.store.create(key, TOPIC_ID, SETTINGS)

    def stamp(self, _partitions: Sequence[int]) -> None:
        return None

    def contents(self) -> Contents:
        found = Contents()
        logs = [log for number in range(PARTITIONS) if (log := self.existing(number)) is not None]
        read_logs(logs, found, SourceStats("target", "rollcall"))
        return found


def groups(names: str, offset: int, at_ms: int) -> Contents:
    made = Contents()
    for name in names:
        for partition in range(6):
            place = (f"topic-{partition}", partition)
            group = made.group(GroupId(name))
            group.offsets[place] = (commit(offset, at_ms, metadata="m" * 90), at_ms)
    return made


def plan_for(target: StoreTarget, source: Contents) -> Plan:
    return make_plan(source, target.contents(), Terms(Rule.MERGE, NOW_MS))


def run(target: StoreTarget, source: Contents) -> Appended:
    return apply_plan(target, plan_for(target, source), NOW_MS)


def given_target(names: str) -> SimulatedDisk:
    disk = new_disk()
    target = StoreTarget(disk)
    if names:
        run(target, groups(names, 1, 10))
    assert target.store.close() == []
    return disk


SOURCE = groups("bcdef", 2, 20)


@pytest.mark.parametrize("names", ["", "abc"])
@pytest.mark.parametrize("seed", range(4))
def test_a_cut_of_power_at_every_step_leaves_all_or_nothing(names: str, seed: int) -> None:
    before: Shown = shown(StoreTarget(given_target(names)).contents())
    steps, whole, nothing = 0, 0, 0
    while True:
        disk = given_target(names)
        target = StoreTarget(disk)
        plan = plan_for(target, SOURCE)
        disk.cut_power_at = disk.operations + steps
        try:
            apply_plan(target, plan, NOW_MS)
        except PowerCut:
            after = shown(
                StoreTarget(disk.after_crash(random.Random(seed * 997 + steps))).contents()
            )
            assert after in (before, expected(before))
            whole += after != before
            nothing += after == before
            steps += 1
            continue
        break
    assert steps > 20
    assert nothing > 10
    survivor = StoreTarget(disk.after_crash(random.Random(seed)))
    assert shown(survivor.contents()) == expected(before), "what was reported done is done"


def expected(before: Shown) -> Shown:
    return {**before, **shown(SOURCE)}


@pytest.mark.parametrize("names", ["", "abc"])
def test_a_kill_at_every_step_leaves_all_or_nothing(names: str) -> None:
    before: Shown = shown(StoreTarget(given_target(names)).contents())
    steps = 0
    while True:
        disk = given_target(names)
        target = StoreTarget(disk)
        plan = plan_for(target, SOURCE)
        disk.cut_power_at = disk.operations + steps
        try:
            apply_plan(target, plan, NOW_MS)
        except PowerCut:
            disk = disk.after_kill()
            disk.cut_power_at = None
            opened = StoreTarget(disk)
            assert shown(opened.contents()) in (before, expected(before))
            assert not disk.exists(f"{DATA}/{ROLLBACK_JOURNAL_FILE}")
            # And the import can be done again, at once.
            run(opened, SOURCE)
            assert shown(opened.contents()) == expected(before)
            steps += 1
            continue
        break
    assert steps > 20


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_of_power_while_an_import_is_undone(seed: int) -> None:
    before: Shown = shown(StoreTarget(given_target("abc")).contents())
    steps = 0
    while True:
        disk = given_target("abc")
        target = StoreTarget(disk)
        plan = plan_for(target, SOURCE)
        disk.fail_sync("__consumer_offsets-2/")  # after most of it was written
        with pytest.raises(OSError, match="input/output"):
            apply_plan(target, plan, NOW_MS)
        disk = disk.after_kill()
        disk.cut_power_at = disk.operations + steps
        try:
            store = StoreTarget(disk)
        except PowerCut:
            dice = random.Random(seed * 991 + steps)
            after = StoreTarget(disk.after_crash(dice))
            assert shown(after.contents()) == before
            steps += 1
            continue
        assert store.store.rolled_back
        assert shown(store.contents()) == before
        break
    assert steps > 3


def test_a_full_disk_fails_the_import_and_the_next_opening_undoes_it() -> None:
    disk = given_target("abc")
    target = StoreTarget(disk)
    before = shown(target.contents())
    plan = plan_for(target, SOURCE)
    disk.room = 1_500
    with pytest.raises(OSError, match="no space"):
        apply_plan(target, plan, NOW_MS)
    disk.room = None
    assert shown(StoreTarget(disk.after_kill()).contents()) == before


def test_a_partition_that_is_damaged_keeps_the_undo_for_later() -> None:
    disk = given_target("abc")
    target = StoreTarget(disk)
    before = shown(target.contents())
    plan = plan_for(target, SOURCE)
    disk.fail_sync("__consumer_offsets-2/")
    with pytest.raises(OSError, match="input/output"):
        apply_plan(target, plan, NOW_MS)
    # The first segment of another partition is no log any more, below what was durable.
    folder = f"{DATA}/__consumer_offsets-1"
    first = min(name for name in disk.listdir(folder) if name.endswith(".log"))
    for name in disk.listdir(folder):
        if name.endswith("index"):
            disk.remove(f"{folder}/{name}")
    log = disk.open(f"{folder}/{first}")
    good = log.pread(30, 0)
    log.pwrite(b"\xff" * 30, 0)
    store = LogStore(disk, DATA, lambda _: SETTINGS)
    assert store.open().damaged
    assert read_journal(disk, DATA) is not None

    # Once somebody has mended it, all of the import is undone.
    log.pwrite(good, 0)
    mended = StoreTarget(disk)
    assert shown(mended.contents()) == before
    assert read_journal(disk, DATA) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 2}', b'{"format": 1, "log_ends": 3}'])
def test_an_undo_file_that_cannot_be_read_stops_the_opening(content: bytes) -> None:
    disk = given_target("abc")
    file = disk.open(f"{DATA}/{ROLLBACK_JOURNAL_FILE}", create=True)
    file.pwrite(content, 0)
    with pytest.raises(Corrupt, match=ROLLBACK_JOURNAL_FILE):
        LogStore(disk, DATA).open()


def test_undoing_twice_does_no_harm() -> None:
    disk = given_target("abc")
    target = StoreTarget(disk)
    before = shown(target.contents())
    ends = {
        TopicPartition(OFFSETS, number): log.log_end_offset
        for number in range(PARTITIONS)
        if (log := target.existing(number)) is not None
    }
    run(target, SOURCE)
    assert roll_back(ends, target.store.partition_log) > 0
    assert roll_back(ends, target.store.partition_log) == 0
    assert shown(target.contents()) == before


def interrupted(broker_stamp: dict[str, object] | None = None) -> SimulatedDisk:
    """An import that was killed when most of it was written."""
    disk = given_target("abc")
    target = StoreTarget(disk)
    plan = plan_for(target, SOURCE)
    if broker_stamp is not None:
        target.stamp = lambda _: broker_stamp  # type: ignore[method-assign,assign,return-value]
    disk.fail_sync("__consumer_offsets-2/")
    with pytest.raises(OSError, match="input/output"):
        apply_plan(target, plan, NOW_MS)
    return disk.after_kill()


def used_by_others(disk: SimulatedDisk) -> int:
    """As a Kafka does, which commits behind what it finds; where the log ended before."""
    log = PartitionLog(disk, f"{DATA}/{OFFSETS}-0", TopicPartition(OFFSETS, 0), SETTINGS)
    log.open(0)
    end = log.log_end_offset
    log.append(batch("a commit"), NOW_MS)
    log.close()
    return end


def test_nothing_is_cut_where_others_closed_the_directory_cleanly_since() -> None:
    steps = 0
    while True:
        disk = interrupted()
        end = used_by_others(disk)
        disk.open(f"{DATA}/{CLEAN_SHUTDOWN}", create=True).sync()
        disk.sync_dir(DATA)
        disk.cut_power_at = disk.operations + steps
        try:
            opened = StoreTarget(disk).store
        except PowerCut:
            # Whatever a killed start had done by then, the next one does not cut either.
            opened = StoreTarget(disk.after_crash(random.Random(steps))).store
            is_over = False
        else:
            is_over = True
        log = opened.partition_log(TopicPartition(OFFSETS, 0))
        assert log is not None
        assert log.log_end_offset == end + 1
        assert not opened.rolled_back
        if is_over:
            assert opened.kept_import
            break
        steps += 1
    assert steps >= 3


@pytest.mark.parametrize("had_run_before", [False, True])
def test_nothing_is_cut_where_a_kafka_ran_and_was_killed(*, had_run_before: bool) -> None:
    stamps = new_disk()
    if had_run_before:
        stamps.open(f"{DATA}/{HIGH_WATERMARKS}", create=True).pwrite(b"0\n0\n", 0)
    disk = interrupted(broker_stamp(stamps, DATA))
    if had_run_before:
        disk.open(f"{DATA}/{HIGH_WATERMARKS}", create=True).pwrite(b"0\n0\n", 0)
    assert StoreTarget(_copy(disk)).store.rolled_back, "until a Kafka runs"

    end = used_by_others(disk)
    disk.open(f"{DATA}/{HIGH_WATERMARKS}", create=True).pwrite(b"0\n1\norders 0 5\n", 0)
    opened = StoreTarget(disk).store
    assert (opened.kept_import, opened.rolled_back) == (True, False)
    log = opened.partition_log(TopicPartition(OFFSETS, 0))
    assert log is not None
    assert log.log_end_offset == end + 1
    assert not disk.exists(f"{DATA}/{ROLLBACK_JOURNAL_FILE}")


def _copy(disk: SimulatedDisk) -> SimulatedDisk:
    return copy.deepcopy(disk)
