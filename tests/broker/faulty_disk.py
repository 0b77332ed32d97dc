"""A real disk that can be told to be full, to fail a write, to fail an fsync, or to take its time.

Stands where the daemon's `RealDisk` stands (`broken_disk` puts it there), so that everything above
it is the daemon's own: real files, a real flusher, real sockets.
"""

import errno
import os
import threading

import pytest

from storage.api import SyncFailed
from storage.disk import RealDisk, RealFile


class FaultyDisk(RealDisk):
    def __init__(self) -> None:
        self.full_for = ""  # no file whose path has this part takes a byte; empty: none is full
        self.failing_writes_of = ""
        self.failing_syncs_of = ""
        self.refused = 0  # operations that a fault has hit
        self.free = 1 << 40
        self.slow_syncs_of = "/"
        self.may_sync = threading.Event()  # while it is not set, such a sync takes its time
        self.may_sync.set()

    def open(self, path: str, *, create: bool = False) -> "FaultyFile":
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        if create and not self.exists(path):
            self.refuse_if(self.full_for, path, errno.ENOSPC)
        return FaultyFile(self, path, os.open(path, flags, 0o644))

    def free_bytes(self, path: str) -> int:
        return min(self.free, super().free_bytes(path))

    def refuse_if(self, part: str, path: str, number: int) -> None:
        if part and part in path:
            self.refused += 1
            raise OSError(number, os.strerror(number), path)


class FaultyFile(RealFile):
    __slots__ = ("_disk", "_path")

    def __init__(self, disk: FaultyDisk, path: str, fd: int) -> None:
        super().__init__(fd)
        self._disk = disk
        self._path = path

    def pwrite(self, content: bytes, position: int) -> None:
        self._disk.refuse_if(self._disk.failing_writes_of, self._path, errno.EIO)
        if position + len(content) > self.size():
            self._disk.refuse_if(self._disk.full_for, self._path, errno.ENOSPC)
        super().pwrite(content, position)

    def allocate(self, size: int) -> None:
        if size > self.size():
            self._disk.refuse_if(self._disk.full_for, self._path, errno.ENOSPC)
        super().allocate(size)

    def sync(self) -> None:
        if self._disk.slow_syncs_of in self._path:
            assert self._disk.may_sync.wait(60)
        try:
            self._disk.refuse_if(self._disk.failing_syncs_of, self._path, errno.EIO)
        except OSError as failure:
            raise SyncFailed(failure.errno, f"fsync failed: {failure.strerror}") from None
        super().sync()


@pytest.fixture
def broken_disk(monkeypatch: pytest.MonkeyPatch) -> FaultyDisk:
    """The disk of every node that the test starts; sound until it is told otherwise."""
    disk = FaultyDisk()
    monkeypatch.setattr("broker.main.RealDisk", lambda: disk)
    return disk
