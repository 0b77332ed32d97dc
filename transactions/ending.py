"""Ending of a transaction: the sync before a commit is decided, and the markers after a decision.

The order makes a crash at any step safe: the data of a commit is synced before Prepare* is
appended; Prepare* is stored before the first marker; all markers are durable before Complete* is
appended. Markers that a partition does not take now are written again, to it alone.
Kafka's counterpart: `TransactionMarkerChannelManager`.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from protocol.names import ErrorCode
from seams.now import Now
from seams.transactions import PartitionErrors, TransactionMarker, TransactionPartitions
from storage.api import Log
from transactions import evolve
from transactions.decide.prepare import completed, completed_state
from transactions.events import (
    CommitSyncFailed,
    MarkerRefused,
    MarkersDelayed,
    TransactionEvent,
)
from transactions.metadata import TransactionMetadata
from transactions.outcome import Transition
from transactions.shard_context import TurnStep
from transactions.transaction import Transaction

MARKER_RETRY_BACKOFF_MS: Final = 100
"""Before markers that were not taken are written again; doubled with each further time."""

MARKER_RETRY_BACKOFF_MAX_MS: Final = 1_000
"""No longer than this, so that a partition that works again is not kept waiting. Kafka has configs
for neither."""

_IS_SYNCED: Final = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_HAS_MARKER: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # its topic was deleted
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,  # as Kafka: it has no transactions
    }
)
_REFUSED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)


class Ending:
    """Of all transactions of one shard."""

    __slots__ = ("_append", "_at", "_log", "_observe", "_partitions", "_post")

    def __init__(
        self,
        partitions: TransactionPartitions,
        log: Log,
        observe: Callable[[TransactionEvent], None],
        *,
        post: Callable[[TurnStep], None],
        at: Callable[[int, TurnStep], None],
        append: Callable[[Transaction, Transition, Now], None],
    ) -> None:
        self._partitions = partitions
        self._log = log
        self._observe = observe
        self._post = post
        self._at = at
        self._append = append

    # ------------------------------------------------------------ before the decision

    def sync(
        self,
        transaction: Transaction,
        target: TransactionMetadata,
        then: TurnStep,
        give_up: TurnStep,
    ) -> None:
        """Make the transaction's data durable, `then` append the decision to commit.

        If the data or the decision cannot be written, the transaction stays ongoing: its producer
        gets an error on which it asks again, and the next attempt syncs again.
        """

        def synced(errors: PartitionErrors) -> None:
            self._post(partial(self._synced, transaction, errors, then, give_up))

        self._partitions.sync(sorted(target.partitions), synced)

    def _synced(
        self,
        transaction: Transaction,
        errors: PartitionErrors,
        then: TurnStep,
        give_up: TurnStep,
        now: Now,
    ) -> None:
        failed = tuple(sorted(item for item in errors.items() if item[1] not in _IS_SYNCED))
        if failed:
            transactional_id = transaction.metadata.transactional_id
            self._observe(CommitSyncFailed(transactional_id, now.wall_ms, failed))
        if failed or not self._log.has_room():
            give_up(now)
        else:
            then(now)

    # ------------------------------------------------------------ after the decision

    def begin(self, transaction: Transaction, now: Now) -> None:
        """Prepare* is stored: write the markers. Only Complete* ends what is pending now."""
        evolve.begin(transaction, completed_state(transaction.metadata), None)
        self._write_markers(transaction, now)

    def _write_markers(self, transaction: Transaction, now: Now) -> None:
        if not transaction.unmarked:
            self._complete(transaction, now)
            return
        metadata = transaction.metadata
        marker = TransactionMarker(
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.is_commit,
            self._log.leader_epoch,
            metadata.client_transaction_version,
        )

        def written(errors: PartitionErrors) -> None:
            self._post(partial(self._marked, transaction, errors))

        self._partitions.write_markers(marker, sorted(transaction.unmarked), now, written)

    def _marked(self, transaction: Transaction, errors: PartitionErrors, now: Now) -> None:
        metadata = transaction.metadata
        evolve.marked(transaction, [at for at, error in errors.items() if error in _HAS_MARKER])
        for at, error_code in errors.items():
            if error_code in _REFUSED:
                evolve.marker_refused(transaction, at)
                self._observe(
                    MarkerRefused(
                        metadata.transactional_id,
                        metadata.producer_id,
                        metadata.producer_epoch,
                        now.wall_ms,
                        at,
                        error_code,
                    )
                )
        if not transaction.unmarked:
            self._complete(transaction, now)
            return
        evolve.markers_delayed(transaction)
        if transaction.marker_retries == 1:
            causes = tuple(sorted((at, errors[at]) for at in transaction.unmarked if at in errors))
            self._observe(MarkersDelayed(metadata.transactional_id, now.wall_ms, causes))
        retry = partial(self._write_markers, transaction)
        self._at(now.mono_ms + _backoff_ms(transaction.marker_retries), retry)

    def _complete(self, transaction: Transaction, now: Now) -> None:
        if transaction.is_refused:
            return  # As in Kafka: it stays prepared until the partition is loaded again.
        if self._log.has_room():
            self._append(transaction, completed(transaction.metadata, now), now)
        else:
            again = partial(self._complete, transaction)
            self._at(now.mono_ms + MARKER_RETRY_BACKOFF_MS, again)


def _backoff_ms(retries: int) -> int:
    longest = MARKER_RETRY_BACKOFF_MAX_MS
    doublings = min(retries - 1, longest.bit_length())
    return min(MARKER_RETRY_BACKOFF_MS << doublings, longest)
