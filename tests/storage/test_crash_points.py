"""Crash points: the power fails before every write, sync, rename and allocation, also in recovery.

One load that rolls segments and passes both journal files several times, told again and again from
a seed, each time with the power cut one operation later. What unsynced bytes, torn sectors and
reordered files are left is drawn from the seed as well. CRASH_POINT_SEEDS tells it that many times.
"""

import os
import random
from collections.abc import Callable
from functools import partial

import pytest

from storage.api import LogSettings, Record
from storage.journal.write_ahead import FIRST_GROUP
from storage.journal.write_ahead_pair import FILE_NAMES
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import DATA, NOW_MS, OFFSETS, SMALL_LIMITS, Rig, new_disk, records

SEEDS = int(os.environ.get("CRASH_POINT_SEEDS", "1"))
PARTITIONS = (0, 1, 2)
TINY_SEGMENTS = LogSettings(segment_bytes=2 << 10, index_interval_bytes=256)


class Load:
    """Appends to three partitions; knows what was reported stored, as a client would."""

    def __init__(self, disk: SimulatedDisk, seed: int) -> None:
        self.disk = disk
        self.dice = random.Random(seed)
        self.appended: dict[int, list[str]] = {partition: [] for partition in PARTITIONS}
        self.rig: Rig | None = None

    def run(self) -> None:
        rig = self.rig = Rig(self.disk, TINY_SEGMENTS)
        logs = {partition: rig.log(partition) for partition in PARTITIONS}
        for number in range(36):
            for partition in self.dice.sample(PARTITIONS, self.dice.randint(1, 3)):
                size = self.dice.choice((10, 200, 700))
                names = [f"{number}-{letter}-{'x' * size}" for letter in "ab"]
                self.appended[partition] += names
                logs[partition].append(records(*names), NOW_MS + number)
            rig.journal.pump()
            if self.dice.random() < 0.3:
                rig.journal.checkpointer.run()  # at any time after a file was passed
        rig.stop()

    @property
    def promised(self) -> dict[int, int]:
        ends = dict.fromkeys(PARTITIONS, 0)
        for key, position in self.rig.stored if self.rig is not None else ():
            ends[key.partition] = position
        return ends

    def check(self, rig: Rig) -> None:
        """Everything that was acknowledged is there, in order, and nothing that was never sent."""
        assert not rig.opened.damaged
        for partition in PARTITIONS:
            rig.log(partition)
            found = rig.keys(partition)
            assert found == self.appended[partition][: len(found)]
            assert len(found) >= self.promised[partition]
            assert not len(found) % 2, "half a batch"


def _crash(action: Callable[[], object]) -> bool:
    try:
        action()
    except PowerCut:
        return True
    return False


def _start(disk: SimulatedDisk) -> None:
    Rig(disk, TINY_SEGMENTS).journal.pump()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_may_go_at_every_operation_and_again_in_the_recovery(seed: int) -> None:
    step = checkpoints = rolls = 0
    while True:
        load = Load(new_disk(), seed)
        load.disk.cut_power_at = step
        if not _crash(load.run):
            break
        dice = random.Random(seed * 1_000_003 + step)
        left = load.disk.after_crash(dice)
        if load.rig is None:
            step += 1
            continue
        checkpoints = max(checkpoints, load.rig.journal.checkpointer.checkpoints)
        # The recovery meets the same fate, up to three times, each a little later.
        for _ in range(dice.randint(0, 3)):
            left.cut_power_at = dice.randrange(80)
            if not _crash(partial(_start, left)):
                break
            left = left.after_crash(dice)
        left.cut_power_at = None
        again = Rig(left, TINY_SEGMENTS)
        load.check(again)
        rolls = max(rolls, sum(name.endswith(".log") for name in left.listdir(_folder(0))))
        # What one start has shown the next one shows, whatever was synced meanwhile.
        shown = {partition: again.keys(partition) for partition in PARTITIONS}
        third = again.restarted_on(left.after_crash(dice))
        load.check(third)
        assert {partition: third.keys(partition) for partition in PARTITIONS} == shown
        step += 1
    assert step > 150
    assert checkpoints > 2
    assert rolls > 2


def test_power_may_go_at_every_operation_of_every_recovery() -> None:
    """A crash in the middle of the load, and then one at each operation of the start after it."""
    for middle in (60, 110, 160):
        step = 0
        while True:
            load = Load(new_disk(), 3)
            load.disk.cut_power_at = middle
            assert _crash(load.run)
            dice = random.Random(middle)
            left = load.disk.after_crash(dice)
            left.cut_power_at = step
            crashed = _crash(partial(_start, left))
            again = Rig(left.after_crash(dice), TINY_SEGMENTS)
            load.check(again)
            if not crashed:
                break
            step += 1
        assert step > 5


