"""Drill faults: a disk that is slow, full or fatal while a drill says so, for a drill's own daemon.

`rollcall.drill.faults` names a file (docs/drills.md). build.py then puts a `DrillDisk` before the
real one. The drill replaces the file's content while the daemon runs; each write and sync reads it
if it has changed. Without the key there is no such object, and no operation costs more.
"""

import errno
import os
import signal
import time
from enum import StrEnum
from typing import Final

import msgspec

from storage.disk import Disk, File

_JOURNAL: Final = "rollcall-journal"
_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
_SWAP: Final = ".log.swap"


class DiskStep(StrEnum):
    """Steps of the storage at which the daemon can kill itself."""

    BEFORE_FSYNC = "before-fsync"  # commits are written to the journal and not yet synced
    AFTER_FSYNC = "after-fsync"  # they are synced, and no commit was answered
    IN_CHECKPOINT = "in-checkpoint"  # segments are synced, and the checkpoint is not yet written
    IN_CLEAN = "in-clean"  # a cleaned segment is committed, and its sources are still there


class DrillFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is wrong at this moment. Delays in milliseconds."""

    crash_at: str = ""
    sync_delay_ms: float = 0.0
    write_delay_ms: float = 0.0
    is_full: bool = False


NO_FAULTS: Final = DrillFaults()


class FaultsFile:
    """The file through which a drill switches faults on and off."""

    __slots__ = ("_faults", "_path", "_version")

    def __init__(self, path: str) -> None:
        """The file must exist: a key that was copied by mistake stops the start. Raises OSError."""
        self._path = path
        self._version: tuple[int, int] | None = None
        self._faults = NO_FAULTS
        os.stat(path)  # noqa: PTH116

    def now(self) -> DrillFaults:
        """A file that is missing or has no valid content means that nothing is wrong."""
        try:
            found = os.stat(self._path)  # noqa: PTH116
            version = (found.st_ino, found.st_mtime_ns)
            if version != self._version:
                with open(self._path, "rb") as file:  # noqa: PTH123
                    self._faults = msgspec.json.decode(file.read(), type=DrillFaults)
                self._version = version
        except (OSError, msgspec.MsgspecError):
            self._version, self._faults = None, NO_FAULTS
        return self._faults

    def crash_if(self, step: str) -> None:
        """Kill this process if the drill has named this step: nothing is flushed or answered."""
        if self.now().crash_at == step:
            os.write(2, f"rollcall.drill.faults: killed by itself at {step}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)


class DrillFile:
    """A file of a `DrillDisk`."""

    __slots__ = ("_faults", "_file", "_is_journal", "_path")

    def __init__(self, file: File, path: str, faults: FaultsFile) -> None:
        self._file = file
        self._path = path
        self._faults = faults
        self._is_journal = os.path.basename(path).startswith(_JOURNAL)  # noqa: PTH119

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(size, position)

    def pwrite(self, content: bytes, position: int) -> None:
        faults = self._faults.now()
        if faults.write_delay_ms:
            time.sleep(faults.write_delay_ms / 1000)
        _check_room(faults, self._path)
        self._file.pwrite(content, position)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def allocate(self, size: int) -> None:
        _check_room(self._faults.now(), self._path)
        self._file.allocate(size)

    def sync(self) -> None:
        faults = self._faults.now()
        if faults.sync_delay_ms:
            time.sleep(faults.sync_delay_ms / 1000)
        if self._is_journal:
            self._faults.crash_if(DiskStep.BEFORE_FSYNC)
        self._file.sync()
        if self._is_journal:
            self._faults.crash_if(DiskStep.AFTER_FSYNC)

    def close(self) -> None:
        self._file.close()


def _check_room(faults: DrillFaults, path: str) -> None:
    if faults.is_full:
        raise OSError(errno.ENOSPC, "No space left on device (a drill's)", path)


class DrillDisk:
    """`disk` with the faults of the file in front of it."""

    __slots__ = ("_disk", "_faults")

    def __init__(self, disk: Disk, faults: FaultsFile) -> None:
        self._disk = disk
        self._faults = faults

    def open(self, path: str, *, create: bool = False) -> DrillFile:
        return DrillFile(self._disk.open(path, create=create), path, self._faults)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def listdir(self, path: str) -> list[str]:
        return self._disk.listdir(path)

    def make_dir(self, path: str) -> None:
        _check_room(self._faults.now(), path)
        self._disk.make_dir(path)

    def rename(self, old: str, new: str) -> None:
        if new.endswith(_CHECKPOINT):
            self._faults.crash_if(DiskStep.IN_CHECKPOINT)
        self._disk.rename(old, new)
        if new.endswith(_SWAP):
            self._faults.crash_if(DiskStep.IN_CLEAN)

    def remove(self, path: str) -> None:
        self._disk.remove(path)

    def make_private(self, path: str) -> None:
        self._disk.make_private(path)

    def copy_mtime(self, path: str, copy: str) -> None:
        self._disk.copy_mtime(path, copy)

    def modified_ms(self, path: str) -> int:
        return self._disk.modified_ms(path)

    def remove_dir(self, path: str) -> None:
        self._disk.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        self._disk.sync_dir(path)

    def free_bytes(self, path: str) -> int:
        return 0 if self._faults.now().is_full else self._disk.free_bytes(path)


def drilled_disk(disk: Disk, faults: FaultsFile | None) -> Disk:
    """The disk itself, unless a drill has named its faults."""
    return disk if faults is None else DrillDisk(disk, faults)
