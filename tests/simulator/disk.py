"""Simulated disk: a disk in memory that loses what was not synced when the power fails.

It stands where `storage.disk.RealDisk` stands. What was written is visible at once; what was synced
survives `after_crash`; of the rest each 512-byte sector survives or not by a seeded coin, in any
order; of the names that changed in a directory since it was synced, a prefix survives. What was
synced is never torn by a later write to its sector; a file's new end may be torn at any byte.

Faults are armed by number or by name: `cut_power_at` (an operation), `fail_sync` (EIO, after which
what was to be synced is in doubt for good), `fail_write` (EIO, after a part was written), `room`
(ENOSPC, likewise), `fail_at` (an operation: EIO, once, and nothing was done).
"""

import errno
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from storage.api import SyncFailed

SECTOR_BYTES = 512


class PowerCut(BaseException):
    """Nothing runs after this; not an Exception, so that no handler takes it for a failed write."""


@dataclass
class _Write:
    """A change of a file: bytes at a position, or with no bytes its new size."""

    position: int
    written: bytes | None
    is_durable: bool = False
    is_in_doubt: bool = False  # a sync of it failed: no later sync makes it durable

    def apply(self, content: bytearray) -> None:
        if self.written is None:
            _resize(content, self.position)
        else:
            _write(content, self.position, self.written)


class _Inode:
    """A file's bytes: as they are read, as they were once durable, and the changes since then."""

    def __init__(self, durable: bytes = b"") -> None:
        self.content = bytearray(durable)
        self.durable = bytearray(durable)
        self.changes: list[_Write] = []
        self.modified_ms = 0  # no file has a time here, but for a test that gives it one

    def change(self, change: _Write) -> None:
        change.apply(self.content)
        self.changes.append(change)

    def sync(self) -> None:
        for change in self.changes:
            change.is_durable = not change.is_in_doubt
        if not any(change.is_in_doubt for change in self.changes):
            self.durable = bytearray(self.content)
            self.changes.clear()

    def fail_sync(self) -> None:
        for change in self.changes:
            change.is_in_doubt = not change.is_durable

    def survivor(self, chance: random.Random) -> bytes:
        content = bytearray(self.durable)
        mood = chance.choice((0.0, 0.5, 0.9, 1.0))
        for change in self.changes:
            if change.is_durable:
                change.apply(content)
                continue
            position, written = change.position, change.written
            if written is None:
                if chance.random() < mood:
                    _resize(content, position)
                continue
            for start, fragment in _sectors(position, written):
                if chance.random() < mood:
                    if start >= len(self.durable) and chance.random() < 0.1:
                        fragment = fragment[: chance.randrange(len(fragment) + 1)]
                    _write(content, start, fragment)
        if len(content) < len(self.content) and chance.random() < 0.2:
            _resize(content, len(self.content))  # the size was written, the bytes were not
        return bytes(content)


class _Directory:
    def __init__(self) -> None:
        self.entries: dict[str, _Inode | _Directory] = {}
        self.durable: dict[str, _Inode | _Directory] = {}
        self.pending: list[dict[str, _Inode | _Directory | None]] = []  # None: removed

    def change(self, changes: "dict[str, _Inode | _Directory | None]") -> None:
        """Names that change together survive together: a rename is atomic."""
        _apply(self.entries, changes)
        self.pending.append(changes)

    def write_back(self) -> None:
        for node in self.entries.values():
            if isinstance(node, _Inode):
                node.sync()
            else:
                node.write_back()
        self.durable = dict(self.entries)
        self.pending.clear()

    def survivor(self, chance: random.Random) -> "_Directory":
        names = dict(self.durable)
        for changes in self.pending[: chance.randint(0, len(self.pending))]:
            _apply(names, changes)
        left = _Directory()
        for name, node in names.items():
            kept = node.survivor(chance)
            left.entries[name] = _Inode(kept) if isinstance(kept, bytes) else kept
        left.durable = dict(left.entries)
        return left


