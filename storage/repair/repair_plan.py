"""Repair plan: the write-ahead record of a repair, so that a start finishes one that was killed.

A cut changes several files, and the offsets that it loses are safe only once the log has a gap in
their place. After a kill in between, the next start would find a shorter log that is sound. So the
plan first says what will be cut and which offsets were assigned before; the file is removed when
all of that is done. A start that finds it continues the repair, asked or not.
"""

import json
from typing import Final, NamedTuple, cast

from storage.api import Corrupt, TopicPartition
from storage.disk import Disk, parent, read_file, replace_file
from storage.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX

REPAIR_FILE: Final = "rollcall-unfinished-repair.json"
_FORMAT: Final = 1


class Lost(NamedTuple):
    """Records of one partition that were stored once and are gone; the last offset is at least."""

    topic_partition: TopicPartition
    first_offset: int
    last_offset: int
    records: int  # that can still be read in the copy
    keys: tuple[bytes, ...]  # of these, in the order of their newest values


class Repaired(NamedTuple):
    """A file that was cut, and what went with it."""

    path: str
    position: int
    reason: str
    bytes_cut: int
    kept_as: tuple[str, ...]
    lost: tuple[Lost, ...]


class Cut(NamedTuple):
    """What becomes of a partition's segments, from the damaged one on; a copy of it is there."""

    path: str
    position: int
    moved: tuple[tuple[str, str], ...]  # the later ones, and the names that they get


class RepairPlan:
    """Of one data directory. Everything is durable when a call returns. Raises OSError."""

    __slots__ = ("_cut", "_directory", "_disk", "_path", "entries")

    def __init__(self, disk: Disk, directory: str) -> None:
        """Raises Corrupt if there is one that cannot be read."""
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{REPAIR_FILE}"
        self._cut: Cut | None = None
        self.entries: tuple[Repaired, ...] = ()
        if disk.exists(self._path):
            self._load()

    @property
    def is_open(self) -> bool:
        return bool(self.entries)

    def mentions(self, key: TopicPartition) -> bool:
        """Whether the plan says that this partition has lost records."""
        return any(lost.topic_partition == key for entry in self.entries for lost in entry.lost)

    def cut(self, repaired: Repaired, cut: Cut) -> None:
        """Write the plan, cut, and mark the cut as done: later appends go to the same place."""
        self._cut = cut
        self.note(repaired)
        self.finish_cut()

    def finish_cut(self) -> None:
        """Complete a cut, however far it came."""
        if self._cut is not None:
            _carry_out(self._disk, self._cut)
            self._cut = None
            self._save()

    def note(self, repaired: Repaired) -> None:
        """Record a loss, durably: it is reported and its offsets skipped even after a crash."""
        self.entries = (*self.entries, repaired)
        self._save()

    def close(self) -> None:
        """The repair is finished: remove the plan."""
        if self._disk.exists(self._path):
            self._disk.remove(self._path)
            self._disk.sync_dir(self._directory)
        self.entries = ()

    # --- the file ------------------------------------------------------------------------------

    def _save(self) -> None:
        document = {
            "format": _FORMAT,
            "cut": None
            if self._cut is None
            else self._cut._replace(
                path=self._inside(self._cut.path),
                moved=tuple((self._inside(a), self._inside(b)) for a, b in self._cut.moved),
            ),
            "repaired": [
                {
                    **entry._asdict(),
                    "path": self._inside(entry.path),
                    "kept_as": [self._inside(name) for name in entry.kept_as],
                    "lost": [(*each[:-1], [key.hex() for key in each.keys]) for each in entry.lost],
                }
                for entry in self.entries
            ],
        }
        replace_file(self._disk, self._path, json.dumps(document, indent=1).encode())

    def _load(self) -> None:
        try:
            document = json.loads(read_file(self._disk, self._path))
            if document["format"] != _FORMAT:
                raise Corrupt(self._path, 0, f"format {document['format']} is not known")
            if document["cut"] is not None:
                path, position, moved = document["cut"]
                pairs = tuple((self._whole(old), self._whole(new)) for old, new in moved)
                self._cut = Cut(self._whole(path), int(position), pairs)
            self.entries = tuple(self._entry(entry) for entry in document["repaired"])
        except (ValueError, KeyError, TypeError) as fault:
            raise Corrupt(self._path, 0, f"{type(fault).__name__}: {fault}") from None

    def _entry(self, entry: dict[str, object]) -> Repaired:
        lost = tuple(
            Lost(
                TopicPartition(str(topic), int(partition)),
                int(first),
                int(last),
                int(records),
                tuple(map(bytes.fromhex, keys)),
            )
            for (topic, partition), first, last, records, keys in cast(
                "list[_PlainLost]", entry["lost"]
            )
        )
        return Repaired(
            self._whole(str(entry["path"])),
            int(str(entry["position"])),
            str(entry["reason"]),
            int(str(entry["bytes_cut"])),
            tuple(map(self._whole, cast("list[str]", entry["kept_as"]))),
            lost,
        )

    def _inside(self, path: str) -> str:
        """The name within the data directory, which may be at another path at the next start."""
        return path.removeprefix(f"{self._directory}/")

    def _whole(self, name: str) -> str:
        return f"{self._directory}/{name}"


_PlainLost = tuple[tuple[str, int], int, int, int, list[str]]


def _carry_out(disk: Disk, cut: Cut) -> None:
    folder = parent(cut.path)
    for path, name in cut.moved:
        if disk.exists(path):
            disk.rename(path, name)
    disk.sync_dir(folder)  # the copies are there before anything is gone
    if disk.exists(cut.path):  # unless it was removed meanwhile
        file = disk.open(cut.path)
        if file.size() > cut.position:
            file.truncate(cut.position)
        file.sync()
    for path in (cut.path, *(old for old, _ in cut.moved)):
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            index = path.removesuffix(LOG_SUFFIX) + suffix
            if disk.exists(index):
                disk.remove(index)
    disk.sync_dir(folder)
