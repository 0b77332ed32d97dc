"""What do the files of a partition hold, seen from outside the daemon that appends to them?

The worker process reads a partition's log while the daemon goes on appending, rolling and cleaning:
by names and sizes, opening files to read only, changing nothing. Batches come in the order of their
offsets and each offset once, whatever is swapped meanwhile; whether anything was swapped the reader
asks at the end (`is_unchanged`), for what it read may then be neither the old log nor the new one.
"""

from collections.abc import Iterator

from storage.api import Corrupt
from storage.disk import Disk
from storage.index import BadIndex, OffsetIndex
from storage.record_batch import BatchHeader, InvalidBatch, check_crc
from storage.segment import INDEX_SUFFIX, LOG_SUFFIX, whole_batches
from storage.segment_swap import SWAP_SUFFIX


class LogFiles:
    """The segments of one partition, as they are when this is made. Raises OSError."""

    __slots__ = ("_disk", "_folder", "_is_swapping", "_segments")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._is_swapping = False  # was any list made while segments changed their names?
        self._segments = self._list()

    def _list(self) -> list[tuple[int, int]]:
        """(base offset, size) of each segment, rising."""
        names = self._disk.listdir(self._folder)
        self._is_swapping |= any(name.endswith(SWAP_SUFFIX) for name in names)
        bases = sorted(
            int(name.removesuffix(LOG_SUFFIX))
            for name in names
            if name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal()
        )
        return [(base, self._size(self._path(base))) for base in bases]

    def _path(self, base_offset: int) -> str:
        return f"{self._folder}/{base_offset:020d}{LOG_SUFFIX}"

    def _size(self, path: str) -> int:
        file = self._disk.open(path)
        try:
            return file.size()
        finally:
            file.close()

    def is_unchanged(self) -> bool:
        """Is every segment that was there as it was, but for what was appended?"""
        before, now = self._segments, self._list()
        if self._is_swapping or not before:
            return not self._is_swapping
        *sealed, (last_base, last_size) = before
        grown = dict(now)
        return now[: len(sealed)] == sealed and grown.get(last_base, -1) >= last_size

    def batches(self, from_offset: int, up_to: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Each batch, its checksum checked, from the one that holds `from_offset` on.

        Below the offset `up_to`. Raises Corrupt, OSError.
        """
        following = [*(base for base, _ in self._segments[1:]), None]
        for (base, size), next_base in zip(self._segments, following, strict=False):
            if next_base is not None and next_base <= from_offset:
                continue
            if base >= up_to:
                return
            path = self._path(base)
            position = self._position(base, size, from_offset)
            file = self._disk.open(path)
            try:
                for at, header, batch in whole_batches(file, position, size):
                    position = at
                    next_offset = header.next_offset
                    if next_offset > up_to:
                        return
                    if next_offset > from_offset:
                        check_crc(batch, 0, header)
                        from_offset = next_offset
                        yield header, batch
                    if from_offset == up_to:
                        return  # what comes next may be half written
            except InvalidBatch as fault:
                if not self.is_unchanged():
                    return  # another file has taken its place
                raise Corrupt(path, position, fault.reason) from None
            finally:
                file.close()

    def _position(self, base_offset: int, size: int, offset: int) -> int:
        """Where a segment's batches may be read from to find this offset; 0 without an index."""
        path = self._path(base_offset).removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
        index = OffsetIndex(path, base_offset)
        try:
            index.load(self._disk, size)
        except BadIndex:
            return 0
        return index.lookup(offset)
