"""Aborted transactions: which batches of a log the cleaner may drop, found from the log itself.

Used by the log cleaner, and at the first start with a log that came from a Kafka (`aborted.py`).

A transaction's records come before the marker that says how it ended. A reader in log order has to
know the outcome beforehand, so `find_outcomes` walks the headers from the first transactional batch
until every transaction has ended. `CleanedTransactions` is then asked batch by batch, in order. Of
data it says whether it was aborted, and of a marker whether any batch of its transaction is left:
if none is, the marker may be removed too, after its delete horizon. Kafka keeps the aborted
transactions in `.txnindex` files; the log itself says the same.
Kafka's counterparts: CleanedTransactionMetadata, TransactionIndex.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from storage.batch.chunks import SegmentSource, Throttle, read_segment_chunks
from storage.batch.record_batch import (
    BATCH_HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    read_header,
)
from storage.batch.record_spans import records_of, spans_in
from storage.disk import Disk

ABORT: Final = 0
COMMIT: Final = 1
_MARKER: Final = Struct(">hh")  # version, type


class TransactionsFound(Exception):
    """A transactional batch was found before the outcomes of transactions were read."""


class Aborted(NamedTuple):
    first_offset: int
    producer_id: int
    last_offset: int  # its marker's


class TransactionOutcomes(NamedTuple):
    aborted: tuple[Aborted, ...]  # by first offset
    begun: tuple[tuple[int, int], ...]  # (first offset, producer id) of those that have not ended
    last_producer_id: int  # the greatest in the log, in a transaction or not; -1: none

    @property
    def first_open(self) -> int | None:
        """Where the oldest transaction begins that has not ended."""
        return self.begun[0][0] if self.begun else None


NO_OUTCOMES: Final = TransactionOutcomes((), (), -1)


def marker_type(batch: bytes, header: BatchHeader) -> int | None:
    """ABORT, COMMIT, the number of another control record; None of a batch left empty."""
    if not header.records_count:
        return None
    key = spans_in(records_of(batch, header), header.records_count)[0].key
    if key is None or len(key) < _MARKER.size:
        return -1
    kind: int = _MARKER.unpack_from(key)[1]
    return kind


def find_outcomes(
    disk: Disk, sources: Iterable[SegmentSource], start: int, throttle: Throttle
) -> TransactionOutcomes:
    """The outcomes of transactions with batches at or after `start`. Raises Corrupt, OSError."""
    begun: dict[int, int] = {}
    aborted: list[Aborted] = []
    last_producer_id = -1

    def take(chunk: bytes, _position: int) -> int:
        nonlocal last_producer_id
        at, last, end = 0, len(chunk) - HEADER_BYTES, len(chunk)
        while at <= last:
            fields = BATCH_HEADER.unpack_from(chunk, at)
            after = at + fields[1] + LOG_OVERHEAD
            if after > end:
                break
            header = read_header(chunk, at)
            last_producer_id = max(last_producer_id, header.producer_id)
            if header.is_transactional and header.last_offset >= start:
                if not header.is_control:
                    begun.setdefault(header.producer_id, header.base_offset)
                else:
                    _end(header, chunk[at:after])
            at = after
        return at

    def _end(header: BatchHeader, batch: bytes) -> None:
        if marker_type(batch, header) in (ABORT, COMMIT):
            first = begun.pop(header.producer_id, None)
            if first is not None and marker_type(batch, header) == ABORT:
                aborted.append(Aborted(first, header.producer_id, header.last_offset))

    for source in sources:
        if source.next_base > start:
            read_segment_chunks(disk, source, take, throttle)
    still_open = sorted((first, producer_id) for producer_id, first in begun.items())
    return TransactionOutcomes(tuple(sorted(aborted)), tuple(still_open), last_producer_id)


class CleanedTransactions:
    """Must be given every transactional or control batch of a log, in the order of the log."""

    __slots__ = ("_aborted", "_next", "_now_aborted", "_seen")

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self._aborted = aborted
        self._next = 0  # of them, the first that does not begin yet
        self._now_aborted: set[int] = set()
        self._seen: set[int] = set()  # producers with batches since their last marker

    def may_discard(self, header: BatchHeader, batch: bytes) -> bool:
        """Of data: was it aborted? Of a marker: is nothing left of its transaction?"""
        while self._next < len(self._aborted):
            first_offset, producer_id, _ = self._aborted[self._next]
            if first_offset > header.last_offset:
                break
            self._now_aborted.add(producer_id)
            self._next += 1
        if header.is_control:
            return self._end(header, batch)
        if not header.is_transactional:
            return False
        self._seen.add(header.producer_id)
        return header.producer_id in self._now_aborted

    def _end(self, header: BatchHeader, batch: bytes) -> bool:
        kind = marker_type(batch, header)
        if kind is None:
            return True  # emptied by an earlier pass
        if kind not in (ABORT, COMMIT):
            return False
        if kind == ABORT:
            self._now_aborted.discard(header.producer_id)
        is_left = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        return not is_left
