"""Damage: named with file, byte and offset; refused; and with a repair cut, kept aside and told."""

from dataclasses import dataclass

import pytest

from storage.api import Corrupt, LogSettings, TopicPartition
from storage.batch.record_batch import HEADER_BYTES, iter_batches, read_header
from storage.journal.journal import Journal
from storage.journal.write_ahead import FIRST_GROUP
from storage.journal.write_ahead_pair import FILE_NAMES
from storage.log.checkpoints import LOG_STARTS, RECOVERY_POINTS
from storage.log.log_store import CLEAN_SHUTDOWN, LogStore, StoreOpened
from storage.repair.repair_plan import Repaired
from storage.snapshot import SnapshotHeader, snapshot_positions, write_snapshot
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import (
    DATA,
    NOW_MS,
    OFFSETS,
    SMALL_LIMITS,
    SMALL_SEGMENTS,
    TOPIC_ID,
    Rig,
    keys_in,
    new_disk,
    records,
)

KEY = TopicPartition(OFFSETS, 0)
FOLDER = f"{DATA}/{OFFSETS}-0"
WAL = f"{DATA}/{FILE_NAMES[0]}"
ONE_SEGMENT = LogSettings(segment_bytes=1 << 20, index_interval_bytes=256)


def segments(disk: SimulatedDisk) -> list[str]:
    return sorted(f"{FOLDER}/{name}" for name in disk.listdir(FOLDER) if name.endswith(".log"))


def stopped(count: int = 40, settings: LogSettings = ONE_SEGMENT) -> SimulatedDisk:
    """A partition of `count` batches with two records each, closed cleanly."""
    disk = new_disk()
    rig = Rig(disk, settings)
    log = rig.log()
    for number in range(count):
        log.append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    rig.stop()
    return disk.after_kill()


def expected(count: int) -> list[str]:
    return [f"{number}{letter}" for number in range(count) for letter in "ab"]


@dataclass
class Repair:
    """A start with --repair."""

    disk: SimulatedDisk

    def __post_init__(self) -> None:
        self.store = LogStore(self.disk, DATA, lambda _: ONE_SEGMENT)
        self.opened: StoreOpened = self.store.open(repair=True)
        assert not self.opened.damaged
        self.journal = Journal(
            self.disk,
            self.store,
            on_stored=lambda *_: None,
            on_failed=lambda _: None,
            limits=SMALL_LIMITS,
        )
        self.journal_repaired: Repaired | None = self.journal.repair()
        left_out = [] if self.journal_repaired is None else [self.journal_repaired]
        self.store.finish_repair([*self.opened.repaired, *left_out])

    def keys(self, partition: int = 0) -> list[str]:
        key = TopicPartition(OFFSETS, partition)
        return keys_in(list(self.store.partitions()[key].batches(0)))

    def goes_on(self) -> None:
        """It takes appends, stops cleanly, and the next start finds nothing wrong."""
        log = self.journal.log(KEY)
        log.append(records("next"), NOW_MS)
        assert self.journal.pump()
        after = self.keys()
        assert after[-1] == "next"
        assert self.journal.close()
        assert self.store.close() == []
        again = Rig(self.disk.after_kill(), ONE_SEGMENT)
        assert not again.opened.damaged
        assert again.opened.repairs == ()
        assert again.keys() == after


def test_without_damage_a_repair_changes_nothing() -> None:
    disk = stopped()
    before = disk.open(segments(disk)[0]).pread(1 << 20, 0)
    repair = Repair(disk)
    assert repair.opened.repaired == ()
    assert repair.journal_repaired is None
    assert disk.open(segments(disk)[0]).pread(1 << 20, 0) == before
    repair.goes_on()


@pytest.mark.parametrize("settings", [ONE_SEGMENT, SMALL_SEGMENTS], ids=["one", "many"])
@pytest.mark.parametrize(
    ("place", "written", "reason"),
    [
        (HEADER_BYTES + 5, b"?", "stored crc"),
        (16, b"\x07", "magic 7"),
        (8, b"\x00\x00\x00\x01", "below the header's own"),
        (0, bytes(8), "offset 0 comes after 19"),
    ],
    ids=["a byte of a record", "the magic", "the length", "the offset"],
)
def test_a_damaged_batch_is_cut_with_all_that_follows_and_reported(
    place: int, written: bytes, reason: str, settings: LogSettings
) -> None:
    disk = stopped(settings=settings)
    path, position = _batch_at(disk, 20)
    whole = {name: disk.open(name).pread(1 << 20, 0) for name in segments(disk)}
    disk.open(path).pwrite(written, position + place)

    repair = Repair(disk)

    (repaired,) = repair.opened.repaired
    assert (repaired.path, repaired.position) == (path, position)
    assert reason in repaired.reason
    assert repair.keys() == expected(10)
    # What was cut is kept, byte for byte but for the damage.
    kept = b"".join(disk.open(name).pread(1 << 20, 0) for name in repaired.kept_as)
    assert all(name.endswith(".damaged") for name in repaired.kept_as)
    lost = whole[path][position:] + b"".join(
        content for name, content in whole.items() if name > path
    )
    assert len(kept) == len(lost) == repaired.bytes_cut
    assert kept[place + len(written) :] == lost[place + len(written) :]
    # And what can be read of it says which records were lost.
    (gone,) = repaired.lost
    assert (gone.topic_partition, gone.first_offset, gone.last_offset) == (KEY, 20, 79)
    readable = [key.decode() for key in gone.keys]
    assert set(expected(40)[22:]) <= set(readable) <= set(expected(40)[20:])
    assert gone.records == len(readable)
    repair.goes_on()


