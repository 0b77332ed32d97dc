"""A snapshot's file: what is written is read, and what is damaged, strange or too new is not."""

import random
from uuid import UUID

import pytest

from storage.snapshot import (
    InvalidSnapshot,
    Snapshot,
    SnapshotHeader,
    delete_snapshots_after,
    delete_snapshots_before,
    pack,
    read_newest_snapshot,
    snapshot_path,
    snapshot_positions,
    write_snapshot,
)
from tests.simulator.disk import SimulatedDisk

FOLDER = "/data"
TOPIC_ID = UUID(int=7)
BLOBS = {"red": pack([1, "x", None]), "": pack([]), "grün": pack([b"\x00\xff", True])}


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_dir(FOLDER)
    return disk


def about(position: int, *, topic_id: UUID = TOPIC_ID, meaning: int = 1) -> SnapshotHeader:
    return SnapshotHeader(position, topic_id, 3, 1_700_000_000_000, meaning, [["note", 1]])


def written(disk: SimulatedDisk, position: int, **changes: object) -> str:
    write_snapshot(disk, FOLDER, about(position, **changes), BLOBS.items())  # type: ignore[arg-type]
    return snapshot_path(FOLDER, position)


def newest(disk: SimulatedDisk, log_end: int = 100) -> tuple[int | None, list[str]]:
    found, ignored = read_newest_snapshot(
        disk, FOLDER, log_end=log_end, topic_id=TOPIC_ID, meaning=1
    )
    return None if found is None else found.about.position, [skipped.reason for skipped in ignored]


def test_what_is_written_is_read() -> None:
    disk = new_disk()
    path = written(disk, 42)
    found, ignored = read_newest_snapshot(disk, FOLDER, log_end=42, topic_id=TOPIC_ID, meaning=1)

    assert found is not None
    assert ignored == []
    assert found.path == path
    assert found.about == about(42)
    assert {name: found.raw(name) for name in found.sizes()} == BLOBS
    assert found.sizes() == {name: len(blob) for name, blob in BLOBS.items()}
    assert (found.read("red"), found.read(""), found.read("grün")) == (
        [1, "x", None], [], [b"\x00\xff", True],
    )  # fmt: skip


def test_an_empty_one_is_one_too() -> None:
    disk = new_disk()
    write_snapshot(disk, FOLDER, about(1), ())
    found, _ = read_newest_snapshot(disk, FOLDER, log_end=1, topic_id=TOPIC_ID, meaning=1)
    assert found is not None
    assert found.sizes() == {}


def test_the_newest_that_can_be_used_counts() -> None:
    disk = new_disk()
    assert newest(disk) == (None, [])
    for position in (7, 30, 12):
        written(disk, position)
    assert newest(disk) == (30, [])
    assert newest(disk, log_end=29) == (12, ["the log ends at 29 already"])
    assert newest(disk, log_end=0)[0] is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"topic_id": UUID(int=8)}, "topic id"), ({"meaning": 2}, "meaning is 2, 1 is understood")],
)
def test_one_of_another_topic_or_meaning_is_passed_over(
    changes: dict[str, object], reason: str
) -> None:
    disk = new_disk()
    written(disk, 7)
    written(disk, 12, **changes)
    position, reasons = newest(disk)
    assert position == 7
    assert reason in reasons[0]


def test_one_under_another_position_is_passed_over() -> None:
    disk = new_disk()
    disk.rename(written(disk, 12), snapshot_path(FOLDER, 13))
    assert newest(disk) == (None, ["it is one of position 12"])


def test_names_that_are_none_of_ours_are_left_alone() -> None:
    disk = new_disk()
    for name in ("12.groups", "00000000000000000012.groups.tmp", "x.groups", "a" * 20 + ".groups"):
        disk.open(f"{FOLDER}/{name}", create=True)
    assert snapshot_positions(disk, FOLDER) == []
    assert delete_snapshots_before(disk, FOLDER, 1_000) == 0
    assert len(disk.listdir(FOLDER)) == 4


def test_every_flipped_bit_and_every_missing_byte_is_noticed() -> None:
    disk = new_disk()
    path = written(disk, 12)
    sound = bytes(disk.open(path).pread(1 << 20, 0))
    Snapshot(path, sound)
    for bit in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidSnapshot):
            Snapshot(path, bytes(damaged))
    for length in range(len(sound)):
        with pytest.raises(InvalidSnapshot):
            Snapshot(path, sound[:length])
    for more in (b"\x00", sound):
        with pytest.raises(InvalidSnapshot):
            Snapshot(path, sound + more)


def test_a_damaged_one_gives_way_to_the_one_before() -> None:
    disk = new_disk()
    written(disk, 7)
    file = disk.open(written(disk, 12))
    file.pwrite(b"\xff", 40)
    assert newest(disk) == (7, ["the checksum does not match"])


def test_those_before_a_position_and_beyond_an_end_are_forgotten_for_good() -> None:
    disk = new_disk()
    disk.sync_dir("/")
    for position in (5, 10, 15):
        written(disk, position)
    assert delete_snapshots_before(disk, FOLDER, 10) == 1
    assert delete_snapshots_after(disk, FOLDER, 10) == 1
    assert snapshot_positions(disk, FOLDER) == [10]
    for chance in range(20):
        left = SimulatedDisk(disk._root.survivor(random.Random(chance)))
        assert snapshot_positions(left, FOLDER) == [10]
