"""Copies of cut bytes: the names under which bytes that are cut off a log stay in its folder.

`*.damaged` files. A repair's copies stay until an operator removes them. What a start cuts off by
itself (a tail that a crash tore) is kept under `<file>.cut-<position>.damaged`, the latest
CUTS_KEPT_MAX of a folder; nothing reads either of them. Kafka keeps none.
"""

import re
from typing import Final

from storage.disk import Disk, lacks_room, parent

DAMAGED_SUFFIX: Final = ".damaged"

CUTS_KEPT_MAX: Final = 10
"""Copies of torn tails in one folder, so that a machine that crashes every day fills no disk."""

_CUT_NAME = re.compile(r"(\d{20})\.log\.cut-(\d+)(?:\.(\d+))?\.damaged")
_COPY_BYTES = 1 << 20


def keep_bytes(disk: Disk, path: str, content: bytes, *, is_private: bool = False) -> str:
    """Write a copy beside a file, durably but for its name; which name it got."""
    name = free_name(disk, path)
    file = disk.open(name, create=True)
    if is_private:
        disk.make_private(name)
    file.pwrite(content, 0)
    file.sync()
    return name


def free_name(disk: Disk, path: str) -> str:
    name, number = path + DAMAGED_SUFFIX, 1
    while disk.exists(name):
        number += 1
        name = f"{path}.{number}{DAMAGED_SUFFIX}"
    return name


def keep_tail(disk: Disk, path: str, position: int, *, is_dispensable: bool) -> str:
    """Copy what follows `position` before it is cut off, durably; the copy's name.

    Empty if nothing was kept: zeros, or a dispensable tail (no whole batch in it) on a disk that
    has no room for a copy. Raises OSError.
    """
    file = disk.open(path)
    size = file.size()
    if not any(
        file.pread(_COPY_BYTES, at).strip(b"\x00") for at in range(position, size, _COPY_BYTES)
    ):
        return ""
    name = _cut_name(disk, path, position)
    copy = None
    try:
        copy = disk.open(name, create=True)
        for at in range(position, size, _COPY_BYTES):
            copy.pwrite(file.pread(min(_COPY_BYTES, size - at), at), at - position)
        copy.sync()
        disk.sync_dir(parent(path))
    except OSError as failure:
        if copy is not None:
            copy.close()
            disk.remove(name)
        if not lacks_room(failure):
            raise
        if is_dispensable:
            return ""
        words = f"no room for a copy of the {size - position} bytes that a crash has damaged"
        raise OSError(failure.errno, words, path) from None
    copy.close()
    _forget_old(disk, parent(path))
    return name


def _cut_name(disk: Disk, path: str, position: int) -> str:
    """A name behind those of earlier cuts at the same place."""
    folder, _, stem = path.rpartition("/")
    name = f"{stem}.cut-{position}"
    numbers = [cut[2] for cut in _cuts(disk, folder) if cut[3].startswith(f"{name}.")]
    number = max(numbers, default=0) + 1
    return f"{folder}/{name}{'' if number == 1 else f'.{number}'}{DAMAGED_SUFFIX}"


def _cuts(disk: Disk, folder: str) -> list[tuple[int, int, int, str]]:
    """(base offset, position, number, name) of each copy, in the order of the log."""
    return sorted(
        (int(match[1]), int(match[2]), int(match[3] or 1), name)
        for name in disk.listdir(folder)
        if (match := _CUT_NAME.fullmatch(name)) is not None
    )


def _forget_old(disk: Disk, folder: str) -> None:
    for *_, name in _cuts(disk, folder)[:-CUTS_KEPT_MAX]:
        disk.remove(f"{folder}/{name}")
