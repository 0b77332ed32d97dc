"""Log files: a partition's batches as another process reads them while the daemon appends.

The worker process reads a partition's log while the daemon goes on appending, rolling and cleaning:
by names and sizes, opening files to read only, changing nothing. Batches come in the order of their
offsets and each offset once, whatever is swapped meanwhile. At the end the reader asks
`is_unchanged`: if segments were swapped, what it read may be neither the old log nor the new one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

from storage.api import Corrupt
from storage.batch.chunks import READ_CHUNK_BYTES
from storage.batch.record_batch import (
    BATCH_HEADER,
    CRC_START,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BadChecksum,
    InvalidBatch,
    TruncatedBatch,
    peek_header,
)
from storage.disk import Disk, File
from storage.log.index import BadIndex, OffsetIndex
from storage.log.segment import INDEX_SUFFIX, LOG_SUFFIX
from storage.log.segment_swap import SWAP_SUFFIX


class FilePosition(NamedTuple):
    """Where in the files a batch begins."""

    segment: int  # its base offset
    byte: int


class LogFiles:
    """The segments of one partition, as they are when this is made. Raises OSError."""

    __slots__ = ("_disk", "_folder", "_is_swapping", "_segments", "end")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._is_swapping = False  # was any list made while segments changed their names?
        self._segments = self._list()
        self.end: FilePosition | None = None  # of what `batches` has read

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

    def batches(
        self, from_offset: int, up_to: int, begin: FilePosition | None = None
    ) -> Iterator[tuple[bytes, int]]:
        """Each batch, its checksum checked, from the one that holds `from_offset` on.

        And how many records it has, if it is plain: not compressed, of no transaction, no control
        batch; else 0. Below the offset `up_to`. `begin` is where an earlier reading ended that came
        as far as `from_offset`; without it an index says roughly where. Raises Corrupt, OSError.
        """
        unpack, crc32c = BATCH_HEADER.unpack_from, google_crc32c.value
        for base, size in self._holding(from_offset, up_to):
            path = self._path(base)
            file = self._disk.open(path)
            position, at, wanted = 0, 0, READ_CHUNK_BYTES
            try:
                position = self._position(file, base, size, from_offset, begin)
                while position < size:
                    chunk = file.pread(min(wanted, size - position), position)
                    end, last = len(chunk), len(chunk) - HEADER_BYTES
                    while at <= last:
                        (offset, length, _, magic, crc, attributes, delta, _, _, _, _, _, count) = (
                            unpack(chunk, at)
                        )
                        after = at + length + LOG_OVERHEAD
                        if magic != 2 or after < at + HEADER_BYTES or delta < 0:
                            peek_header(chunk, at)  # says what is wrong
                        if after > end:
                            break
                        next_offset = offset + delta + 1
                        if next_offset > up_to:
                            return
                        if next_offset > from_offset:
                            batch = chunk[at:after]
                            if crc32c(batch[CRC_START:]) != crc:
                                raise BadChecksum(at, f"stored crc {crc}, another one computed")
                            from_offset = next_offset
                            yield batch, 0 if attributes else count
                        at = after
                        if next_offset == up_to:
                            return  # what comes next may be half written
                    wanted = READ_CHUNK_BYTES if at else _whole(chunk, size - position)
                    position, at = position + at, 0
            except InvalidBatch as fault:
                if not self.is_unchanged():
                    return  # another file has taken its place
                raise Corrupt(path, position + fault.position, fault.reason) from None
            finally:
                self.end = FilePosition(base, position + at)
                file.close()

    def _holding(self, from_offset: int, up_to: int) -> list[tuple[int, int]]:
        """The segments that may hold something of this."""
        following = [*(base for base, _ in self._segments[1:]), up_to]
        return [
            (base, size)
            for (base, size), next_base in zip(self._segments, following, strict=False)
            if base < up_to and next_base > from_offset
        ]

    def _position(
        self, file: File, base_offset: int, size: int, offset: int, begin: FilePosition | None
    ) -> int:
        """Where a segment's batches may be read from to find this offset."""
        if (
            begin is not None
            and begin.segment == base_offset
            and _begins_with(file, begin.byte, size, offset)
        ):
            return begin.byte
        path = self._path(base_offset).removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
        index = OffsetIndex(path, base_offset)
        try:
            index.load(self._disk, size)
        except BadIndex:
            return 0
        return index.lookup(offset)


def _begins_with(file: File, byte: int, size: int, offset: int) -> bool:
    """Is there the batch that begins with this offset?"""
    front = file.pread(HEADER_BYTES, byte) if byte + HEADER_BYTES <= size else b""
    try:
        return peek_header(front, 0).base_offset == offset
    except InvalidBatch:
        return False


def _whole(chunk: bytes, left: int) -> int:
    """The bytes of a batch that a chunk begins with and does not hold; so many the file has."""
    wanted = peek_header(chunk, 0).size
    if not len(chunk) < wanted <= left:
        raise TruncatedBatch(0, f"{wanted} bytes long, {left} are there")
    return wanted
