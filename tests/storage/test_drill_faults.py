"""Drill faults: what the file of a drill does to the disk, and what it does not do."""

import errno
import os
import signal
from pathlib import Path

import pytest

from storage import drill_faults
from storage.disk import RealDisk, RealFile, lacks_room
from storage.drill_faults import DrillDisk, FaultsFile, drilled_disk


def given_faults(folder: Path, text: str) -> FaultsFile:
    """As a drill does: written beside it, and renamed."""
    new = folder / "faults.new"
    new.write_text(text)
    new.replace(folder / "faults.json")
    return FaultsFile(str(folder / "faults.json"))


def given_disk(folder: Path, text: str = "{}") -> DrillDisk:
    return DrillDisk(RealDisk(), given_faults(folder, text))


def test_without_a_file_the_disk_is_the_real_one() -> None:
    disk = RealDisk()
    assert drilled_disk(disk, None) is disk


def test_a_file_that_is_missing_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FaultsFile(str(tmp_path / "none.json"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"unknown": 1}', '{"is_full": "yes"}'])
def test_a_file_without_valid_content_means_no_faults(tmp_path: Path, text: str) -> None:
    disk = given_disk(tmp_path, text)
    file = disk.open(str(tmp_path / "log"), create=True)
    file.pwrite(b"content", 0)
    assert file.pread(7, 0) == b"content"


def test_a_disk_is_full_for_as_long_as_the_file_says(tmp_path: Path) -> None:
    disk = given_disk(tmp_path)
    file = disk.open(str(tmp_path / "log"), create=True)
    file.pwrite(b"before", 0)

    given_faults(tmp_path, '{"is_full": true}')
    for refused in (
        lambda: file.pwrite(b"x", 0),
        lambda: file.allocate(100),
        lambda: disk.make_dir(str(tmp_path / "new")),
    ):
        with pytest.raises(OSError, match="No space left") as failure:
            refused()
        assert failure.value.errno == errno.ENOSPC
        assert lacks_room(failure.value)
    assert disk.free_bytes(str(tmp_path)) == 0
    assert file.pread(6, 0) == b"before"

    given_faults(tmp_path, "{}")
    file.pwrite(b"behind", 0)
    assert file.pread(6, 0) == b"behind"
    assert disk.free_bytes(str(tmp_path)) > 0


def test_syncs_and_writes_are_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(drill_faults.time, "sleep", slept.append)
    disk = given_disk(tmp_path, '{"sync_delay_ms": 250, "write_delay_ms": 20}')
    file = disk.open(str(tmp_path / "log"), create=True)

    file.pwrite(b"content", 0)
    file.sync()

    assert slept == [0.02, 0.25]


def reach_step(disk: DrillDisk, folder: Path, step: str) -> None:
    """No other file than the journal's, and no other rename, is a step."""
    disk.open(str(folder / "other.log"), create=True).sync()
    disk.rename(str(folder / "old"), str(folder / "older"))
    (folder / "reached").touch()
    if "fsync" in step:
        RealFile.sync = lambda _: (folder / "done").touch()
        disk.open(str(folder / "rollcall-journal.wal"), create=True).sync()
    elif step == "in-checkpoint":
        disk.rename(str(folder / "reached"), str(folder / "recovery-point-offset-checkpoint"))
    else:
        disk.rename(str(folder / "reached"), str(folder / "0.log.swap"))


@pytest.mark.parametrize(
    ("step", "has_happened"),
    [("before-fsync", False), ("after-fsync", True), ("in-checkpoint", False), ("in-clean", True)],
)
def test_the_process_ends_at_its_step(tmp_path: Path, step: str, has_happened: bool) -> None:
    given_faults(tmp_path, f'{{"crash_at": "{step}"}}')
    disk = DrillDisk(RealDisk(), FaultsFile(str(tmp_path / "faults.json")))
    (tmp_path / "old").write_bytes(b"")
    pid = os.fork()
    if pid == 0:
        try:
            reach_step(disk, tmp_path, step)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    made = {path.name for path in tmp_path.iterdir()}
    assert ("done" in made or "0.log.swap" in made) is has_happened
    assert "recovery-point-offset-checkpoint" not in made
    assert "older" in made
