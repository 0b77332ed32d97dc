"""Repair crashes: a repair killed at every operation is continued by the next start.

Whatever is left of the disk, no offset that was lost is given to another record, nothing is shown
that the repair would not have shown, and what was cut is kept. REPAIR_CRASH_SEEDS says how often
each damage is told.
"""

import os
import random
from collections.abc import Callable, Iterator

import pytest

from storage.api import Corrupt
from storage.batch.record_batch import HEADER_BYTES
from storage.log.checkpoints import RECOVERY_POINTS
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.repair.repair_plan import REPAIR_FILE
from storage.snapshot import SnapshotHeader, snapshot_positions, write_snapshot
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.repair.test_repair import (
    FOLDER,
    _batch_at,
    _damage_group,
    expected,
    journaled,
    segments,
    still_in_the_journal,
    stopped,
)
from tests.storage.rig import (
    DATA,
    NOW_MS,
    OFFSETS,
    TOPIC_ID,
)
from tests.storage.start import SEVERAL_SEGMENTS, Start

SEEDS = int(os.environ.get("REPAIR_CRASH_SEEDS", "1"))


def in_the_first_segment() -> tuple[SimulatedDisk, int]:
    """All others go with it; and there are snapshots that know what is lost."""
    disk = stopped(settings=SEVERAL_SEGMENTS)
    assert len(segments(disk)) > 2
    _spoil(disk, 4)
    for position in (70, 2):
        write_snapshot(disk, FOLDER, SnapshotHeader(position, TOPIC_ID, 0, NOW_MS, 1, None), [])
    return disk, 4


def in_the_last_batch() -> tuple[SimulatedDisk, int]:
    disk = stopped(settings=SEVERAL_SEGMENTS)
    _spoil(disk, 78)
    return disk, 78


def with_a_checkpoint() -> tuple[SimulatedDisk, int]:
    """After a kill, and nobody knows what was durable."""
    disk = stopped(settings=SEVERAL_SEGMENTS)
    disk.open(f"{DATA}/{RECOVERY_POINTS}").pwrite(b"?", 0)
    disk.remove(f"{DATA}/{CLEAN_SHUTDOWN}")
    _spoil(disk, 20)
    return disk, 20


def _spoil(disk: SimulatedDisk, offset: int) -> None:
    path, position = _batch_at(disk, offset)
    disk.open(path).pwrite(b"?", position + HEADER_BYTES + 5)


def steps(
    given: Callable[[], tuple[SimulatedDisk, int]], seed: int, *, insisting: bool = False
) -> Iterator[tuple[SimulatedDisk, random.Random]]:
    """What a repair leaves that is killed at its first operation, its second, ...

    `insisting`: the operator asks for it until it has begun.
    """
    step = 0
    while True:
        disk = _durable(given()[0])
        disk.cut_power_at = step
        dice = random.Random(seed * 1_000_003 + step)
        crashed = _crashes(disk, repair=True)
        left = disk.after_crash(dice)
        # The start that goes on with it is killed as well, once or twice.
        for _ in range(dice.randint(0, 2)):
            left.cut_power_at = dice.randrange(40)
            asked = insisting and not left.exists(f"{DATA}/{REPAIR_FILE}")
            if not _crashes(left, repair=asked):
                break
            left = left.after_crash(dice)
        left.cut_power_at = None
        yield left, dice
        if not crashed:
            return
        step += 1
        assert step < 1_000


def _durable(disk: SimulatedDisk) -> SimulatedDisk:
    """What was damaged long ago: no crash brings it back."""
    disk = disk.after_kill()
    for folder in (DATA, *(f"{DATA}/{OFFSETS}-{number}" for number in (0, 1))):
        for name in disk.listdir(folder) if disk.exists(folder) else ():
            if not name.startswith(OFFSETS):
                disk.open(f"{folder}/{name}").sync()
        if disk.exists(folder):
            disk.sync_dir(folder)
    return disk


