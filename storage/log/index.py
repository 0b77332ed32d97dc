"""Segment indexes: the sparse offset index and time index beside a .log file.

Kafka's formats: `.index` holds (offset - base: u32, file position: u32), `.timeindex` (timestamp:
i64, offset - base: u32), both rising, one entry per more than index.interval.bytes of batches. An
entry names the *last* offset of a batch and where that batch begins; a time entry says that no
record up to that offset is later than its timestamp.

Entries are kept in memory (8 and 12 bytes each) and reach the file at checkpoints and when a
segment is sealed or closed, since `segment.py` rebuilds what a crash took. One thread appends while
another may look up: an entry becomes visible by its last write, so readers need no lock.
Kafka's counterparts: OffsetIndex, TimeIndex.
"""

from array import array
from bisect import bisect_right

from storage.disk import Disk, File
from storage.log.index_entries import decode_columns, encode_columns, halves_of, of_halves, rises

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
MAX_RELATIVE_OFFSET = 2**31 - 1


class BadIndex(Exception):
    """The file is not an index of its segment; the segment rebuilds it."""

    def __init__(self, reason: str, last_offset: int = -1) -> None:
        """`last_offset`: of its last entry, where that points past the end of the log."""
        super().__init__(reason)
        self.last_offset = last_offset


class OffsetIndex:
    """offset -> the position of the batch that holds it, or of one before it."""

    __slots__ = ("_base_offset", "_offsets", "_positions", "_saved", "_synced", "path")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self._base_offset = base_offset
        self._offsets = array("I")  # relative; appended to last, after the position is there
        self._positions = array("I")
        self._saved = 0  # entries that the file has
        self._synced = 0  # that were synced; -1 while the file has other bytes too

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> tuple[int, int]:
        """(offset, position) of the last entry; (-1, 0) when empty."""
        if not self._offsets:
            return -1, 0
        return self._base_offset + self._offsets[-1], self._positions[-1]

    def append(self, offset: int, position: int) -> None:
        self._positions.append(position)
        try:
            self._offsets.append(offset - self._base_offset)
        except MemoryError:
            self._positions.pop()  # the two columns stay of one length
            raise

    def lookup(self, offset: int) -> int:
        """The position of the greatest entry at or below `offset`; 0 when there is none."""
        relative = offset - self._base_offset
        if relative < 0:
            return 0
        entry = bisect_right(self._offsets, relative) - 1
        return self._positions[entry] if entry >= 0 else 0

    def boundary(self, position: int) -> int:
        """The greatest indexed position at or below `position`; 0 when there is none."""
        entry = bisect_right(self._positions, position) - 1
        return self._positions[entry] if entry >= 0 else 0

    def truncate(self, offset: int) -> None:
        """Forget the entries at or after `offset`."""
        keep = bisect_right(self._offsets, offset - self._base_offset - 1)
        if offset <= self._base_offset:
            keep = 0
        del self._offsets[keep:], self._positions[keep:]
        if keep < self._saved:
            self._saved, self._synced = keep, -1

    def clear(self) -> None:
        """Drop all entries, whatever the file has: the next save writes the whole file."""
        del self._offsets[:], self._positions[:]
        self._saved, self._synced = 0, -1

    def mark_unsynced(self) -> None:
        """A killed process may have left it in the page cache only: the next save syncs it."""
        self._synced = -1

    def load(self, disk: Disk, log_bytes: int) -> None:
        """Read the file; BadIndex unless it rises and stays within a log of `log_bytes`."""
        content = read_whole_entries(disk, self.path, OFFSET_ENTRY_BYTES)
        self._synced = -1
        offsets, positions = decode_columns(content, 2)
        while offsets and not offsets[-1] and not positions[-1]:
            offsets.pop()  # zeros that Kafka preallocates, or that a crash left
            positions.pop()
        if not rises(offsets) or not rises(positions):
            raise BadIndex(f"{self.path} does not rise")
        if positions and positions[-1] >= log_bytes:
            last_offset = self._base_offset + offsets[-1]
            raise BadIndex(f"{self.path} points past its log", last_offset)
        self._offsets, self._positions = offsets, positions
        self._saved = self._synced = len(offsets)

    def save(self, disk: Disk, *, sync: bool, up_to: int | None = None) -> None:
        """Write the entries that the file lacks, or the first `up_to`; cut what it has too much."""
        end = len(self._offsets) if up_to is None else max(up_to, self._saved)
        lacking = slice(self._saved, end)
        content = encode_columns(self._offsets[lacking], self._positions[lacking])
        write_entries(disk, self.path, content, self._saved * OFFSET_ENTRY_BYTES, sync=sync)
        self._saved += len(content) // OFFSET_ENTRY_BYTES
        self._synced = self._saved if sync else -1

    @property
    def is_durable(self) -> bool:
        return self._synced == len(self._offsets)