# --- a full disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(SEEDS * 3))
def test_the_disk_may_be_full_at_any_byte_and_have_room_again(seed: int) -> None:
    for room in range(26_000, 80_000, 331):
        disk = new_disk()
        dice = random.Random(seed * 7 + room)
        disk.room = room + 2 * SMALL_LIMITS.file_bytes  # the journal is preallocated
        rig = Rig(disk, TINY_SEGMENTS)
        logs = {partition: rig.log(partition) for partition in PARTITIONS}
        appended: dict[int, list[str]] = {partition: [] for partition in PARTITIONS}
        for number in range(90):
            partition = dice.choice(PARTITIONS)
            names = [f"{number}-{letter}-{'x' * dice.choice((10, 200, 700))}" for letter in "ab"]
            logs[partition].append(records(*names), NOW_MS + number)
            appended[partition] += names
            if not rig.journal.pump():
                break
            if dice.random() < 0.2:
                rig.journal.checkpointer.run()
        else:
            assert rig.journal.closed_because is None
            continue
        # Nothing was given up but what was never reported; readers still read.
        assert rig.journal.is_full
        assert not rig.journal.try_reopen()  # the loop has not heard of it yet
        seen = {}
        for partition, log in logs.items():
            found = rig.keys(partition)
            assert found == appended[partition][: log.stored_position]
            view = rig.log(partition)  # what a shard that loads again is given
            assert not view.has_room()
            seen[partition] = rig.keys(partition)
            assert seen[partition][: len(found)] == found
        rig.journal.failure_delivered()

        # Too little room is still too little; with enough of it the journal opens again.
        disk.room = dice.randint(0, 200)
        rig.journal.try_reopen()
        disk.room = None
        assert rig.journal.try_reopen() or rig.journal.closed_because is None
        for partition, stale in logs.items():
            assert not stale.has_room()
            log = rig.log(partition)
            assert log.has_room()
            assert rig.keys(partition)[: len(seen[partition])] == seen[partition]
            assert rig.keys(partition) == appended[partition][: log.stored_position]
            log.append(records("after"), NOW_MS + 1000)
        assert rig.journal.pump()
        shown = {partition: rig.keys(partition) for partition in PARTITIONS}
        assert all(keys[-1] == "after" for keys in shown.values())
        again = Rig(disk.after_crash(dice), TINY_SEGMENTS)
        assert {partition: again.keys(partition) for partition in PARTITIONS} == shown


# --- a commit of many partitions -----------------------------------------------------------------


WAL = f"{DATA}/{FILE_NAMES[0]}"
SEGMENT = f"{DATA}/{OFFSETS}-0/{0:020d}.log"
SECOND_GROUP = FIRST_GROUP + 512


def _commit_of_fifty() -> SimulatedDisk:
    """One commit before, then one of fifty partitions, then the process is killed."""
    disk = new_disk()
    rig = Rig(disk, LogSettings())
    log = rig.log()
    log.append(records("before"), NOW_MS)
    rig.journal.pump()
    log.append([Record(f"key {number}".encode(), bytes(26)) for number in range(50)], NOW_MS)
    rig.journal.pump()
    return disk.after_kill()


def _of_fifty(disk: SimulatedDisk) -> int:
    """How many of its records the next start finds."""
    rig = Rig(disk, LogSettings())
    rig.log()
    (keys,) = [rig.keys(0)]
    assert keys[0] == "before"
    return len(keys) - 1


def test_a_commit_of_fifty_partitions_is_whole_or_absent_at_every_length_of_the_journal() -> None:
    file = _commit_of_fifty().open(WAL)
    length = 28 + int.from_bytes(file.pread(4, SECOND_GROUP + 24), "big")
    whole = file.pread(length, SECOND_GROUP)
    assert length > 50 * 26
    for size in range(length + 1):
        # The journal's write is torn: then nothing of it went to the segment, which comes after.
        disk = _commit_of_fifty()
        disk.open(WAL).pwrite(whole[:size] + bytes(length - size), SECOND_GROUP)
        content = disk.open(SEGMENT).pread(12, 0)
        disk.open(SEGMENT).truncate(12 + int.from_bytes(content[8:], "big"))
        left = disk.open(WAL).pread(length, SECOND_GROUP)
        assert _of_fifty(disk) == (50 if left == whole else 0)


def test_a_commit_of_fifty_partitions_is_whole_at_every_length_of_the_segment() -> None:
    length = _commit_of_fifty().open(SEGMENT).size()
    for size in range(length + 1):
        disk = _commit_of_fifty()
        disk.open(SEGMENT).truncate(size)
        assert _of_fifty(disk) == 50


def _folder(partition: int) -> str:
    return f"{DATA}/{OFFSETS}-{partition}"
