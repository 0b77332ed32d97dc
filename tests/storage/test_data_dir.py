"""The data directory: ours alone, the same over restarts, or refused in one clear line."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from storage.data_dir import (
    DataDir,
    DataDirForeign,
    DataDirLocked,
    DataDirRefused,
    DataDirUnusable,
    random_id,
)
from storage.log.checkpoints import decode_uuid
from tests.simulator.disk import SimulatedDisk


def identity(path: Path, node_id: int = 1) -> tuple[str, int, str]:
    data_dir = DataDir(str(path), node_id)
    data_dir.close()
    kept = data_dir.identity
    return kept.cluster_id, kept.node_id, kept.directory_id


def refused(path: Path, node_id: int = 1) -> DataDirRefused:
    with pytest.raises(DataDirRefused) as refusal:
        DataDir(str(path), node_id)
    assert "\n" not in str(refusal.value)
    assert str(path) in str(refusal.value)
    return refusal.value


def test_it_is_made_with_an_identity_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    first = identity(path)
    assert decode_uuid(first[0]) is not None
    assert decode_uuid(first[2]) is not None
    assert first[0] != first[2]
    assert identity(path) == first
    lines = (path / "meta.properties").read_text().splitlines()
    assert sorted(lines) == [
        f"cluster.id={first[0]}",
        f"directory.id={first[2]}",
        "node.id=1",
        "rollcall.data.version=1",
        "version=1",
    ]


def test_a_second_daemon_is_refused_by_the_first_ones_pid(tmp_path: Path) -> None:
    data_dir = DataDir(str(tmp_path), 1)
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirLocked)
    assert refusal.pid == os.getpid()
    assert f"in use by process {os.getpid()}" in str(refusal)
    data_dir.close()
    data_dir.close()
    assert identity(tmp_path)


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from storage.data_dir import DataDir; "
        "DataDir(sys.argv[1], 1); print('locked', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirLocked)
    assert refusal.pid == holder.pid
    holder.kill()
    holder.communicate()
    assert identity(tmp_path)


def test_removing_the_lock_file_lets_nobody_in(tmp_path: Path) -> None:
    data_dir = DataDir(str(tmp_path), 1)
    (tmp_path / ".lock").unlink()
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirLocked)
    assert refusal.pid is None
    assert not (tmp_path / ".lock").exists()
    data_dir.close()
    assert identity(tmp_path)


def test_an_earlier_rollcall_locks_the_file_alone(tmp_path: Path) -> None:
    identity(tmp_path)
    with (tmp_path / ".lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert isinstance(refused(tmp_path), DataDirLocked)
    assert identity(tmp_path)


def test_a_directory_of_a_file_system_without_such_locks_has_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EBADF, "as NFS answers")
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    data_dir = DataDir(str(tmp_path), 1)
    assert isinstance(refused(tmp_path), DataDirLocked)
    data_dir.close()


def test_a_start_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    data_dir = DataDir(str(tmp_path / "deep" / "data"), 1)
    assert data_dir.is_new
    data_dir.withdraw()
    assert list(tmp_path.iterdir()) == []
    # What was there before stays.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("")
    DataDir(str(tmp_path / "mine"), 1).withdraw()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]
    first = identity(tmp_path / "mine")
    data_dir = DataDir(str(tmp_path / "mine"), 1)
    assert not data_dir.is_new
    data_dir.withdraw()
    assert identity(tmp_path / "mine") == first


def test_partitions_without_an_identity_are_distinguished_from_a_new_directory(
    tmp_path: Path,
) -> None:
    for name, is_lost in (
        ("lost+found", False),
        ("my notes-3", False),
        (f"orders-3.{'0' * 32}-stray", False),
        ("orders-3", True),
    ):
        (tmp_path / name).mkdir()
        data_dir = DataDir(str(tmp_path), 1)
        assert data_dir.is_new
        assert data_dir.lost_identity == is_lost
        data_dir.withdraw()
    identity(tmp_path)
    data_dir = DataDir(str(tmp_path), 1)
    assert not data_dir.lost_identity
    data_dir.close()


def test_an_unreadable_holder_is_still_a_holder(tmp_path: Path) -> None:
    data_dir = DataDir(str(tmp_path), 1)
    (tmp_path / ".lock").write_text("?")
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirLocked)
    assert refusal.pid is None
    data_dir.close()


def test_another_nodes_directory_is_refused(tmp_path: Path) -> None:
    identity(tmp_path, node_id=3)
    refusal = refused(tmp_path, node_id=4)
    assert isinstance(refusal, DataDirForeign)
    assert "belongs to node 3, this is node 4" in str(refusal)
    assert identity(tmp_path, node_id=3)


def test_a_real_kafkas_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    kafkas = (
        "#\n#Sat Nov 21 13:18:09 UTC 2026\nnode.id=1\ndirectory.id=zC_0r00foJWvIY3WcrBocA\n"
        "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n"
    )
    (tmp_path / "meta.properties").write_text(kafkas)
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirForeign)
    assert "Apache Kafka" in str(refusal)
    assert f"rollcall offsets import --from {tmp_path}" in str(refusal)
    assert (tmp_path / "meta.properties").read_text() == kafkas
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


def test_data_of_another_version_is_refused(tmp_path: Path) -> None:
    identity(tmp_path)
    meta = tmp_path / "meta.properties"
    meta.write_text(meta.read_text().replace("rollcall.data.version=1", "rollcall.data.version=2"))
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirForeign)
    assert "data version 2, this Rollcall supports 1" in str(refusal)


def test_kafkas_own_version_is_read_too(tmp_path: Path) -> None:
    identity(tmp_path)
    meta = tmp_path / "meta.properties"
    written = meta.read_text()
    meta.write_text(written.replace("\nversion=1", "\nversion=99"))
    refusal = refused(tmp_path)
    assert isinstance(refusal, DataDirForeign)
    assert "meta.properties has version 99, this Rollcall supports 1" in str(refusal)
    meta.write_text(written.replace("\nversion=1", ""))
    assert "damaged" in str(refused(tmp_path))


DAMAGED = (
    "",
    "garbage",
    "rollcall.data.version=1\nnode.id=1\n",
    f"cluster.id={'A' * 22}\nnode.id={'1' * 5000}\nrollcall.data.version=1\nversion=1\n",
    f"cluster.id={'A' * 22}\nnode.id=\u0661\nrollcall.data.version=1\nversion=1\n",
)


def test_a_directory_of_ours_with_half_an_identity_is_not_taken_for_a_kafkas(
    tmp_path: Path,
) -> None:
    identity(tmp_path)
    meta = tmp_path / "meta.properties"
    meta.write_text(meta.read_text().replace("rollcall.data.version=1\n", ""))
    assert "Apache Kafka" in str(refused(tmp_path))
    (tmp_path / "rollcall-journal.wal").write_text("")
    refusal = str(refused(tmp_path))
    assert "is damaged" in refusal
    assert "remove it" in refusal
    meta.unlink()  # as it says
    assert identity(tmp_path)


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_identity_is_refused_not_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    assert "damaged" in str(refused(tmp_path))
    assert (tmp_path / "meta.properties").read_text() == content


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "data", tmp_path / "a\0b"):
        assert isinstance(refused(path), DataDirUnusable)


def test_a_disk_that_takes_nothing_is_refused_and_the_lock_let_go(tmp_path: Path) -> None:
    disk = SimulatedDisk()
    for part in Path(str(tmp_path)).parts[1:]:
        place = "/".join(("", *tmp_path.parts[1 : tmp_path.parts.index(part) + 1]))
        if not disk.exists(place):
            disk.make_dir(place)
    disk.room = 0
    with pytest.raises(DataDirUnusable, match="no space left"):
        DataDir(str(tmp_path), 1, disk=disk)
    assert list(tmp_path.iterdir()) == []
    assert identity(tmp_path)


def test_a_random_id_never_begins_with_a_dash() -> None:
    assert all(random_id().bytes[0] >> 2 != 62 for _ in range(300))
    assert UUID(bytes=random_id().bytes).version == 4


def test_a_relative_path_is_shown_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirRefused, match=f"data directory {tmp_path}/file/data cannot be used"):
        DataDir("file/data", 1)
