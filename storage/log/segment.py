"""Segment: one .log file with its indexes; append, scan, read, lookup by offset.

A segment is a file of back-to-back record batches, named by its base offset (`%020d.log`), with an
offset index and a time index beside it. `partition_log.py` chains segments; `journal.py` appends to
the active one from its flusher thread while the event loop reads below the high watermark. That
needs no lock: bytes are written before `size` says so, and an index entry comes after its bytes.

A scan recovers a segment after a crash: it trusts nothing after the recovery point, checks length,
CRC and offsets of each batch, rebuilds the indexes and reports where the sound part ends.
Kafka's counterparts: LogSegment.append, read, recover, findOffsetByTimestamp; FileRecords.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from errno import ENOENT
from typing import NamedTuple

from storage.api import Corrupt, TruncatedLog
from storage.batch.batch_walk import (
    SCAN_BYTES,
    checked_batches,
    leading_batches,
    leading_places,
    whole_batches,
)
from storage.batch.record_batch import (
    HEADER_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    InvalidBatch,
    computed_crc,
    peek_header,
)
from storage.batch.sound_batches import sound_batches
from storage.disk import Disk, File, shortage
from storage.log.index import (
    MAX_RELATIVE_OFFSET,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    BadIndex,
    OffsetIndex,
    TimeIndex,
)
from storage.log.kept_copies import free_name, keep_tail
from storage.log.transaction_index import TRANSACTION_INDEX_SUFFIX, TransactionIndex

_WALK_BYTES = 16 << 10  # read at a time where only headers matter; batch_walk.py reads all

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"


Placed = tuple[bytes, int, int]
"""(batch, last offset, greatest timestamp): a batch with its offsets, not to be parsed again."""


def in_one_piece(batches: Sequence[Placed]) -> bytes:
    """Their bytes, one after the other."""
    return batches[0][0] if len(batches) == 1 else b"".join([placed[0] for placed in batches])


class TailCut(NamedTuple):
    """A scan stopped: the file was sound up to `position`, the `bytes_cut` after it are gone."""

    path: str
    position: int
    bytes_cut: int
    reason: str
    kept_as: str = ""  # a copy of them; none of zeros


class IndexRebuilt(NamedTuple):
    """The indexes of a segment were missing or wrong and were rebuilt from its batches."""

    path: str
    reason: str


Repair = TailCut | IndexRebuilt

EVERYTHING = sys.maxsize
"""Recovery point of a log that was closed cleanly: all of it is trusted."""


class Segment:
    """One .log file and its indexes. Opens its file on first use."""

    __slots__ = (
        "_disk",
        "_file",
        "_first_seen_ms",
        "_first_timestamp",
        "_index_interval_bytes",
        "_is_retired",
        "_pinned",
        "_stem",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "is_dirty",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "offset_index",
        "path",
        "size",
        "time_index",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        *,
        suffix: str = "",
    ) -> None:
        """`suffix` ends the names of files that are not, or not any more, part of the log."""
        stem = self._stem = f"{directory}/{base_offset:020d}"
        self._disk = disk
        self._file: File | None = None
        self._pinned: File | None = None  # while names change; see `pin`
        self._is_retired = False
        self._index_interval_bytes = index_interval_bytes
        self._unindexed_bytes = 0
        self._first_timestamp = NO_TIMESTAMP
        self.path = stem + LOG_SUFFIX + suffix
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset  # the last offset of the batch that has it
        self.offset_index = OffsetIndex(stem + INDEX_SUFFIX + suffix, base_offset)
        self.time_index = TimeIndex(stem + TIME_INDEX_SUFFIX + suffix, base_offset)
        self.aborted = TransactionIndex(stem + TRANSACTION_INDEX_SUFFIX + suffix)
        self._first_seen_ms: int | None = None
        self.is_dirty = False  # it has bytes that no fsync has covered

    # --- the file ------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the file; its name is durable once the folder was synced."""
        self._file = self._disk.open(self.path, create=True)
        self._file.truncate(0)
        self.is_dirty = True

    @property
    def opened_file(self) -> File | None:
        """The file if it is open; its holder may read on, even after the segment is closed."""
        return self._file or self._pinned

    def _opened(self) -> File:
        file = self._file or self._pinned
        if file is None:
            try:
                file = self._disk.open(self.path)
            except FileNotFoundError:
                if self._pinned is None:
                    raise
            # Another segment may have got its name just before it was opened.
            file = self._pinned or file
            assert file is not None
            if self._is_retired:
                raise FileNotFoundError(ENOENT, "the log was closed or deleted", self.path)
            self._file = file
        return file

    def retire(self) -> None:
        """Close for good: another log's file may get this name, and must not be read as ours."""
        self._is_retired = True
        self.release()

    def release(self) -> None:
        """Close the file; the next use opens it again."""
        self._file = None

    def pin(self) -> None:
        """Keep the file open while its name changes, for readers that have this segment."""
        self._pinned = self._disk.open(self.path)

    def unpin(self) -> None:
        """The file has its final name: it need not be kept open."""
        self._pinned = None

    def rename(self, suffix: str) -> None:
        """Give the files another suffix, the log last; the file must be pinned."""
        old = self.paths
        self.offset_index.path = self._stem + INDEX_SUFFIX + suffix
        self.time_index.path = self._stem + TIME_INDEX_SUFFIX + suffix
        self.aborted.path = self._stem + TRANSACTION_INDEX_SUFFIX + suffix
        self.path = self._stem + LOG_SUFFIX + suffix
        for name, new_name in zip(old, self.paths, strict=True):
            if name == old[-1] or self._disk.exists(name):
                self._disk.rename(name, new_name)

    @property
    def paths(self) -> tuple[str, str, str, str]:
        """The indexes' files and the log's."""
        return self.offset_index.path, self.time_index.path, self.aborted.path, self.path

    def sync(self) -> None:
        """Make the batches durable, and the index entries that a recovery point makes trusted.

        Others may be appended meanwhile; entries of theirs wait for the next time.
        """
        self.is_dirty = False  # before: what is appended meanwhile is not covered
        offsets, times = len(self.offset_index), len(self.time_index)
        try:
            self._opened().sync()
            if not self.offset_index.is_durable or not self.time_index.is_durable:
                self.offset_index.save(self._disk, sync=True, up_to=offsets)
                self.time_index.save(self._disk, sync=True, up_to=times)
            self.aborted.save(self._disk, sync=True)
        except BaseException:  # MemoryError too: nobody knows how far it came
            self.is_dirty = True
            raise

    def seal(self) -> None:
        """Complete the indexes, durably: nothing more is appended before a restart."""
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        for index in (self.offset_index, self.time_index):
            if not index.is_durable or not self._disk.exists(index.path):
                index.save(self._disk, sync=True)
        self.aborted.save(self._disk, sync=True)

    def truncate(self, offset: int) -> None:
        """Drop every batch that holds an offset at or after `offset`."""
        position = self.position_of(offset)
        self._cut(position)
        self.next_offset = self.base_offset
        for index in (self.offset_index, self.time_index):
            index.truncate(offset)
            index.save(self._disk, sync=False)
        self.aborted.truncate(offset)
        self.aborted.save(self._disk, sync=False)
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last
        self._first_timestamp = NO_TIMESTAMP
        self._unindexed_bytes = 0
        self._scan(self.offset_index.last[1], EVERYTHING)

    def remove(self) -> None:
        """Delete the files, the log first: an index without a log is swept away at a start."""
        self._file = None
        self._disk.remove(self.path)
        for path in self.paths[:-1]:
            if self._disk.exists(path):
                self._disk.remove(path)

    def quarantine(self, reason: str) -> list[Repair]:
        """Take the file out of the log and keep it under a name that nothing reads."""
        size = self._opened().size()
        self.release()
        for path in self.paths[:-1]:  # first: an index without its log means lost offsets
            if self._disk.exists(path):
                self._disk.remove(path)
        if not size:
            self._disk.remove(self.path)
            return []
        name = free_name(self._disk, self.path)
        self._disk.rename(self.path, name)
        return [TailCut(self.path, 0, size, reason, name)]

    # --- opening what is there -------------------------------------------------------------------

    def load(self, trusted_to: int, *, sealed_at: int | None = None) -> list[Repair]:
        """Learn what the file holds. Batches at or after the offset `trusted_to` are scanned.

        `sealed_at` is the next segment's base offset: a segment that is sealed and trusted as a
        whole is not read at all. A damaged batch below `trusted_to` is Corrupt: it was durable
        once, and cutting it off would hide a loss. One above it is a torn tail, and is cut.
        """
        self.size = self._opened().size()
        repairs: list[Repair] = []
        indexed_to = -1
        try:
            self.offset_index.load(self._disk, self.size)
            self.time_index.load(self._disk)
        except BadIndex as fault:
            indexed_to = fault.last_offset
            # Both, also one that was not read: its file must be rewritten in this start.
            self.offset_index.clear()
            self.time_index.clear()
            if self.size > self._index_interval_bytes and trusted_to > self.base_offset:
                repairs.append(IndexRebuilt(self.path, str(fault)))
        else:
            if sealed_at is not None and sealed_at <= trusted_to:
                if not self.size and len(self.time_index):
                    self._refuse_truncated(sealed_at)
                self.max_timestamp, self.max_timestamp_offset = self.time_index.last
                self.next_offset = sealed_at
                return repairs
            for index in (self.offset_index, self.time_index):
                index.truncate(trusted_to)
                index.mark_unsynced()
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last
        cut = self._scan(self.offset_index.last[1], trusted_to)
        if len(self.time_index) and self.time_index.last[1] >= self.next_offset:
            self._index_again()
        if sealed_at is not None and self.next_offset <= indexed_to < sealed_at <= trusted_to:
            self._refuse_truncated(sealed_at)
        # A killed process may have left what a scan finds in the page cache only.
        self.is_dirty = cut is not None or self.next_offset > trusted_to
        if sealed_at is not None:
            # Saves each later start a rebuild of the indexes; without room they are rebuilt again.
            try:
                self.seal()
            except OSError as failure:
                if shortage(failure) is None:
                    raise
        return repairs if cut is None else [*repairs, cut]

    def _index_again(self) -> None:
        """The indexes point past the end of the file: rebuild them."""
        for index in (self.offset_index, self.time_index):
            index.truncate(self.base_offset)
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._unindexed_bytes = 0
        self.next_offset = self.base_offset
        self._scan(0, EVERYTHING)

    def _refuse_truncated(self, sealed_at: int) -> None:
        """Its index was synced with it, and points to batches that it has not got."""
        raise TruncatedLog(
            self.path,
            self.size,
            f"the file ends before offset {self.next_offset}, its indexes go on behind that",
            (self.next_offset, sealed_at - 1),
            self.paths[:2],
        )

    def _scan(self, position: int, trusted_to: int) -> TailCut | None:
        """Walk the batches from `position`: the end offset, the indexes, and what must be cut."""
        file, size = self._opened(), self.size
        if trusted_to == EVERYTHING:
            batches = self.headers(position, size)
        else:
            position = self._scan_sound(position)
            batches = checked_batches(file, position, size)
        problem = None
        try:
            for at, header in batches:
                problem = self._misplaced(at, header.size, header.base_offset, header.last_offset)
                if problem is not None:
                    break
                self._account(at, header.size, header.last_offset, header.max_timestamp)
                self.next_offset = header.next_offset
                position = at + header.size
        except InvalidBatch as fault:
            problem = fault.reason
        if problem is None:
            return None
        if self.next_offset < trusted_to:
            raise Corrupt(self.path, position, f"{problem}; offset {self.next_offset} is due there")
        tail = file.pread(min(size - position, SCAN_BYTES), position)
        is_dispensable = size - position <= SCAN_BYTES and not any(sound_batches(tail))
        kept_as = keep_tail(self._disk, self.path, position, is_dispensable=is_dispensable)
        self._cut(position)
        return TailCut(self.path, position, size - position, problem, kept_as)

    def _scan_sound(self, position: int) -> int:
        """Walk the batches that the compiled build finds sound; where `_scan` has to go on."""
        file, size = self._opened(), self.size
        while places := leading_places(file, position, size):
            for bytes_more, first_offset, last_offset, max_timestamp in places:
                if self._misplaced(position, bytes_more, first_offset, last_offset) is not None:
                    return position
                self._account(position, bytes_more, last_offset, max_timestamp)
                self.next_offset = last_offset + 1
                position += bytes_more
        return position

    def _cut(self, position: int) -> None:
        """Truncate and sync at once: bytes that a crash restored would follow newer batches."""
        self._opened().truncate(position)
        self._opened().sync()
        self.size = position

    def _misplaced(self, position: int, size: int, first: int, last: int) -> str | None:
        """Why this batch, sound in itself, cannot be the next one here; None when it can."""
        if first < self.next_offset:
            return f"offset {first} comes after {self.next_offset - 1}"
        if not 0 <= last - self.base_offset <= MAX_RELATIVE_OFFSET:
            return f"offset {last} is too far from the first, {self.base_offset}"
        if position + size > self.size:
            return "the file ends inside a batch"
        return None

    # --- appending -----------------------------------------------------------------------------

    def append(self, batches: Sequence[Placed]) -> None:
        """Write whole batches at the end, in one write. After an OSError nothing was appended."""
        content = in_one_piece(batches)
        self.is_dirty = True
        try:
            self._opened().pwrite(content, self.size)
        except OSError:
            with suppress(OSError):  # the next append overwrites it, or a scan cuts it off
                self.drop_partial_write()
            raise
        self.appended(batches)

    def appended(self, batches: Sequence[Placed]) -> None:
        """They were written at the end."""
        # Once more: a sync that began before the write was done has not covered it.
        self.is_dirty = True
        position = self.size
        for batch, last_offset, max_timestamp in batches:
            self._account(position, len(batch), last_offset, max_timestamp)
            position += len(batch)
        # In this order: a reader that sees the new size must also see that it ends elsewhere.
        self.next_offset = batches[-1][1] + 1
        self.size = position

    def drop_partial_write(self) -> None:
        """Cut off what an append that failed may have left at the end."""
        file = self._opened()
        if file.size() > self.size:
            file.truncate(self.size)

    def rewrite(self, content: bytes, position: int) -> None:
        """Write the same bytes again, so that the next fsync must write them too."""
        self.is_dirty = True
        self._opened().pwrite(content, position)

    def _account(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Update the indexes and the greatest timestamp; by Kafka's rule."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._unindexed_bytes > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += size

    def has_room_for(
        self, bytes_more: int, last_offset: int, max_bytes: int, max_index_bytes: int
    ) -> bool:
        """Is there room for this many bytes, up to this offset, and for an index entry?"""
        return (
            self.size + bytes_more <= max_bytes
            and last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
            and (len(self.offset_index) + 1) * OFFSET_ENTRY_BYTES <= max_index_bytes
            # One more entry is forced when the segment is sealed.
            and (len(self.time_index) + 2) * TIME_ENTRY_BYTES <= max_index_bytes
        )

    def last_time_ms(self) -> int:
        """When its newest record was written: as the records say, or else the file."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return self._disk.modified_ms(self.path)

    def first_seen_ms(self, now_ms: int) -> int:
        """When this process first used it: its age, if its records have no timestamps."""
        if self._first_seen_ms is None:
            self._first_seen_ms = now_ms
        return self._first_seen_ms

    def first_timestamp(self) -> int:
        """The first batch's greatest timestamp, which rolling by age counts from; -1 when empty."""
        if self._first_timestamp == NO_TIMESTAMP and self.size:
            self._first_timestamp = next(self.headers(0, self.size))[1].max_timestamp
        return self._first_timestamp

    # --- reading -------------------------------------------------------------------------------

    def headers(
        self, position: int, end: int, file: File | None = None
    ) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each batch from the one at `position` up to the byte `end`."""
        file = file or self._opened()
        chunk, chunk_start = b"", position
        while position < end:
            if position + HEADER_BYTES > chunk_start + len(chunk):
                chunk_start = position
                chunk = file.pread(min(_WALK_BYTES, end - position), position)
            try:
                header = peek_header(chunk, position - chunk_start)
            except InvalidBatch as fault:
                raise Corrupt(self.path, position, fault.reason) from None
            yield position, header
            position += header.size

    def position_of(self, offset: int, file: File | None = None) -> int:
        """Where the first batch begins whose last offset is >= `offset`; the size if none is."""
        end = self.size
        if offset >= self.next_offset:
            return end
        for position, header in self.headers(self.offset_index.lookup(offset), end, file):
            if header.last_offset >= offset:
                return position
        return end

    def _boundary(self, start: int, limit: int, up_to: int, file: File | None) -> int:
        """The end of the last batch from `start` on that ends by byte `limit`, below `up_to`."""
        end = self.size
        whole = up_to >= self.next_offset
        if whole and limit >= end:
            return end
        # Every indexed position is a boundary, so the walk starts at the last useful one.
        near = self.offset_index.boundary(limit)
        if not whole:
            near = min(near, self.offset_index.lookup(up_to))
        boundary = max(start, near)
        for position, header in self.headers(boundary, end, file):
            if header.base_offset >= up_to or position + header.size > limit:
                break
            boundary = position + header.size
        return boundary

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        up_to: int,
        at_least_one: bool,
        file: File | None = None,
    ) -> bytes | None:
        """As TopicLog.read; None when no batch here ends at or after `offset`.

        With `file`, the segment's own, nothing is opened.
        """
        size = self.size
        start = self.position_of(offset, file)
        if start >= size:
            return None
        end = self._boundary(start, start + max_bytes, up_to, file)
        if end == start and at_least_one:
            _, header = next(self.headers(start, size, file))
            if header.base_offset < up_to:
                end = start + header.size
        return self.pread(start, end, file) if end > start else b""

    def pread(self, start: int, end: int, file: File | None = None) -> bytes:
        content = (file or self._opened()).pread(end - start, start)
        if len(content) != end - start:
            raise Corrupt(self.path, start + len(content), "the file is shorter than its log")
        return content

    def batches(self, position: int, *, check: bool = False) -> Iterator[bytes]:
        """Each whole batch from `position` on, up to the present end; with its checksum checked?"""
        try:
            while check and (sound := leading_batches(self._opened(), position, self.size)):
                position += sum(map(len, sound))
                yield from sound
            for at, header, batch in whole_batches(self._opened(), position, self.size):
                position = at
                if check and (crc := computed_crc(batch, 0, header.size)) != header.crc:
                    reason = f"offset {header.base_offset}: stored crc {header.crc}, computed {crc}"
                    raise Corrupt(self.path, at, reason)
                position = at + header.size
                yield batch
        except InvalidBatch as fault:
            raise Corrupt(self.path, position, fault.reason) from None
