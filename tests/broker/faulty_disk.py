"""Faulty disk: a real disk that can be full, fail a write or an fsync, or be slow.

Stands where the daemon's `RealDisk` stands (`broken_disk` puts it there), so that everything above
it is the daemon's own: real files, a real flusher, real sockets.
"""

import errno
import os
import threading
from collections.abc import Callable

import pytest

from storage.api import SyncFailed
from storage.disk import RealDisk, RealFile
from storage.loop_guard import LoopGuard


class FaultyDisk(RealDisk):
    def __init__(self) -> None:
        super().__init__()
        self.full_for = ""  # no file whose path has this part takes a byte; empty: none is full
        self.failing_writes_of = ""
        self.failing_syncs_of = ""
        self.failing = ""  # every operation on such a path raises `raises`
        self.raises: Callable[[str], Exception] = _no_descriptors
        self.countdown = 0  # so many of these operations go well before
        self.refused = 0  # operations that a fault has hit
        self.free = 1 << 40
        self.slow_syncs_of = "/"
        self.may_sync = threading.Event()  # while it is not set, such a sync takes its time
        self.may_sync.set()

    def operate_on(self, path: str) -> None:
        if self.failing and self.failing in path:
            if self.countdown > 0:
                self.countdown -= 1
                return
            self.refused += 1
            raise self.raises(path)

    def listdir(self, path: str) -> list[str]:
        self.operate_on(path)
        return super().listdir(path)

    def make_dir(self, path: str) -> None:
        self.operate_on(path)
        super().make_dir(path)

    def rename(self, old: str, new: str) -> None:
        self.operate_on(old)
        super().rename(old, new)

    def sync_dir(self, path: str) -> None:
        self.operate_on(path)
        super().sync_dir(path)

    def open(self, path: str, *, create: bool = False) -> "FaultyFile":
        self.operate_on(path)
        self._guard.check("open", path)
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        if create and not self.exists(path):
            self.refuse_if(self.full_for, path, errno.ENOSPC)
        return FaultyFile(self, path, os.open(path, flags, 0o644), self._guard)

    def guarded(self, guard: LoopGuard) -> "FaultyDisk":
        """As the node that has it now wants it."""
        self._guard = guard
        return self

    def free_bytes(self, path: str) -> int:
        return min(self.free, super().free_bytes(path))

    def refuse_if(self, part: str, path: str, number: int) -> None:
        if part and part in path:
            self.refused += 1
            raise OSError(number, os.strerror(number), path)


class FaultyFile(RealFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: FaultyDisk, path: str, fd: int, guard: LoopGuard) -> None:
        super().__init__(fd, path, guard)
        self._disk = disk

    def pread(self, size: int, position: int) -> bytes:
        self._disk.operate_on(self._path)
        return super().pread(size, position)

    def pwrite(self, content: bytes, position: int) -> None:
        self._disk.operate_on(self._path)
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


def _no_descriptors(path: str) -> Exception:
    return OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)


@pytest.fixture
def broken_disk(monkeypatch: pytest.MonkeyPatch) -> FaultyDisk:
    """The disk of every node that the test starts; sound until it is told otherwise."""
    disk = FaultyDisk()
    monkeypatch.setattr("config.storage_settings.RealDisk", disk.guarded)
    return disk
