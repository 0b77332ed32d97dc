"""Reserve: whether the disk has more free than what is to be left to others.

Asked before each append, so a module of its own, which is compiled.
"""

import errno
from time import monotonic

from storage.disk import Disk


class Reserve:
    """Disk space left to others: a caller that checks first fails early, with nothing half done."""

    __slots__ = ("_checked_at", "_disk", "_path", "_pause_s", "reserve_bytes")

    def __init__(self, disk: Disk, path: str, reserve_bytes: int, *, pause_s: float = 0.5) -> None:
        """Asks the disk at most once in `pause_s`; with no reserve, never."""
        self._disk = disk
        self._path = path
        self._pause_s = pause_s
        self._checked_at = 0.0
        self.reserve_bytes = reserve_bytes

    @property
    def is_due(self) -> bool:
        """Whether `check` would ask the disk."""
        return bool(self.reserve_bytes) and monotonic() - self._checked_at >= self._pause_s

    def check(self) -> None:
        """Raises OSError (ENOSPC) while less is free than the reserve."""
        if self.is_due:
            free = self._disk.free_bytes(self._path)
            if free < self.reserve_bytes:
                words = f"{free} bytes are free, the reserve is {self.reserve_bytes}"
                raise OSError(errno.ENOSPC, words, self._path)
            self._checked_at = monotonic()
