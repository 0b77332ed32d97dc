"""Aborted transactions: which batches of a log the cleaner may drop, found from the log itself.

Used by the log cleaner, and where a log has no index of them (`aborted.py`).

A transaction's records come before the marker that says how it ended. A reader in log order has to
know the outcome beforehand, so `find_outcomes` walks the headers from the first transactional batch
until every transaction has ended. `CleanedTransactions` is then asked batch by batch, in order. Of
data it says whether it was aborted, and of a marker whether any batch of its transaction is left:
if none is, the marker may be removed too, after its delete horizon.
Kafka's counterparts: CleanedTransactionMetadata, TransactionIndex.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from storage.batch.chunks import SegmentSource, Throttle, read_segment_chunks
from storage.batch.control_batch import ABORT, COMMIT, control_type
from storage.batch.record_batch import (
    BATCH_HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    BatchHeader,
    read_header,
)
from storage.disk import Disk


class TransactionsFound(Exception):
    """A transactional batch was found before the outcomes of transactions were read."""


class Aborted(NamedTuple):
    first_offset: int
    producer_id: int
    last_offset: int  # its marker's
    last_stable_offset: int  # once it had ended


class TransactionOutcomes(NamedTuple):
    aborted: tuple[Aborted, ...]  # by first offset
    begun: tuple[tuple[int, int], ...]  # (first offset, producer id) of those that have not ended
    last_producer_id: int  # the greatest in the log, in a transaction or not; -1: none

    @property
    def first_open(self) -> int | None:
        """Where the oldest transaction begins that has not ended."""
        return self.begun[0][0] if self.begun else None


NO_OUTCOMES: Final = TransactionOutcomes((), (), -1)


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
                    if header.producer_id > NO_PRODUCER_ID:  # else no marker could end it
                        begun.setdefault(header.producer_id, header.base_offset)
                else:
                    _end(header, chunk[at:after])
            at = after
        return at

    def _end(header: BatchHeader, batch: bytes) -> None:
        kind = control_type(batch, header)
        if kind in (ABORT, COMMIT):
            first = begun.pop(header.producer_id, None)
            if first is not None and kind == ABORT:
                stable = next(iter(begun.values()), header.next_offset)
                aborted.append(Aborted(first, header.producer_id, header.last_offset, stable))

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
            first_offset, producer_id, *_ = self._aborted[self._next]
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
        kind = control_type(batch, header)
        if kind is None:
            return True  # emptied by an earlier pass
        if kind not in (ABORT, COMMIT):
            return False
        if kind == ABORT:
            self._now_aborted.discard(header.producer_id)
        is_left = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        return not is_left
