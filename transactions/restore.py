"""Restore: the records of a partition of `__transaction_state`, in their order, back to metadata.

The last record of a transactional id wins; a tombstone removes it. A record of a later version is
skipped, and the transactional id is then not known, as in Kafka. A damaged one fails the partition.
Kafka's counterpart: `TransactionStateManager.loadTransactionMetadata`.
"""

from collections.abc import Iterable
from typing import Final

from protocol.names import TransactionalId
from storage.api import LoggedRecord, StoredRecord
from transactions.events import SkippedTransactionRecord
from transactions.metadata import TransactionMetadata
from transactions.records import UnknownVersion, read_transaction_key, read_transaction_value

SKIPPED_REPORTED_MAX: Final = 100
"""Of the skipped records this many are reported; a log of a later Kafka may have millions."""


class Restore:
    """What a load has read so far."""

    __slots__ = ("metadata", "skipped")

    def __init__(self) -> None:
        self.metadata: dict[TransactionalId, TransactionMetadata] = {}
        self.skipped: list[SkippedTransactionRecord] = []

    def apply(self, records: Iterable[LoggedRecord]) -> None:
        """Raises UnreadableTransactionRecord.

        Of several records with one key only the last is decoded: a transaction writes three.
        """
        last: dict[bytes | None, StoredRecord] = {}
        for record in records:
            if isinstance(record, StoredRecord):
                last[record.key] = record
            else:
                self._skip(record.offset, "of a transaction: this log has none")
        for record in last.values():
            self._apply(record)

    def _apply(self, record: StoredRecord) -> None:
        try:
            transactional_id = read_transaction_key(record.key)
        except UnknownVersion as error:
            self._skip(record.offset, str(error))
            return
        self.metadata.pop(transactional_id, None)
        if record.value is None:
            return
        try:
            self.metadata[transactional_id] = read_transaction_value(transactional_id, record.value)
        except UnknownVersion as error:
            self._skip(record.offset, str(error))

    def _skip(self, offset: int, reason: str) -> None:
        if len(self.skipped) < SKIPPED_REPORTED_MAX:
            self.skipped.append(SkippedTransactionRecord(offset, reason))
