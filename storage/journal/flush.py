"""Flush: one group of batches on its way to the disk, and the writes that it consists of.

`journal.py` makes one of what is queued. The flusher writes it in Python, or the event loop has it
written by the group writer (group_writer.py); for that all files must be open.
"""

from storage.journal.group_writer import SYNC, Write, descriptor, write_failure
from storage.journal.journaled_log import JournaledLog
from storage.journal.write_ahead_pair import WriteAheadPair
from storage.log.segment import Placed, Segment, joined


class Flush:
    """`parts` are those of the group in the write-ahead file, `size` is that of the batches."""

    __slots__ = ("_segments", "parts", "placed", "size")

    def __init__(
        self, size: int, parts: list[bytes], placed: dict[JournaledLog, list[Placed]]
    ) -> None:
        self.size = size
        self.parts = parts
        self.placed = placed
        self._segments: list[Segment] = []  # where the batches of each log go

    def find_files(self, files: WriteAheadPair) -> bool:
        """False if one must be made or opened first, or is not on the real disk."""
        for log, batches in self.placed.items():
            partition_log = log.partition_log
            if not partition_log.is_open:
                return False
            segment = partition_log.segment_for(batches, batches[-1][2])
            if segment is None or descriptor(segment.opened_file) < 0:
                return False
            self._segments.append(segment)
        return descriptor(files.active.file) >= 0

    def writes(self, files: WriteAheadPair) -> list[Write]:
        """The group first. They must be done: the next group is numbered after this one."""
        group, position = files.next_group(self.parts)
        writes = [(descriptor(files.active.file), group, position)]
        for segment, batches in zip(self._segments, self.placed.values(), strict=True):
            segment.is_dirty = True
            writes.append((descriptor(segment.opened_file), joined(batches), segment.size))
        return writes

    def appended(self) -> None:
        """All writes are done."""
        for segment, batches in zip(self._segments, self.placed.values(), strict=True):
            segment.appended(batches)

    def failure(self, error: int, failed_at: int, write_ahead: str) -> OSError:
        """What the flush in Python would have raised at this write."""
        if failed_at in {SYNC, 0}:
            size = sum([len(part) for part in self.parts])
            return write_failure(error, failed_at, write_ahead, size)
        batches = list(self.placed.values())[failed_at - 1]
        size = sum([len(batch) for batch, _, _ in batches])
        return write_failure(error, failed_at, self._segments[failed_at - 1].path, size)
