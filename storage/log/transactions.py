"""Committed records: which records of a partition count when some were written in transactions.

A transactional record has no effect until the marker that ends its transaction, a commit or an
abort, further down the log. A reader that turns the log into state feeds every batch, in order, and
gets back what counts by then: plain records at once, those of a transaction with its commit marker.
Records of an open transaction are withheld. Imports read logs so; a load of the coordinator, which
keeps transactions open, does not (coordinator/restore.py).

Of two commits of one key the later in the log wins, not the later marker: so a plain record, or one
of a transaction that ended first, removes its key from the transactions that wrote it before.
Kafka's counterparts: `OffsetMetadataManager.replay`, `replayEndTransactionMarker`.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from storage.api import StoredRecord
from storage.batch.record_batch import BatchHeader, read_header, read_records

_MARKER: Final = Struct(">hh")  # version, type
_ABORT, _COMMIT = 0, 1


class Withheld(NamedTuple):
    """A record of a transaction that neither committed nor aborted."""

    producer_id: int
    producer_epoch: int
    record: StoredRecord


class CommittedRecords:
    """The transactions of one partition, and how they ended. One for each reading of a log."""

    __slots__ = ("_open", "aborted", "aborted_records", "committed", "committed_records")

    def __init__(self) -> None:
        self._open: dict[int, dict[bytes | None, Withheld]] = {}  # by producer id, then by key
        self.committed = 0  # transactions with records in them
        self.aborted = 0
        self.committed_records = 0
        self.aborted_records = 0

    @property
    def is_holding(self) -> bool:
        """Is there an open transaction?"""
        return bool(self._open)

    def take(self, batch: bytes, header: BatchHeader | None = None) -> list[StoredRecord]:
        """The records that count from this batch on. Raises InvalidBatch."""
        header = header or read_header(batch)
        if header.is_control:
            return self._end(header, batch)
        records = [
            StoredRecord(offset, timestamp_ms, key, value)
            for offset, timestamp_ms, key, value, _ in read_records(batch, 0, header)
        ]
        if header.is_transactional:
            pending = self._open.setdefault(header.producer_id, {})
            for record in records:
                pending.pop(record.key, None)  # to the end: in the order of the log
                pending[record.key] = Withheld(header.producer_id, header.producer_epoch, record)
            return []
        if self._open:
            for record in records:
                self._replace(record)
        return records

    @property
    def withheld(self) -> Iterator[Withheld]:
        """Records of the open transactions."""
        for pending in self._open.values():
            yield from pending.values()

    def _end(self, header: BatchHeader, batch: bytes) -> list[StoredRecord]:
        records: list[StoredRecord] = []
        for fields in read_records(batch, 0, header):
            key = fields[2]
            if not header.is_transactional or key is None or len(key) < _MARKER.size:
                continue  # a leader change, or a control record of a later Kafka
            kind: int = _MARKER.unpack_from(key)[1]
            if kind not in (_ABORT, _COMMIT):
                continue
            pending = self._open.pop(header.producer_id, {})
            if kind == _COMMIT:
                self.committed += bool(pending)
                self.committed_records += len(pending)
                records += [withheld.record for withheld in pending.values()]
            else:
                self.aborted += bool(pending)
                self.aborted_records += len(pending)
        for record in records:
            self._replace(record)
        return records

    def _replace(self, record: StoredRecord) -> None:
        """Drop what other transactions wrote of this key before this record."""
        for pending in self._open.values():
            older = pending.get(record.key)
            if older is not None and older.record.offset < record.offset:
                del pending[record.key]
