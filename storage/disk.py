"""Disk: the seam below everything in storage, and the real disk.

`Disk` is as small as the log allows, so that a simulated one (`tests/simulator/disk.py`) can lose
what was not synced, tear a write, fill up or fail an fsync, with the same log above it. Paths are
strings. Errors are OSError, as the system raises them; a failed fsync is a SyncFailed. Nothing here
retries.

Only the data directory's lock (`data_dir.py`) bypasses this seam: a lock is about processes.
"""

import errno
import os
from typing import Final, Protocol

from storage.api import SyncFailed
from storage.loop_guard import NO_GUARD, LoopGuard

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


class File(Protocol):
    """An open file, read and written at positions. Closed when the last reference goes."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only where the file ends."""

    def pwrite(self, content: bytes, position: int) -> None:
        """Write all of it, or raise: then any part of it may have been written."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def allocate(self, size: int) -> None:
        """Make the file at least `size` bytes long, the new ones zero and their room reserved."""

    def sync(self) -> None:
        """Return when the content, and what is needed to read it, is durable (fdatasync).

        Raises SyncFailed.
        """

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create` a missing file is FileNotFoundError."""

    def exists(self, path: str) -> bool: ...

    def listdir(self, path: str) -> list[str]: ...

    def make_dir(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Atomically; a file replaces the one that was there."""

    def remove(self, path: str) -> None: ...

    def make_private(self, path: str) -> None:
        """Let only the owner read and write the file."""

    def copy_mtime(self, path: str, copy: str) -> None:
        """Give a copy the modification time of the original."""

    def modified_ms(self, path: str) -> int:
        """When the file was last written to, by the clock of its file system."""

    def remove_dir(self, path: str) -> None:
        """The directory must be empty."""

    def sync_dir(self, path: str) -> None:
        """Make created, removed and renamed names in a directory durable. Raises SyncFailed."""

    def free_bytes(self, path: str) -> int:
        """How much more fits into the file system that holds this path."""


class RealFile:
    __slots__ = ("_guard", "_path", "fd")

    fd: int
    """-1 once it is closed."""

    def __init__(self, fd: int, path: str = "", guard: LoopGuard = NO_GUARD) -> None:
        """`path` names the file in what is raised."""
        self.fd = fd
        self._path = path
        self._guard = guard

    def pread(self, size: int, position: int) -> bytes:
        content = os.pread(self.fd, size, position)
        while len(content) < size:
            more = os.pread(self.fd, size - len(content), position + len(content))
            if not more:
                break
            content += more
        return content

    def pwrite(self, content: bytes, position: int) -> None:
        self._guard.check("write", self._path)
        try:
            written = os.pwrite(self.fd, content, position)
            while written < len(content):  # a nearly full disk takes a part, then says ENOSPC
                written += os.pwrite(self.fd, memoryview(content)[written:], position + written)
        except OSError as failure:
            words = f"{failure.strerror} (writing {len(content)} bytes)"
            raise OSError(failure.errno, words, self._path) from None

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def truncate(self, size: int) -> None:
        self._guard.check("truncate", self._path)
        os.ftruncate(self.fd, size)

    def allocate(self, size: int) -> None:
        self._guard.check("allocate", self._path)
        try:
            os.posix_fallocate(self.fd, 0, size)
        except OSError as failure:
            words = f"{failure.strerror} (the file takes {size} bytes)"
            raise OSError(failure.errno, words, self._path) from None

    def sync(self) -> None:
        self._guard.check("sync", self._path)
        try:
            os.fdatasync(self.fd)
        except OSError as failure:
            raise SyncFailed(failure.errno, f"fsync failed: {failure.strerror}") from None

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        # A reader may still use a segment's file when the flusher releases it: the last reference
        # closes it, so that no lock is needed between them.
        self.close()


class RealDisk:
    __slots__ = ("_guard",)

    def __init__(self, guard: LoopGuard = NO_GUARD) -> None:
        self._guard = guard

    def open(self, path: str, *, create: bool = False) -> RealFile:
        self._guard.check("open", path)
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(os.open(path, flags, 0o644), path, self._guard)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110  paths are strings below this seam

    def listdir(self, path: str) -> list[str]:
        self._guard.check("list", path)
        return os.listdir(path)  # noqa: PTH208

    def make_dir(self, path: str) -> None:
        self._guard.check("make", path)
        os.mkdir(path, 0o755)  # noqa: PTH102

    def rename(self, old: str, new: str) -> None:
        self._guard.check("rename", old)
        os.replace(old, new)  # noqa: PTH105

    def remove(self, path: str) -> None:
        self._guard.check("remove", path)
        os.unlink(path)  # noqa: PTH108

    def make_private(self, path: str) -> None:
        self._guard.check("change the mode of", path)
        os.chmod(path, 0o600)  # noqa: PTH101

    def copy_mtime(self, path: str, copy: str) -> None:
        self._guard.check("set the time of", copy)
        found = os.stat(path)  # noqa: PTH116
        os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000  # noqa: PTH116

    def remove_dir(self, path: str) -> None:
        self._guard.check("remove", path)
        os.rmdir(path)  # noqa: PTH106

    def sync_dir(self, path: str) -> None:
        self._guard.check("sync", path)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as failure:
            raise SyncFailed(failure.errno, f"fsync failed: {failure.strerror}", path) from None
        finally:
            os.close(fd)

    def free_bytes(self, path: str) -> int:
        system = os.statvfs(path)
        return system.f_bavail * system.f_frsize


def lacks_room(failure: Exception) -> bool:
    """Whether disk space alone was short, so that a retry may succeed once there is some.

    False if an fsync says so: bytes that were accepted before may be lost.
    """
    if not isinstance(failure, OSError) or isinstance(failure, SyncFailed):
        return False
    return failure.errno in _NO_ROOM


def shortage(failure: Exception) -> str | None:
    """The resource that was short, if a retry may succeed later; None for any other failure.

    Disk space, file descriptors or memory: nothing was acknowledged, and no write is in doubt.
    """
    if lacks_room(failure):
        return "disk full"
    if isinstance(failure, MemoryError):
        return "out of memory"
    if isinstance(failure, OSError) and not isinstance(failure, SyncFailed):
        if failure.errno in _NO_DESCRIPTORS:
            return "out of file descriptors"
        if failure.errno == errno.ENOMEM:
            return "out of memory"
    return None


def read_file(disk: Disk, path: str) -> bytes:
    """All of a small file."""
    file = disk.open(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


TEMPORARY: Final = ".tmp"
"""Suffix of a small file while it is written."""


def overwrite(disk: Disk, path: str, content: bytes) -> None:
    """Write a small file in place, made if it is not there. Not synced: a crash may tear it."""
    file = disk.open(path, create=True)
    try:
        file.pwrite(content, 0)
        file.truncate(len(content))
    finally:
        file.close()


def replace_file(disk: Disk, path: str, content: bytes, *, is_private: bool = False) -> None:
    """Write a small file so that a crash leaves the old content or the new, and never a mixture."""
    temporary = path + TEMPORARY
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        if is_private:  # before it has any content
            disk.make_private(temporary)
        file.pwrite(content, 0)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_dir(parent(path))


def parent(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or slash or "."
