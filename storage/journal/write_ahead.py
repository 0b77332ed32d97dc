"""Write-ahead file: the format of the journal's files, and the scan of one at a start.

The journal has two, each preallocated and written from the front in *passes*. While one file takes
groups, a checkpoint syncs the segments of the batches that the other one holds; then that one
begins a new pass at its front. Epochs order the passes of both files. Layout, all integers
big-endian:

    byte 0 and 4096   two slots, written in turn; the whole one with the greater epoch counts:
                      magic "RollWAL1", epoch u64, is_synced u8, crc32c u32 of what precedes it
    byte 8192 on      groups, each beginning at a multiple of 512:
                      magic u32, crc32c u32 of what follows, epoch u64, sequence u64, length u32
                      and `length` bytes of entries, each a kind u8 and
                        1 declare: reference u32, partition i32, topic id (16), topic (u16 + utf8)
                        2 batch:   reference u32, length u32, a record batch v2 with its offsets

The first write to blocks that are only preallocated also changes the file's metadata, which each
sync would then have to write too. So with the first group beyond what this process has written, a
stretch of zeros behind it is written, and the groups that follow overwrite these.

A group is what one flush made durable: all of it counts or nothing. Bytes of an earlier pass carry
an earlier epoch, so they are never taken for groups of this one; the slots alternate so that a torn
slot leaves the other. A group begins in a sector of its own, so that a torn write cannot reach into
an acknowledged one. Sequence numbers run on from one file to the other, so that a group that is
missing at the end of a pass is noticed.

A torn group ends the scan: it was never acknowledged. Where each group was synced before the next
one was written (`is_synced`), a whole group *behind* a torn one, in this file or in the next pass,
proves that an acknowledged group was damaged: that is Corrupt, not a torn tail.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple
from uuid import UUID

import google_crc32c

from storage.api import Corrupt, TopicPartition
from storage.disk import Disk, File, parent
from storage.log.segment import TailCut

FIRST_GROUP = 8192
_SLOT_BYTES = 4096
_SECTOR_BYTES = 512
_READ_BYTES = 1 << 20

ZEROS_AHEAD: Final = 1 << 18
"""Bytes that are written behind a group where nothing was written yet."""

_SLOT = Struct(">8sQB")
_SLOT_CRC = Struct(">I")
_SLOT_MAGIC = b"RollWAL1"
_GROUP = Struct(">IIQQI")
_GROUP_PREFIX = Struct(">II")
_GROUP_COVERED = Struct(">QQI")
_GROUP_MAGIC = 0x526C4772
_GROUP_MAGIC_BYTES = _GROUP_MAGIC.to_bytes(4, "big")
_GROUP_CRC_START = 8

_DECLARE = Struct(">BIi16sH")
_BATCH = Struct(">BII")
_KIND_DECLARE, _KIND_BATCH = 1, 2

BATCH_OVERHEAD: int = _BATCH.size
DECLARE_OVERHEAD: int = _DECLARE.size


class Declared(NamedTuple):
    """From here on in this pass, `reference` is this partition."""

    reference: int
    topic_partition: TopicPartition
    topic_id: UUID


class Journaled(NamedTuple):
    """A batch of the partition with this reference."""

    reference: int
    batch: bytes


def declare(reference: int, topic_partition: TopicPartition, topic_id: UUID) -> bytes:
    topic = topic_partition.topic.encode()
    head = (_KIND_DECLARE, reference, topic_partition.partition, topic_id.bytes, len(topic))
    return _DECLARE.pack(*head) + topic


def batch_entry_head(reference: int, batch_bytes: int) -> bytes:
    """What goes before a batch."""
    return _BATCH.pack(_KIND_BATCH, reference, batch_bytes)


def read_entries(payload: bytes) -> Iterator[Declared | Journaled]:
    """The entries of a group; ValueError where they make no sense."""
    position = 0
    while position < len(payload):
        kind = payload[position]
        try:
            if kind == _KIND_BATCH:
                _, reference, length = _BATCH.unpack_from(payload, position)
                position += _BATCH.size
                yield Journaled(reference, payload[position : position + length])
            elif kind == _KIND_DECLARE:
                _, reference, partition, topic_id, length = _DECLARE.unpack_from(payload, position)
                position += _DECLARE.size
                topic = payload[position : position + length].decode()
                yield Declared(reference, TopicPartition(topic, partition), UUID(bytes=topic_id))
            else:
                raise ValueError(f"unknown kind {kind}")
        except struct_error:
            raise ValueError("an entry is cut short") from None
        position += length
    if position != len(payload):
        raise ValueError("the last entry is cut short")


class CommitGroup(NamedTuple):
    """What one flush wrote: its position in the file, its sequence number, its entries."""

    position: int
    sequence: int
    payload: bytes


class WriteAhead:
    """One file, opened. `find_pass` and `groups` first, then `begin_pass`, `write` and `sync`."""

    __slots__ = (
        "_capacity",
        "_chunk",
        "_chunk_start",
        "_file",
        "_is_synced",
        "_last_found",
        "_next_slot",
        "_position",
        "_written_end",
        "end_position",
        "epoch",
        "path",
        "tail",
        "was_synced",
    )

    def __init__(self, disk: Disk, path: str, capacity: int, *, is_synced: bool) -> None:
        self.path = path
        self.tail: TailCut | None = None
        self.epoch = 0  # of the last pass; 0 in a file that never had one
        self.was_synced = False  # in the pass that a start finds
        self._capacity = capacity
        self._is_synced = is_synced
        self._last_found = (FIRST_GROUP, 0)  # position and bytes of the last group
        self._chunk = b""  # read ahead while a start looks for groups
        self._chunk_start = 0
        self._next_slot = 0  # never the one that counts
        self._position = FIRST_GROUP
        self._written_end = FIRST_GROUP  # by this process, zeros included
        self.end_position = FIRST_GROUP  # where the scan of a start ended
        is_new = not disk.exists(path)
        self._file: File = disk.open(path, create=True)
        if is_new:
            disk.sync_dir(parent(path))

    @property
    def room(self) -> int:
        """Bytes of entries that the next group may have."""
        return self._capacity - self._position - _GROUP.size

    @property
    def written_bytes(self) -> int:
        """What the groups of this pass take up."""
        return self._position - FIRST_GROUP

    def write(self, entries: Sequence[bytes], sequence: int) -> None:
        """Write one group; durable after `sync`. Raises OSError, after which nothing is certain."""
        self._file.pwrite(*self.next_group(entries, sequence))

    def next_group(self, entries: Sequence[bytes], sequence: int) -> tuple[bytes, int]:
        """The content and position of the next write, which must follow."""
        payload = b"".join(entries)
        covered = _GROUP_COVERED.pack(self.epoch, sequence, len(payload)) + payload
        group = _GROUP_PREFIX.pack(_GROUP_MAGIC, google_crc32c.value(covered)) + covered
        position, self._position = self._position, _next_sector(self._position + len(group))
        if self._is_synced and self._position > self._written_end:
            self._written_end = min(self._position + ZEROS_AHEAD, self._capacity)
            group = group.ljust(self._written_end - position, b"\0")
        return group, position

    @property
    def file(self) -> File:
        return self._file

    def sync(self) -> None:
        self._file.sync()

    def begin_pass(self, epoch: int) -> None:
        """Discard every group: the segments have them, durably. Durable when it returns."""
        assert epoch > self.epoch, "the epochs of passes rise"
        size = self._file.size()
        if size > self._capacity:
            self._file.truncate(self._capacity)
        if size != self._capacity:
            self._file.allocate(self._capacity)
            self._written_end = FIRST_GROUP
        if not self.epoch:
            self._write_slot(epoch)  # a file with groups in it has no blank slot, ever
        self._write_slot(epoch)
        self._position = FIRST_GROUP

    def _write_slot(self, epoch: int) -> None:
        slot = _SLOT.pack(_SLOT_MAGIC, epoch, self._is_synced)
        slot += _SLOT_CRC.pack(google_crc32c.value(slot))
        self._file.pwrite(slot, self._next_slot * _SLOT_BYTES)
        self._file.sync()
        self.epoch = epoch
        self._next_slot = 1 - self._next_slot

    def close(self) -> None:
        self._file.close()

    # --- after a start -------------------------------------------------------------------------

    def find_pass(self) -> None:
        """Find the last pass, and whether its groups were synced one by one. Raises Corrupt."""
        head = self._file.pread(FIRST_GROUP, 0)
        blank = 0
        for number in (0, 1):
            start = number * _SLOT_BYTES
            slot = head[start : start + _SLOT.size]
            crc = head[start + _SLOT.size : start + _SLOT.size + _SLOT_CRC.size]
            if not slot.strip(b"\x00"):
                blank += 1
            elif crc == _SLOT_CRC.pack(google_crc32c.value(slot)):
                magic, epoch, is_synced = _SLOT.unpack(slot)
                if magic == _SLOT_MAGIC and epoch > self.epoch:
                    self.epoch, self.was_synced = epoch, bool(is_synced)
                    self._next_slot = 1 - number
        if not self.epoch:
            if not blank:  # both are written before the first group
                raise Corrupt(self.path, 0, "neither slot is whole")
            return
        # A first group of a later pass means that the slot of that pass was damaged since.
        first = self._head_at(FIRST_GROUP)
        if first is not None and first[0] > self.epoch:
            known, self.epoch = self.epoch, first[0]
            if self._group_at(FIRST_GROUP, first[1]) is None:
                self.epoch = known

    def groups(self, *, after_clean_stop: bool = False) -> Iterator[CommitGroup]:
        """Each whole group of the last pass, in order; the first may have any number.

        Corrupt where an acknowledged group is damaged. Sets `tail` if the last group is torn.
        A clean stop leaves no groups; then nothing behind the first position is searched.
        """
        position = FIRST_GROUP
        head = self._head_at(position)
        sequence = head[1] if head is not None and head[0] == self.epoch else 0
        found = False
        while self.epoch:
            payload = self._group_at(position, sequence)
            if payload is None:
                if found or not after_clean_stop:
                    self._judge_tail(position, sequence, is_first=not found)
                break
            found = True
            self._last_found = position, _GROUP.size + len(payload)
            yield CommitGroup(position, sequence, payload)
            position = self.end_position = _next_sector(position + _GROUP.size + len(payload))
            sequence += 1
        self._chunk = b""

    @property
    def has_groups(self) -> bool:
        """Whether `groups` found any."""
        return self._last_found[1] > 0

    def secure(self) -> None:
        """Make durable what `groups` found: the last group may be in the page cache alone.

        Written again, because its fsync may have failed: then the kernel holds its pages as clean.
        Those before it were synced, or the journal would have been closed.
        """
        position, size = self._last_found
        if size:
            self._file.pwrite(self._file.pread(size, position), position)
            self._file.sync()

    def _head_at(self, position: int) -> tuple[int, int, int] | None:
        """(epoch, sequence, length) of what may be a group; None where none begins."""
        head = self._bytes_at(position, _GROUP.size)
        if len(head) < _GROUP.size:
            return None
        magic, _, epoch, sequence, length = _GROUP.unpack(head)
        return (epoch, sequence, length) if magic == _GROUP_MAGIC else None

    def _group_at(self, position: int, sequence: int) -> bytes | None:
        """The entries of the group with this sequence number; None when it is not there, whole."""
        length = self._length_at(position, sequence)
        if length is None or position + _GROUP.size + length > self._file.size():
            return None
        _, crc = _GROUP_PREFIX.unpack(self._bytes_at(position, _GROUP_PREFIX.size))
        # Two copies of what may be 30 MB in all, and no third.
        covered = self._bytes_at(position + _GROUP_CRC_START, _GROUP_COVERED.size + length)
        return covered[_GROUP_COVERED.size :] if google_crc32c.value(covered) == crc else None

    def _length_at(self, position: int, sequence: int) -> int | None:
        head = self._head_at(position)
        return head[2] if head is not None and head[:2] == (self.epoch, sequence) else None

    def _bytes_at(self, position: int, size: int) -> bytes:
        """What `pread` returns, out of a chunk that was read ahead."""
        start = position - self._chunk_start
        if start < 0 or start + size > len(self._chunk):
            self._chunk = self._file.pread(max(size, _READ_BYTES), position)
            self._chunk_start, start = position, 0
        return self._chunk[start : start + size]

    def _judge_tail(self, position: int, sequence: int, *, is_first: bool) -> None:
        """A torn tail is no damage, unless an acknowledged group follows it: then Corrupt."""
        length = self._length_at(position, sequence)
        if length is not None:
            self.tail = TailCut(self.path, position, length, f"group {sequence} is torn")
        if not self.was_synced:
            return
        for later in self.later_groups(position, -1 if is_first else sequence):
            what = "the first group" if is_first else f"group {sequence}"
            reason = f"{what} is damaged, though group {later.sequence} was written later"
            raise Corrupt(self.path, position, reason)

    def all_groups(self) -> Iterator[CommitGroup]:
        """Whole groups of this pass, with any bytes between them."""
        yield from self.later_groups(FIRST_GROUP - _SECTOR_BYTES, -1)

    def later_groups(self, position: int, sequence: int) -> Iterator[CommitGroup]:
        """Whole groups of this pass with greater numbers than this, anywhere behind `position`."""
        start = _next_sector(position + 1)
        while chunk := self._file.pread(_READ_BYTES, start):
            # Only the first byte of each sector is searched: a group begins in one of its own.
            firsts = chunk[::_SECTOR_BYTES]
            sector = firsts.find(_GROUP_MAGIC_BYTES[:1])
            while sector >= 0:
                at = sector * _SECTOR_BYTES
                if chunk.startswith(_GROUP_MAGIC_BYTES, at):
                    found = self._later_group(start + at, sequence)
                    if found is not None:
                        yield found
                        sequence = found.sequence
                sector = firsts.find(_GROUP_MAGIC_BYTES[:1], sector + 1)
            start += _READ_BYTES

    def _later_group(self, position: int, sequence: int) -> CommitGroup | None:
        """The whole group of this pass at `position`, if it is a later one."""
        head = self._head_at(position)
        if head is None or head[0] != self.epoch or head[1] <= sequence:
            return None
        payload = self._group_at(position, head[1])
        return None if payload is None else CommitGroup(position, head[1], payload)


def _next_sector(position: int) -> int:
    return -(-position // _SECTOR_BYTES) * _SECTOR_BYTES
