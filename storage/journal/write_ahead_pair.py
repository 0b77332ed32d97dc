"""Write-ahead pair: two write-ahead files, used in turn, so that commits go on during a checkpoint.

One is active and takes groups. When it has enough of them the other becomes active (`switch`).
While that fills, a checkpoint syncs the segments of all batches in the first one, which may then
begin its next pass (`renew_passed`, from the checkpoint's thread). Epochs rise from pass to pass
over both files and sequence numbers from group to group, so a start knows which came first, and
that nothing between them is missing.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from storage.api import Corrupt
from storage.disk import Disk
from storage.journal.write_ahead import CommitGroup, WriteAhead
from storage.log.segment import TailCut

FILE_NAMES = ("rollcall-journal.wal", "rollcall-journal-2.wal")


class RecoveredGroup(NamedTuple):
    """A group that a scan found, with its file and its pass: references are valid in one pass."""

    path: str
    epoch: int
    group: CommitGroup


class WriteAheadPair:
    """Both files, opened. `groups` and `begin` first, then the rest."""

    __slots__ = ("_active", "_epoch", "_files", "_sequence", "tail")

    def __init__(self, disk: Disk, folder: str, capacity: int, *, is_synced: bool) -> None:
        self._files = [
            WriteAhead(disk, f"{folder}/{name}", capacity, is_synced=is_synced)
            for name in FILE_NAMES
        ]
        self._active = self._files[0]
        self._epoch = 0
        self._sequence = 0
        self.tail: TailCut | None = None  # of the scan, where it ended in a torn group

    @property
    def _other(self) -> WriteAhead:
        first, second = self._files
        return second if self._active is first else first

    # --- after a start -------------------------------------------------------------------------

    def groups(self, *, after_clean_stop: bool = False) -> Iterator[RecoveredGroup]:
        """The whole groups of the last pass of each file, the older pass first. Raises Corrupt."""
        for file in self._files:
            file.find_pass()
        self._files.sort(key=lambda file: file.epoch)
        older, newer = self._files
        follows: int | None = None
        for group in older.groups(after_clean_stop=after_clean_stop):
            yield RecoveredGroup(older.path, older.epoch, group)
            follows = group.sequence + 1
        self.tail = older.tail
        for group in newer.groups(after_clean_stop=after_clean_stop):
            # A pass gets its first group only after the pass before it has groups.
            if older.epoch and follows != group.sequence:
                if newer.was_synced:
                    reason = f"what comes before group {group.sequence} in {newer.path} is missing"
                    raise Corrupt(older.path, older.end_position, reason)
                return  # an unsynced file lost its tail: groups after it do not count
            yield RecoveredGroup(newer.path, newer.epoch, group)
            follows = group.sequence + 1
        self.tail = self.tail or newer.tail

    def groups_behind(self, damage: Corrupt) -> Iterator[RecoveredGroup]:
        """The whole groups after the damage that `groups` raised, for a repair."""
        older, newer = self._files
        if damage.path == older.path:
            for group in older.later_groups(damage.position, -1):
                yield RecoveredGroup(older.path, older.epoch, group)
            for group in newer.all_groups():
                yield RecoveredGroup(newer.path, newer.epoch, group)
        else:
            for group in newer.later_groups(damage.position, -1):
                yield RecoveredGroup(newer.path, newer.epoch, group)

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self._files]

    def secure(self) -> None:
        """Make sure that what `groups` found stays until `begin`. Raises OSError.

        A group of the newer pass was written after the last one of the older pass was synced.
        """
        older, newer = self._files
        if not (older.was_synced and newer.has_groups):
            older.secure()
        newer.secure()

    def begin(self) -> None:
        """Begin a new pass in both files: the segments have all that was found, durably."""
        self._files.sort(key=lambda file: file.epoch)
        self._epoch = max(file.epoch for file in self._files)
        for file in self._files:
            self._renew(file)
        self._active = self._files[0]

    def _renew(self, file: WriteAhead) -> None:
        file.begin_pass(self._epoch + 1)
        self._epoch += 1

    # --- while running -------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Bytes of entries that the next group may have in the active file."""
        return self._active.room

    @property
    def written_bytes(self) -> int:
        """What the groups in the active file take up."""
        return self._active.written_bytes

    def write(self, entries: Sequence[bytes]) -> None:
        """Write one group; durable after `sync`. Raises OSError, after which nothing is certain."""
        self._active.write(entries, self._sequence)
        self._sequence += 1

    def next_group(self, entries: Sequence[bytes]) -> tuple[bytes, int]:
        """What `write` would write, and where in the active file: for who writes it himself."""
        group = self._active.next_group(entries, self._sequence)
        self._sequence += 1
        return group

    @property
    def active(self) -> WriteAhead:
        return self._active

    def sync(self) -> None:
        self._active.sync()

    def switch(self) -> None:
        """The next group goes to the other file, which must have begun its pass."""
        self._active = self._other

    def renew_passed(self) -> None:
        """Begin a new pass in the passed file: the segments have its batches, durably."""
        self._renew(self._other)

    def close(self) -> None:
        for file in self._files:
            file.close()
