"""Transaction index: can its entries be true of the segment beside it?

An entry names an aborted transaction: its producer, its first and last offset, and the last stable
offset when it ended. Its last offset is that of the marker, so the batch there, if the segment has
one, is a control batch of that producer. The index is read before the segment: a broker that runs
writes the marker first. Kafka's counterparts: AbortedTxn, TransactionIndex.sanityCheck.
"""

from collections import deque
from pathlib import Path
from struct import Struct
from typing import Final

from logtools.findings import Finding, Findings
from storage.batch.record_batch import BatchHeader

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class TransactionIndexCheck:
    """Feed it every batch of the segment, then ask `finish`."""

    def __init__(self, path: Path, base_offset: int) -> None:
        self._path = str(path)
        self._faults: list[Finding] = []
        self._waiting: deque[tuple[int, int, int]] = deque()  # (byte, last offset, producer)
        self._read(path.read_bytes(), base_offset)

    def _read(self, content: bytes, base_offset: int) -> None:
        whole = len(content) - len(content) % _ENTRY.size
        if whole != len(content):
            problem = f"{len(content)} bytes are no whole number of entries of {_ENTRY.size}"
            self._fault(whole, problem)
        previous = base_offset - 1
        for number, entry in enumerate(_ENTRY.iter_unpack(content[:whole])):
            version, producer_id, first, last, stable = entry
            at = number * _ENTRY.size
            if version != _VERSION:
                self._fault(at, f"version {version} is not known")
            elif first < 0 or first > last or last <= previous:
                self._fault(at, f"offsets {first} to {last} after {previous}")
            elif producer_id < 0 or not 0 <= stable <= last + 1:
                problem = f"producer {producer_id}, last stable offset {stable} of a transaction"
                self._fault(at, f"{problem} that ended at {last}")
            else:
                self._waiting.append((at, last, producer_id))
            previous = max(previous, last)

    def batch(self, header: BatchHeader) -> None:
        while self._waiting and self._waiting[0][1] < header.base_offset:
            self._waiting.popleft()  # a cleaner may have removed the marker
        while self._waiting and self._waiting[0][1] <= header.last_offset:
            at, last, producer_id = self._waiting.popleft()
            if not header.is_control or header.producer_id != producer_id:
                self._fault(at, f"offset {last} is no marker of producer {producer_id}")

    def finish(self, end_offset: int) -> Findings:
        """`end_offset`: the segment's, exclusive."""
        for at, last, _ in self._waiting:
            if last >= end_offset:
                self._fault(at, f"offset {last} is past the end, {end_offset - 1}")
        yield from self._faults

    def _fault(self, at: int, problem: str) -> None:
        self._faults.append(Finding(self._path, at, "txnindex", problem))
