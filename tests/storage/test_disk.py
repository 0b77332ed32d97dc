"""The disk behind the log: the simulated one does what the real one does, and loses what it may."""

import errno
import gc
import random
from pathlib import Path

import pytest

from storage.disk import Disk, RealDisk, read_file, replace_file
from tests.simulator.disk import PowerCut, SimulatedDisk


@pytest.fixture(params=["real", "simulated"])
def disk_at(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    if request.param == "real":
        return RealDisk(), str(tmp_path)
    disk = SimulatedDisk()
    disk.make_dir("/data")
    return disk, "/data"


def test_files_are_read_and_written_at_positions(disk_at: tuple[Disk, str]) -> None:
    disk, root = disk_at
    file = disk.open(f"{root}/f", create=True)
    file.pwrite(b"hello", 3)
    assert file.size() == 8
    assert file.pread(100, 0) == b"\0\0\0hello"
    assert file.pread(2, 4) == b"el"
    assert file.pread(5, 8) == b""
    file.truncate(5)
    assert disk.open(f"{root}/f").pread(100, 0) == b"\0\0\0he"
    file.allocate(9)
    assert file.pread(100, 0) == b"\0\0\0he\0\0\0\0"
    file.allocate(2)
    assert file.size() == 9
    file.sync()
    file.close()


def test_names(disk_at: tuple[Disk, str]) -> None:
    disk, root = disk_at
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/f")
    disk.make_dir(f"{root}/d")
    with pytest.raises(FileExistsError):
        disk.make_dir(f"{root}/d")
    disk.open(f"{root}/d/f", create=True).pwrite(b"new", 0)
    disk.open(f"{root}/d/g", create=True).pwrite(b"old", 0)
    assert sorted(disk.listdir(f"{root}/d")) == ["f", "g"]
    with pytest.raises(OSError, match="empty"):
        disk.remove_dir(f"{root}/d")
    disk.rename(f"{root}/d/f", f"{root}/d/g")
    assert disk.listdir(f"{root}/d") == ["g"]
    assert read_file(disk, f"{root}/d/g") == b"new"
    assert disk.exists(f"{root}/d/g")
    assert not disk.exists(f"{root}/d/f")
    with pytest.raises(NotADirectoryError):
        disk.listdir(f"{root}/d/g")
    disk.sync_dir(f"{root}/d")
    disk.remove(f"{root}/d/g")
    disk.remove_dir(f"{root}/d")
    assert disk.listdir(root) == []


def test_replacing_a_file(disk_at: tuple[Disk, str]) -> None:
    disk, root = disk_at
    for content in (b"first, and longer", b"second"):
        replace_file(disk, f"{root}/f", content)
        assert read_file(disk, f"{root}/f") == content
    assert disk.listdir(root) == ["f"]


def test_a_real_file_is_closed_with_its_last_reference(tmp_path: Path) -> None:
    file = RealDisk().open(str(tmp_path / "f"), create=True)
    descriptors = Path("/proc/self/fd")
    gc.collect()  # what earlier tests left open
    before = len(list(descriptors.iterdir()))
    del file
    gc.collect()
    assert len(list(descriptors.iterdir())) == before - 1


def test_a_short_write_is_continued_and_its_error_raised() -> None:
    file = RealDisk().open("/dev/full")
    with pytest.raises(OSError, match="No space"):
        file.pwrite(b"x", 0)


# --- what a crash may take ---------------------------------------------------------------------


def outcomes(disk: SimulatedDisk, path: str, tries: int = 200) -> set[bytes]:
    """What `path` may hold after a crash; the disk stays as it is."""
    found = set()
    for seed in range(tries):
        left = disk.after_crash(random.Random(seed))
        found.add(read_file(left, path) if left.exists(path) else b"(gone)")
    return found


def test_what_was_synced_survives_and_the_rest_may_not() -> None:
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    file.pwrite(b"durable", 0)
    assert b"(gone)" in outcomes(disk, "/f")
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    file.pwrite(b"durable", 0)
    file.sync()
    disk.sync_dir("/")
    assert outcomes(disk, "/f") == {b"durable"}
    disk.cut_power_at = None
    file.pwrite(b"lost?", 7)
    found = outcomes(disk, "/f")
    assert {b"durable", b"durablelost?"} <= found
    assert all(content.startswith(b"durable") for content in found)
    assert b"durable" + bytes(5) in found


def test_sectors_survive_in_any_order() -> None:
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    file.allocate(1024)
    file.sync()
    disk.sync_dir("/")
    file.pwrite(b"a" * 1024, 0)
    first, second = b"a" * 512 + bytes(512), bytes(512) + b"a" * 512
    assert outcomes(disk, "/f") == {bytes(1024), first, second, b"a" * 1024}


def test_a_rename_is_whole_or_absent() -> None:
    disk = SimulatedDisk()
    replace_file(disk, "/f", b"old")
    file = disk.open("/g", create=True)
    file.pwrite(b"new", 0)
    file.sync()
    disk.rename("/g", "/f")
    assert outcomes(disk, "/f") == {b"old", b"new"}


def test_after_a_failed_sync_no_later_one_brings_it_back() -> None:
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    disk.sync_dir("/")
    file.pwrite(b"in doubt", 0)
    disk.fail_sync("f")
    with pytest.raises(OSError, match="input/output") as failure:
        file.sync()
    assert failure.value.errno == errno.EIO
    file.sync()
    assert file.pread(8, 0) == b"in doubt"
    assert {b"", b"in doubt"} <= outcomes(disk, "/f")


def test_a_full_disk_takes_a_part() -> None:
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    disk.room = 4
    with pytest.raises(OSError, match="no space"):
        file.pwrite(b"too much", 0)
    assert file.pread(10, 0) == b"too "
    file.pwrite(b"over", 0)  # what is there may be written over
    with pytest.raises(OSError, match="no space"):
        file.allocate(100)


def test_nothing_happens_after_the_power_is_cut() -> None:
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    disk.cut_power_at = disk.operations + 1
    file.pwrite(b"a", 0)
    with pytest.raises(PowerCut):
        file.pwrite(b"b", 1)
    with pytest.raises(PowerCut):
        file.sync()
    with pytest.raises(PowerCut):
        disk.remove("/f")
    assert file.pread(10, 0) == b"a"