class SimulatedDisk:
    def __init__(self, root: _Directory | None = None) -> None:
        self._root = root or _Directory()
        self._failing_syncs: list[str] = []
        self._failing_writes: list[str] = []
        self.operations = 0  # that change something
        self.cut_power_at: int | None = None
        self.fail_at: int | None = None
        self.room: int | None = None  # bytes by which files may still grow

    # --- faults --------------------------------------------------------------------------------

    def fail_sync(self, path_part: str) -> None:
        """The next sync of a file whose path has this part fails with EIO."""
        self._failing_syncs.append(path_part)

    def fail_write(self, path_part: str) -> None:
        """The next write to a file whose path has this part fails half way with EIO."""
        self._failing_writes.append(path_part)

    def after_crash(self, chance: random.Random) -> "SimulatedDisk":
        """The disk as the next start finds it; this one is dead."""
        self.cut_power_at = 0
        return SimulatedDisk(self._root.survivor(chance))

    def after_kill(self) -> "SimulatedDisk":
        """The disk after the process ended: the page cache is all there, the faults are not."""
        self.cut_power_at = 0
        return SimulatedDisk(self._root)

    def write_back(self) -> None:
        """What the kernel does within half a minute: everything is durable, and nobody told."""
        self._root.write_back()

    def _step(self) -> None:
        """Count an operation that changes something, or stop before it."""
        if self.cut_power_at is not None and self.operations >= self.cut_power_at:
            raise PowerCut
        self.operations += 1
        if self.fail_at is not None and self.operations > self.fail_at:
            self.fail_at = None
            raise OSError(errno.EIO, "input/output error")

    def _grow(self, wanted: int) -> int:
        """How many of the bytes wanted there is room for."""
        if self.room is None:
            return wanted
        granted = min(wanted, self.room)
        self.room -= granted
        return granted

    # --- Disk ----------------------------------------------------------------------------------

    def _find(self, path: str) -> "_Inode | _Directory":
        node: _Inode | _Directory = self._root
        for name in path.strip("/").split("/"):
            if isinstance(node, _Inode):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
            if not name:
                continue
            if name not in node.entries:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            node = node.entries[name]
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if isinstance(node, _Inode):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
        return node

    def _place(self, path: str) -> tuple[_Directory, str]:
        folder, _, name = path.rpartition("/")
        return self._directory(folder), name

    def open(self, path: str, *, create: bool = False) -> "SimulatedFile":
        folder, name = self._place(path)
        node = folder.entries.get(name)
        if node is None and create:
            self._step()
            node = _Inode()
            folder.change({name: node})
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return SimulatedFile(self, path, node)

    def exists(self, path: str) -> bool:
        try:
            self._find(path)
        except OSError:
            return False
        return True

    def listdir(self, path: str) -> list[str]:
        return list(self._directory(path).entries)

    def make_dir(self, path: str) -> None:
        self._step()
        folder, name = self._place(path)
        if name in folder.entries:
            raise FileExistsError(errno.EEXIST, "exists", path)
        folder.change({name: _Directory()})

    def rename(self, old: str, new: str) -> None:
        self._step()
        folder, name = self._place(old)
        new_folder, new_name = self._place(new)
        assert new_folder is folder, "the log renames within a directory only"
        folder.change({new_name: folder.entries[name], name: None})

    def make_private(self, path: str) -> None:
        self._step()
        self._find(path)

    def remove(self, path: str) -> None:
        self._step()
        folder, name = self._place(path)
        if not isinstance(self._find(path), _Inode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        folder.change({name: None})

    def copy_mtime(self, path: str, copy: str) -> None:
        """Files have no times here; but both must be there."""
        assert isinstance(self._find(path), _Inode)
        assert isinstance(self._find(copy), _Inode)

    def modified_ms(self, path: str) -> int:
        inode = self._find(path)
        assert isinstance(inode, _Inode)
        return inode.modified_ms

    def remove_dir(self, path: str) -> None:
        self._step()
        if self._directory(path).entries:
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        folder, name = self._place(path)
        folder.change({name: None})

    def sync_dir(self, path: str) -> None:
        self._sync_step(path)
        folder = self._directory(path)
        folder.durable = dict(folder.entries)
        folder.pending.clear()

    def _sync_step(self, path: str) -> None:
        try:
            self._step()
        except OSError as failure:
            raise SyncFailed(failure.errno, "fsync failed: input/output error", path) from None
        for part in self._failing_syncs:
            if part in path:
                self._failing_syncs.remove(part)
                raise SyncFailed(errno.EIO, "fsync failed: input/output error", path)

    def free_bytes(self, path: str) -> int:
        assert self.exists(path)
        return sys.maxsize if self.room is None else self.room

    # --- for files -----------------------------------------------------------------------------

    def write(self, inode: _Inode, path: str, content: bytes, position: int) -> None:
        self._step()
        for part in self._failing_writes:
            if part in path:
                self._failing_writes.remove(part)
                inode.change(_Write(position, bytes(content[: len(content) // 2])))
                raise OSError(errno.EIO, "input/output error", path)
        growth = max(position + len(content) - len(inode.content), 0)
        missing = growth - self._grow(growth)
        written = bytes(content[: len(content) - missing])
        inode.change(_Write(position, written))
        if missing:
            raise OSError(errno.ENOSPC, "no space left on device")

    def resize(self, inode: _Inode, size: int) -> None:
        self._step()
        growth = max(size - len(inode.content), 0)
        if self._grow(growth) < growth:
            raise OSError(errno.ENOSPC, "no space left on device")
        inode.change(_Write(size, None))

    def sync(self, inode: _Inode, path: str) -> None:
        try:
            self._sync_step(path)
        except OSError:
            inode.fail_sync()
            raise
        inode.sync()


class SimulatedFile:
    def __init__(self, disk: SimulatedDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    def pread(self, size: int, position: int) -> bytes:
        return bytes(self._inode.content[position : position + size])

    def pwrite(self, content: bytes, position: int) -> None:
        self._disk.write(self._inode, self._path, content, position)

    def size(self) -> int:
        return len(self._inode.content)

    def truncate(self, size: int) -> None:
        self._disk.resize(self._inode, size)

    def allocate(self, size: int) -> None:
        if size > len(self._inode.content):
            self._disk.resize(self._inode, size)

    def sync(self) -> None:
        self._disk.sync(self._inode, self._path)

    def close(self) -> None:
        """Closing makes nothing durable."""


def _apply(
    names: "dict[str, _Inode | _Directory]", changes: "dict[str, _Inode | _Directory | None]"
) -> None:
    for name, node in changes.items():
        if node is None:
            del names[name]
        else:
            names[name] = node


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _write(content: bytearray, position: int, written: bytes) -> None:
    if position > len(content):
        _resize(content, position)
    content[position : position + len(written)] = written


def _sectors(position: int, written: bytes) -> Iterator[tuple[int, bytes]]:
    """A write in the pieces that a disk writes whole."""
    start = 0
    while start < len(written):
        end = start + SECTOR_BYTES - (position + start) % SECTOR_BYTES
        yield position + start, written[start:end]
        start = end
