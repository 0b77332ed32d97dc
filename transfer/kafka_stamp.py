"""Stamp: did a broker run on this log directory since an export began to write to it?

The next export rolls back one that was killed, unless a broker used the directory in between: the
truncation would remove acknowledged commits. The rollback journal has the stamp: the size and the
modification time of every file that the export does not write: Kafka's checkpoints (rewritten every
5 and 60 s), its metadata log (a record at each start), the leader epochs of each partition (a line
at each election) and the segments of partitions without new records. Files that the export appends
to may only have grown.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from storage.data_dir import LOCK
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.repair.rollback_journal import ROLLBACK_JOURNAL_FILE

Stamp = dict[str, dict[str, list[int]]]

_UNCHANGED: Final = "unchanged"  # file -> [size, modification time in ns]
_GROWING: Final = "growing"  # file -> [size]; it has at least that
_OURS: Final = frozenset(
    (ROLLBACK_JOURNAL_FILE, f"{ROLLBACK_JOURNAL_FILE}.tmp", LOCK, CLEAN_SHUTDOWN)
)
_SEGMENT: Final = re.compile(r"(?P<base_offset>[0-9]{20})\.log")
_METADATA_LOG: Final = "__cluster_metadata-0"


def stamp_of(directory: Path, untouched: Collection[str], written: Collection[str]) -> Stamp:
    """`written` are the partitions' folders that are about to be appended to. Raises OSError."""
    unchanged = dict(_sizes_and_times(directory, directory))
    growing: dict[str, list[int]] = {}
    metadata_log = [_METADATA_LOG] if (directory / _METADATA_LOG).is_dir() else []
    for folder in (*untouched, *metadata_log):
        unchanged |= _sizes_and_times(directory, directory / folder)
    for folder in written:
        last = max(_base_offsets(directory / folder), default="")
        for name, (size, time_ns) in _sizes_and_times(directory, directory / folder):
            if not Path(name).name.startswith(last or " "):
                unchanged[name] = [size, time_ns]
            elif name.endswith(".log"):
                growing[name] = [size]
    return {_UNCHANGED: unchanged, _GROWING: growing}


def is_as_stamped(directory: Path, stamp: object) -> bool:
    """Did only the export that made the stamp write here? An unreadable file counts as no."""
    match stamp:
        case {"unchanged": dict() as unchanged, "growing": dict() as growing}:
            return (
                not (directory / CLEAN_SHUTDOWN).exists()  # the export had taken it away
                and all(_now(directory / name) == said for name, said in unchanged.items())
                and all(_has_grown(directory / name, said) for name, said in growing.items())
            )
        case _:
            return False


def _sizes_and_times(directory: Path, folder: Path) -> Iterator[tuple[str, list[int]]]:
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name not in _OURS:
            status = path.stat()
            yield str(path.relative_to(directory)), [status.st_size, status.st_mtime_ns]


def _base_offsets(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        match = _SEGMENT.fullmatch(path.name)
        if match is not None:
            yield match["base_offset"]


def _now(path: Path) -> list[int] | None:
    if not path.is_file():
        return None
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _has_grown(path: Path, said: object) -> bool:
    now = _now(path)
    match said:
        case [int() as size]:
            return now is not None and now[0] >= size
        case _:
            return False
