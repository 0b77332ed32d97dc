"""What has a repair taken upon itself, and not finished yet? Written down before it is done.

A cut changes several files, and the offsets that it loses are safe only once the gap is there in
which nobody writes: a kill in between, and the next start would find a shorter log that is sound.
So the book says first what will be cut and which offsets were given away; it goes when all of that
is done. A start that finds it goes on with the repair, asked or not.
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


class RepairBook:
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

    def tells_of(self, key: TopicPartition) -> bool:
        """Has it been noted that this partition has lost records?"""
        return any(lost.topic_partition == key for one in self.entries for lost in one.lost)

    def cut(self, repaired: Repaired, cut: Cut) -> None:
        """Say it, do it, and say that it was done: from then on others write where it was."""
        self._cut = cut
        self.note(repaired)
        self.finish_cut()

    def finish_cut(self) -> None:
        """Do what is left of a cut: all of it, any part, or nothing."""
        if self._cut is not None:
            _carry_out(self._disk, self._cut)
            self._cut = None
            self._save()

    def note(self, repaired: Repaired) -> None:
        """What is lost will be told and its offsets left out, whatever happens from here on."""
        self.entries = (*self.entries, repaired)
        self._save()

    def close(self) -> None:
        """All of it is done."""
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
                    **one._asdict(),
                    "path": self._inside(one.path),
                    "kept_as": [self._inside(name) for name in one.kept_as],
                    "lost": [(*each[:-1], [key.hex() for key in each.keys]) for each in one.lost],
                }
                for one in self.entries
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
            self.entries = tuple(self._entry(one) for one in document["repaired"])
        except (ValueError, KeyError, TypeError) as fault:
            raise Corrupt(self._path, 0, f"{type(fault).__name__}: {fault}") from None

    def _entry(self, one: dict[str, object]) -> Repaired:
        lost = tuple(
            Lost(
                TopicPartition(str(topic), int(partition)),
                int(first),
                int(last),
                int(records),
                tuple(map(bytes.fromhex, keys)),
            )
            for (topic, partition), first, last, records, keys in cast(
                "list[_PlainLost]", one["lost"]
            )
        )
        return Repaired(
            self._whole(str(one["path"])),
            int(str(one["position"])),
            str(one["reason"]),
            int(str(one["bytes_cut"])),
            tuple(map(self._whole, cast("list[str]", one["kept_as"]))),
            lost,
        )

    def _inside(self, path: str) -> str:
        """As it is called in the data directory, which may be found elsewhere by the next start."""
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
    if disk.exists(cut.path):  # unless somebody has taken it away meanwhile
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
