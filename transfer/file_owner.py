"""File ownership: files written by root get the owner of the data directory.

Root often runs the command, but never the broker: the broker cannot open files that it does not
own.
"""

import os
from collections.abc import Iterator
from pathlib import Path


def give_to_owner(directory: str) -> None:
    """Gives root's files in a directory to the owner of that directory."""
    if os.geteuid() != 0:
        return  # only root can create files of another owner
    owner = os.stat(directory)  # noqa: PTH116  beside os.chown
    for path in _written(Path(directory)):
        status = os.lstat(path)
        if (status.st_uid, status.st_gid) != (owner.st_uid, owner.st_gid) and status.st_uid == 0:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _written(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from path.iterdir()