def test_damage_is_named_with_file_byte_and_offset_when_it_is_met() -> None:
    disk = stopped()
    path, position = _batch_at(disk, 20)
    disk.open(path).pwrite(b"?", position + HEADER_BYTES + 5)
    rig = Rig(disk, ONE_SEGMENT)  # closed cleanly: a start does not read all of it
    rig.log()
    with pytest.raises(Corrupt, match=rf"{path} at byte {position}: offset 20: stored crc"):
        rig.keys()


def test_a_torn_tail_is_no_damage_and_the_journal_restores_it() -> None:
    disk = new_disk()
    rig = Rig(disk, ONE_SEGMENT)
    log = rig.log()
    for number in range(10):
        log.append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    left = disk.after_kill()
    path = segments(left)[0]
    left.open(path).truncate(left.open(path).size() - 7)
    repair = Repair(left)
    assert repair.opened.repaired == ()
    assert repair.journal_repaired is None
    assert repair.keys() == expected(10)


def test_a_batch_that_runs_past_the_next_segment_is_repaired_above_the_recovery_point_too() -> None:
    disk = new_disk()
    rig = Rig(disk, SMALL_SEGMENTS)
    log = rig.log()
    for number in range(60):
        log.append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    left = disk.after_kill()
    first, second = segments(left)[:2]
    file = left.open(first)
    last = max(at for at, _ in iter_batches(file.pread(file.size(), 0)))
    wrong = int(second[-24:-4]) + 1
    file.pwrite(wrong.to_bytes(8, "big"), last)  # no checksum covers it
    assert [type(damage) for damage in LogStore(left, DATA).open().damaged] == [Corrupt]
    repair = Repair(left)
    assert len(repair.opened.repaired) == 1
    assert "runs past the next segment" in repair.opened.repaired[0].reason
    assert repair.keys()[: 2 * 3] == expected(3)


def still_in_the_journal(settings: LogSettings, batches: int) -> SimulatedDisk:
    """All of it is below a checkpoint, and the kill came before the journal's next pass."""
    disk = new_disk()
    rig = Rig(disk, settings)
    log = rig.log()
    for number in range(batches):
        log.append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    partition_log = rig.store.partition_log(KEY)
    assert partition_log is not None
    partition_log.flush()
    rig.store.write_checkpoints()
    return disk.after_kill()


def test_what_the_journal_still_has_is_cut_and_not_lost() -> None:
    left = still_in_the_journal(ONE_SEGMENT, 10)
    path, position = _batch_at(left, 8)
    left.open(path).pwrite(b"?", position + HEADER_BYTES + 5)
    repair = Repair(left)
    assert [done.position for done in repair.opened.repaired] == [position]
    assert repair.keys() == expected(10)
    repair.goes_on()


# --- offsets that are gone -----------------------------------------------------------------------