def _crashes(disk: SimulatedDisk, *, repair: bool) -> bool:
    try:
        Start(disk, repair=repair)
    except PowerCut:
        return True
    except Corrupt:
        assert not repair
    return False


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("given", [in_the_first_segment, in_the_last_batch, with_a_checkpoint])
def test_a_killed_repair_is_finished_by_the_next_start(
    given: Callable[[], tuple[SimulatedDisk, int]], seed: int
) -> None:
    _, first_lost = given()
    refused = went_on = done = 0
    for left, dice in steps(given, seed):
        begun = left.exists(f"{DATA}/{REPAIR_FILE}")
        try:
            start = Start(left, repair=False)
        except Corrupt:
            assert not begun, "a repair that was begun needs to be asked for once more"
            refused += 1
            start = Start(left.after_kill(), repair=True)
        found = start.keys()
        if begun:
            went_on += 1
            assert "A repair was interrupted: it goes on now" in start.warnings()
            lost = start.warnings()["Lost records"]
            assert (lost["first_offset"], lost["last_offset"]) == (first_lost, 79)
        if found != expected(40)[:first_lost]:
            # Nothing was cut yet, and a start after a clean stop does not read all.
            assert not begun
            assert len(segments(start.disk)) > 2
            assert start.append() == 80
            continue
        done += not begun
        assert not start.disk.exists(f"{DATA}/{REPAIR_FILE}")
        assert [
            position for position in snapshot_positions(start.disk, FOLDER) if position > first_lost
        ] == []
        assert any(name.endswith(".damaged") for name in start.disk.listdir(FOLDER))
        assert start.append() == 80, "an offset that was lost was given away again"

        # And whatever goes now, it stays so.
        again = Start(start.disk.after_crash(dice), repair=False)
        assert again.warnings().keys() <= {"Cut a torn tail"}
        assert again.keys() == [*found, "next"]
        assert again.append() == 81
    assert went_on > 10
    assert done + refused > 0


def with_the_journal_alone() -> tuple[SimulatedDisk, int]:
    """What is behind a damaged group, and in no segment any more."""
    disk = journaled()
    _damage_group(disk, 5)
    disk.open(segments(disk)[0]).truncate(0)
    return disk, 10


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_damaged_journal_has_lost_is_kept_when_it_is_restarted(seed: int) -> None:
    went_on = 0
    for left, dice in steps(with_the_journal_alone, seed):
        try:
            start = Start(left, repair=False)
        except Corrupt:
            start = Start(left.after_kill(), repair=True)
        else:
            went_on += "A repair was interrupted: it goes on now" in start.warnings()
        assert start.keys() == expected(5)
        assert start.append() == 24
        again = Start(start.disk.after_crash(dice), repair=False)
        assert again.keys() == [*expected(5), "next"]
        assert not again.disk.exists(f"{DATA}/{REPAIR_FILE}")
    assert went_on > 5


def what_the_journal_still_has() -> tuple[SimulatedDisk, int]:
    left = still_in_the_journal(SEVERAL_SEGMENTS, 30)
    _spoil(left, 20)
    return left, 20


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_the_journal_has_put_back_is_not_cut_again(seed: int) -> None:
    for left, dice in steps(what_the_journal_still_has, seed, insisting=True):
        begun = left.exists(f"{DATA}/{REPAIR_FILE}")
        start = Start(left, repair=not begun)
        assert start.keys() == expected(30)
        assert "Lost records" not in start.warnings()
        if begun:
            assert "The journal had all that was cut" in start.warnings()
        assert start.append() == 60
        again = Start(start.disk.after_crash(dice), repair=False)
        assert again.keys() == [*expected(30), "next"]


def test_the_report_of_a_repair_that_goes_on_is_whole() -> None:
    disk, _ = in_the_first_segment()
    whole = Start(disk.after_kill(), repair=True).warnings()
    reports = []
    for left, _ in steps(in_the_first_segment, 0):
        if left.exists(f"{DATA}/{REPAIR_FILE}"):
            found = Start(left, repair=False).warnings()
            assert found.pop("A repair was interrupted: it goes on now") == {}
            found.pop("Cut a torn tail", None)
            reports.append(found)
    assert reports
    for report in reports:
        assert report["Lost records"] == whole["Lost records"]
        cut = report["Cut what was damaged"]
        # A copy may have been made before: then the next one has another name.
        for same in ("path", "position", "reason", "bytes_cut"):
            assert cut[same] == whole["Cut what was damaged"][same]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"format": 2}', b'{"format": 1, "cut": [1], "repaired": []}']
)
def test_a_book_that_cannot_be_read_forbids_the_start(content: bytes) -> None:
    disk = stopped(settings=SEVERAL_SEGMENTS)
    disk.open(f"{DATA}/{REPAIR_FILE}", create=True).pwrite(content, 0)
    with pytest.raises(Corrupt, match=REPAIR_FILE):
        Start(disk, repair=False)


def test_the_data_directory_may_have_moved_meanwhile() -> None:
    """The book names files as they are called in it."""
    disk, _ = in_the_first_segment()
    for left, _ in steps(in_the_first_segment, 0):
        if left.exists(f"{DATA}/{REPAIR_FILE}"):
            content = left.open(f"{DATA}/{REPAIR_FILE}").pread(1 << 20, 0)
            assert f"{OFFSETS}-0/".encode() in content
            assert DATA.encode() + b"/" not in content
            return
    raise AssertionError(disk)
