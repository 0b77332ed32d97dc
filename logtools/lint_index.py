"""Lint of indexes: a segment's offset and time index must match its batches.

Each index is read as a whole (it is small) and compared while the batches pass by once, in
constant memory. An offset entry must point at the beginning of a batch, and no later batch may
hold offsets that the entry promises farther on; a time entry must name the greatest timestamp up to
its offset. Zeros at the end are the room that Kafka preallocates.
Kafka's counterparts: OffsetIndex.sanityCheck, TimeIndex.sanityCheck, DumpLogSegments.
"""

import errno
import os
from collections import deque
from pathlib import Path
from struct import Struct
from typing import Final

from logtools.findings import Finding, Findings
from storage.batch.record_batch import BatchHeader

_OFFSET_ENTRY: Final = Struct(">II")
_TIME_ENTRY: Final = Struct(">qI")


class OffsetIndexCheck:
    """Feed it every batch of the segment, then ask `finish`."""

    def __init__(self, path: Path, base_offset: int) -> None:
        self._path = str(path)
        self._base = base_offset
        self._entries, self._faults = _read(path, _OFFSET_ENTRY)
        self._faults += _not_rising(self._path, self._entries, _OFFSET_ENTRY.size)
        self._waiting = deque(sorted(self._entries, key=lambda entry: entry[2]))
        self._unmatched: dict[int, int] = {}  # offset -> entry, until a batch ends with it

    def batch(self, position: int, header: BatchHeader) -> None:
        while self._waiting and self._waiting[0][2] < position:
            self._stray(self._waiting.popleft())
        if self._waiting and self._waiting[0][2] == position:
            at, relative, _ = self._waiting.popleft()
            offset = self._base + relative
            if offset < header.base_offset:
                where = f"byte {position}, where {header.base_offset} begins"
                self._fault(at, f"offset {offset} is said to be at {where}")
            else:
                self._unmatched[offset] = at
        # Old brokers indexed an append of several batches by its last offset: any end will do.
        self._unmatched.pop(header.last_offset, None)

    def finish(self) -> Findings:
        for entry in self._waiting:
            self._stray(entry)
        for offset, at in self._unmatched.items():
            self._fault(at, f"no batch ends with offset {offset}")
        yield from self._faults

    def _stray(self, entry: tuple[int, int, int]) -> None:
        at, relative, target = entry
        where = f"byte {target}, where no batch begins"
        self._fault(at, f"offset {self._base + relative} is said to be at {where}")

    def _fault(self, at: int, problem: str) -> None:
        self._faults.append(Finding(self._path, at, "index", problem))


class TimeIndexCheck:
    """Feed it every batch of the segment, then ask `finish`."""

    def __init__(self, path: Path, base_offset: int, *, sealed: bool) -> None:
        self._path = str(path)
        self._base = base_offset
        self._sealed = sealed
        self._entries, self._faults = _read(path, _TIME_ENTRY)
        self._faults += _not_rising(self._path, self._entries, _TIME_ENTRY.size)
        self._waiting = deque(self._entries)
        self._latest = -1
        self._end = base_offset - 1

    def batch(self, header: BatchHeader) -> None:
        self._judge_before(header.base_offset)
        self._latest = max(self._latest, header.max_timestamp)
        self._end = header.last_offset

    def _judge_before(self, offset: int) -> None:
        while self._waiting and self._base + self._waiting[0][2] < offset:
            at, timestamp, relative = self._waiting.popleft()
            if timestamp != self._latest:
                upto = f"up to offset {self._base + relative} the greatest timestamp is"
                self._fault(at, f"{upto} {self._latest}, not {timestamp}")

    def finish(self) -> Findings:
        self._judge_before(self._end + 1)
        for at, _, relative in self._waiting:
            self._fault(at, f"offset {self._base + relative} is past the end, {self._end}")
        last = self._entries[-1][1] if self._entries else -1
        if self._sealed and not self._waiting and last < self._latest:
            self._fault(None, f"ends at timestamp {last}, but the segment reaches {self._latest}")
        yield from self._faults

    def _fault(self, at: int | None, problem: str) -> None:
        self._faults.append(Finding(self._path, at, "timeindex", problem))


_Entries = list[tuple[int, int, int]]
"""(byte in the index, first field, second field)"""


def _read(path: Path, entry: Struct) -> tuple[_Entries, list[Finding]]:
    size, content = _written(path)
    faults: list[Finding] = []
    whole = size - size % entry.size
    if whole != size:
        problem = f"{size} bytes are no whole number of entries of {entry.size}"
        faults.append(Finding(str(path), whole, _name(path), problem))
    # The last entry may end with zeros of its own.
    used = -(-len(content.rstrip(b"\0")) // entry.size) * entry.size
    content = content[: min(used, whole)].ljust(min(used, whole), b"\0")
    entries = [
        (number * entry.size, *fields) for number, fields in enumerate(entry.iter_unpack(content))
    ]
    return entries, faults


def _written(path: Path) -> tuple[int, bytes]:
    """The file's size, and its bytes but for a hole at its end.

    A running Kafka keeps 10 MiB for each index of an active segment, nearly all of it a hole.
    """
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        end, position = 0, 0
        try:
            while position < size:
                data = os.lseek(file.fileno(), position, os.SEEK_DATA)
                end = position = os.lseek(file.fileno(), data, os.SEEK_HOLE)
        except OSError as fault:
            if fault.errno != errno.ENXIO:  # no data behind this position
                end = size  # a file system without holes
        return size, os.pread(file.fileno(), end, 0)


def _not_rising(path: str, entries: _Entries, size: int) -> list[Finding]:
    """Every entry must be greater than the one before it, in both of its fields."""
    faults = []
    previous = (-1, -1)
    for at, *fields in entries:
        if fields[0] <= previous[0] or fields[1] <= previous[1]:
            problem = f"entry {at // size} is {tuple(fields)} after {previous}: it does not rise"
            faults.append(Finding(path, at, _name(Path(path)), problem))
        previous = (fields[0], fields[1])
    return faults


def _name(path: Path) -> str:
    return path.suffix.removeprefix(".")