@pytest.mark.parametrize("victim", [0, 20, 78], ids=["the first", "a middle one", "the last"])
@pytest.mark.parametrize("settings", [ONE_SEGMENT, SMALL_SEGMENTS], ids=["one file", "many"])
def test_an_offset_that_was_lost_is_given_to_no_other_record(
    settings: LogSettings, victim: int
) -> None:
    disk = stopped(settings=settings)
    path, position = _batch_at(disk, victim)
    disk.open(path).pwrite(b"?", position + HEADER_BYTES + 5)
    write_snapshot(disk, FOLDER, SnapshotHeader(70, TOPIC_ID, 0, NOW_MS, 1, None), [])
    write_snapshot(disk, FOLDER, SnapshotHeader(10, TOPIC_ID, 0, NOW_MS, 1, None), [])
    repair = Repair(disk)
    log = repair.store.partition_log(KEY)
    assert log is not None
    assert log.log_end_offset == 80
    # A snapshot that knows what is lost is no view of this log any more.
    assert snapshot_positions(disk, FOLDER) == [
        position for position in (10, 70) if position <= victim
    ]
    assert repair.journal.log(KEY).append(records("next"), NOW_MS) == 81
    assert repair.journal.pump()

    # Killed at once: the gap stands, and so does what came after it.
    again = Rig(disk.after_kill(), settings)
    assert not again.opened.damaged
    assert again.keys() == [*expected(victim // 2), "next"]
    (part,) = again.store.partitions().values()
    found = part.read(victim, 1 << 20, up_to=81, at_least_one=True)
    assert read_header(found).base_offset == 80, "a reader in the gap goes on behind it"


# --- the checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [RECOVERY_POINTS, LOG_STARTS])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_damaged_checkpoint_is_refused_and_mended_by_a_repair(name: str, is_clean: bool) -> None:
    disk = stopped()
    path = f"{DATA}/{name}"
    disk.open(path, create=True).pwrite(b"0\n99\n", 0)
    if not is_clean:
        disk.remove(f"{DATA}/{CLEAN_SHUTDOWN}")
    disk = disk.after_kill()
    with pytest.raises(Corrupt, match=name):
        LogStore(disk, DATA).open()
    disk = disk.after_kill()
    repair = Repair(disk)
    (repaired,) = repair.opened.repaired
    assert (repaired.path, repaired.kept_as, repaired.lost) == (path, (f"{path}.damaged",), ())
    assert repair.keys() == expected(40)
    repair.goes_on()


def test_without_recovery_points_a_repair_takes_no_damage_for_a_torn_tail() -> None:
    disk = stopped()
    disk.open(f"{DATA}/{RECOVERY_POINTS}").pwrite(b"?", 0)
    disk.remove(f"{DATA}/{CLEAN_SHUTDOWN}")
    path, position = _batch_at(disk, 20)
    disk.open(path).pwrite(b"?", position + HEADER_BYTES + 5)
    repair = Repair(disk)
    assert [done.path for done in repair.opened.repaired] == [f"{DATA}/{RECOVERY_POINTS}", path]
    (lost,) = repair.opened.repaired[1].lost
    assert (lost.first_offset, lost.last_offset) == (20, 79)
    repair.goes_on()


@pytest.mark.parametrize(
    ("place", "end"),
    [(HEADER_BYTES + 5, 79), (16, 78), (57, 78)],
    ids=["a record", "magic", "many"],
)
def test_the_last_batch_says_itself_where_it_ends_unless_that_is_damaged_too(
    place: int, end: int
) -> None:
    disk = stopped()
    disk.open(f"{DATA}/{RECOVERY_POINTS}").pwrite(b"?", 0)
    path, position = _batch_at(disk, 78)
    disk.open(path).pwrite(b"?", position + place)
    repair = Repair(disk)
    (lost,) = repair.opened.repaired[1].lost
    assert (lost.first_offset, lost.last_offset) == (78, end)
    repair.goes_on()


# --- the journal ---------------------------------------------------------------------------------


def journaled(count: int = 12) -> SimulatedDisk:
    """Two partitions, one group of the journal for each pair of batches, then a kill."""
    disk = new_disk()
    rig = Rig(disk, ONE_SEGMENT)
    logs = [rig.log(0), rig.log(1)]
    for number in range(count):
        for log in logs:
            log.append(records(f"{number}a", f"{number}b"), NOW_MS + number)
        rig.journal.pump()
    return disk.after_kill()


def _damage_group(disk: SimulatedDisk, number: int) -> int:
    file, position = disk.open(WAL), FIRST_GROUP
    for _ in range(number):
        length = int.from_bytes(file.pread(4, position + 24), "big")
        position += -(-(28 + length) // 512) * 512
    file.pwrite(b"?", position + 40)
    return position


def test_a_damaged_group_before_others_forbids_the_start() -> None:
    disk = journaled()
    position = _damage_group(disk, 5)
    with pytest.raises(Corrupt, match=f"{WAL} at byte {position}: group 5 is damaged"):
        Rig(disk, ONE_SEGMENT)


def test_with_whole_segments_a_damaged_journal_loses_nothing() -> None:
    disk = journaled()
    position = _damage_group(disk, 5)
    repair = Repair(disk)
    repaired = repair.journal_repaired
    assert repaired is not None
    assert (repaired.path, repaired.position, repaired.lost) == (WAL, position, ())
    assert repair.keys(0) == repair.keys(1) == expected(12)
    assert {f"{DATA}/{name}.damaged" for name in FILE_NAMES} == set(repaired.kept_as)
    repair.goes_on()


def test_with_lost_segments_too_a_damaged_journal_loses_what_it_alone_had() -> None:
    disk = journaled()
    _damage_group(disk, 5)
    disk.open(segments(disk)[0]).truncate(0)  # of partition 0; partition 1's is whole
    repair = Repair(disk)
    repaired = repair.journal_repaired
    assert repaired is not None
    (lost,) = repaired.lost
    assert (lost.topic_partition, lost.first_offset, lost.last_offset) == (KEY, 10, 23)
    assert [key.decode() for key in lost.keys] == expected(12)[12:]
    assert repair.keys(0) == expected(5)
    assert repair.keys(1) == expected(12)
    repair.goes_on()


def _batch_at(disk: SimulatedDisk, offset: int) -> tuple[str, int]:
    """(path, position) of the batch that begins with this offset."""
    for path in segments(disk):
        content, position = disk.open(path).pread(1 << 20, 0), 0
        while position < len(content):
            if int.from_bytes(content[position : position + 8], "big") == offset:
                return path, position
            position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    raise AssertionError(f"no batch begins with {offset}")
