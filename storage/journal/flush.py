"""Flush: one group of batches on its way to the disk, and the writes that it consists of.

`journal.py` makes one of what is queued. The flusher writes it in Python, or the event loop has it
written by the group writer (group_writer.py); for that all files must be open.
"""

from collections import deque
from collections.abc import Callable, Mapping

from storage.api import Position, TopicPartition
from storage.journal import write_ahead
from storage.journal.group_writer import SYNC, Write, descriptor, write_failure
from storage.journal.journaled_log import Entry, JournaledLog
from storage.journal.write_ahead_pair import WriteAheadPair
from storage.log.segment import Placed, Segment, in_one_piece

StoredPositions = list[tuple[TopicPartition, Position]]

OnStored = Callable[[StoredPositions, float], None]
"""Called once per flush: the partitions of the group with their stored positions, and how many
seconds writing and syncing the group took."""

Queue = deque[Entry | list[Entry]]
"""What waits for a flush. A list goes into one flush as a whole."""


def take(queue: Queue, most_bytes: int, most_entries: int) -> list[Entry]:
    """The front of the queue, until one of these is reached; at least the first."""
    entries: list[Entry] = []
    size = 0
    for _ in range(len(queue)):
        taken = queue.popleft()
        if isinstance(taken, list):
            entries += taken
            size += sum([len(entry[1]) for entry in taken])
        else:
            entries.append(taken)
            size += len(taken[1])
        if size >= most_bytes or len(entries) >= most_entries:
            break
    return entries


class Flush:
    """`parts` are those of the group in the write-ahead file, `size` is that of the batches."""

    __slots__ = ("_files", "_segments", "parts", "placed", "size")

    def __init__(
        self,
        entries: list[Entry],
        declared: Mapping[JournaledLog, int],
        declare: Callable[[JournaledLog], bytes],
    ) -> None:
        """`declare` adds a log that is not `declared` yet, and returns the entry that says so."""
        self.size = 0
        self.parts: list[bytes] = []
        self.placed: dict[JournaledLog, list[Placed]] = {}
        self._files: WriteAheadPair  # where the group goes, and the batches of each log
        self._segments: list[Segment] = []
        for log, batch, end, timestamp_ms in entries:
            batches = self.placed.get(log)
            if batches is None:
                batches = self.placed[log] = []
                if log not in declared:
                    self.parts.append(declare(log))
            batches.append((batch, end - 1, timestamp_ms))
            self.parts += (write_ahead.batch_entry_head(declared[log], len(batch)), batch)
            self.size += len(batch)

    def find_files(self, files: WriteAheadPair) -> bool:
        """What `writes` needs; False if one must be made or opened first, or is not on the real
        disk."""
        self._files = files
        for log, batches in self.placed.items():
            partition_log = log.partition_log
            if not partition_log.is_open:
                return False
            segment = partition_log.segment_for(batches, batches[-1][2])
            if segment is None or descriptor(segment.opened_file) < 0:
                return False
            self._segments.append(segment)
        return descriptor(files.active.file) >= 0

    def writes(self) -> list[Write]:
        """The group first. They must be done: the next group is numbered after this one."""
        group, position = self._files.next_group(self.parts)
        writes = [(descriptor(self._files.active.file), group, position)]
        for segment, batches in zip(self._segments, self.placed.values(), strict=True):
            segment.is_dirty = True
            writes.append((descriptor(segment.opened_file), in_one_piece(batches), segment.size))
        return writes

    def appended(self) -> None:
        """All writes are done."""
        for segment, batches in zip(self._segments, self.placed.values(), strict=True):
            segment.appended(batches)

    def failure(self, error: int, failed_at: int) -> OSError:
        """What the flush in Python would have raised at this write."""
        if failed_at in {SYNC, 0}:
            size = sum([len(part) for part in self.parts])
            return write_failure(error, failed_at, self._files.active.path, size)
        batches = list(self.placed.values())[failed_at - 1]
        size = sum([len(batch) for batch, _, _ in batches])
        return write_failure(error, failed_at, self._segments[failed_at - 1].path, size)
