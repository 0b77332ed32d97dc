"""Read-only disk: runs the storage's own code over files that must not change.

`lint` reads checkpoints and the journal with the daemon's code, so that both read them the same
way. This disk replaces the real one and refuses every write.
"""

import errno
import os

from storage.disk import RealDisk, RealFile


class ReadOnlyDisk(RealDisk):
    """The real disk, without its writing half."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """A file that would have been created reads as an empty one."""
        if create and not os.path.exists(path):  # noqa: PTH110  paths are strings below this seam
            path = os.devnull
        return RealFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)

    def make_dir(self, path: str) -> None:
        raise _refused(path)

    def rename(self, old: str, new: str) -> None:
        raise _refused(f"{old} -> {new}")

    def remove(self, path: str) -> None:
        raise _refused(path)

    def remove_dir(self, path: str) -> None:
        raise _refused(path)

    def sync_dir(self, path: str) -> None:
        """Nothing was changed that could be lost."""


def _refused(path: str) -> OSError:
    return OSError(errno.EROFS, "this disk is only read", path)