class TimeIndex:
    """timestamp -> an offset before which no record is that late."""

    __slots__ = ("_base_offset", "_offsets", "_saved", "_synced", "_timestamps", "path")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self._base_offset = base_offset
        self._timestamps = array("q")  # appended to last
        self._offsets = array("I")
        self._saved = 0  # entries that the file has
        self._synced = 0  # that were synced; -1 while the file has other bytes too

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when empty."""
        if not self._timestamps:
            return -1, self._base_offset
        return self._timestamps[-1], self._base_offset + self._offsets[-1]

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if it is later than the last."""
        if timestamp_ms > self.last[0]:
            self._offsets.append(offset - self._base_offset)
            try:
                self._timestamps.append(timestamp_ms)
            except MemoryError:
                self._offsets.pop()
                raise

    def lookup(self, timestamp_ms: int) -> int:
        """An offset at or before the first record with a timestamp >= this one."""
        entry = bisect_right(self._timestamps, timestamp_ms - 1) - 1
        return self._base_offset + (self._offsets[entry] if entry >= 0 else 0)

    def truncate(self, offset: int) -> None:
        """Forget the entries at or after `offset`."""
        keep = bisect_right(self._offsets, offset - self._base_offset - 1)
        if offset <= self._base_offset:
            keep = 0
        del self._timestamps[keep:], self._offsets[keep:]
        if keep < self._saved:
            self._saved, self._synced = keep, -1

    def clear(self) -> None:
        """Drop all entries, whatever the file has: the next save writes the whole file."""
        del self._timestamps[:], self._offsets[:]
        self._saved, self._synced = 0, -1

    def mark_unsynced(self) -> None:
        """A killed process may have left it in the page cache only: the next save syncs it."""
        self._synced = -1

    def load(self, disk: Disk) -> None:
        content = read_whole_entries(disk, self.path, TIME_ENTRY_BYTES)
        self._synced = -1
        upper, lower, offsets = decode_columns(content, 3)
        timestamps = of_halves(upper, lower)
        while timestamps and not timestamps[-1] and not offsets[-1]:
            timestamps.pop()
            offsets.pop()
        if not rises(timestamps) or not rises(offsets):
            raise BadIndex(f"{self.path} does not rise")
        self._timestamps, self._offsets = timestamps, offsets
        self._saved = self._synced = len(offsets)

    def save(self, disk: Disk, *, sync: bool, up_to: int | None = None) -> None:
        end = len(self._timestamps) if up_to is None else max(up_to, self._saved)
        lacking = slice(self._saved, end)
        upper, lower = halves_of(self._timestamps[lacking])
        content = encode_columns(upper, lower, self._offsets[lacking])
        write_entries(disk, self.path, content, self._saved * TIME_ENTRY_BYTES, sync=sync)
        self._saved += len(content) // TIME_ENTRY_BYTES
        self._synced = self._saved if sync else -1

    @property
    def is_durable(self) -> bool:
        return self._synced == len(self._timestamps)


def read_whole_entries(disk: Disk, path: str, entry_bytes: int) -> bytes:
    """The file without a torn last entry; BadIndex when there is none."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        raise BadIndex(f"{path} is missing") from None
    try:
        size = file.size()
        return file.pread(size - size % entry_bytes, 0)
    finally:
        file.close()


def write_entries(disk: Disk, path: str, content: bytes, position: int, *, sync: bool) -> None:
    """Write an index file from `position` on; nothing stays after that. Raises OSError."""
    file: File = disk.open(path, create=True)
    try:
        if file.size() > position + len(content):
            file.truncate(position + len(content))
        if content:
            file.pwrite(content, position)
        if sync:
            file.sync()
    finally:
        file.close()
