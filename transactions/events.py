"""Events of transactions: what happened to transactional ids, and to the partitions of their log.

Facts in the past tense. The shard observes one when what it reports is stored. Log lines, counters
and the console are derived from them. `at_ms` is the wall clock (Unix epoch).
"""

from enum import StrEnum

from msgspec import Struct

from protocol.names import ErrorCode, ProducerId, TransactionalId
from storage.api import TopicPartition


class AbortCause(StrEnum):
    """Why the coordinator ended a transaction that its producer had not ended."""

    NEW_PRODUCER = "new producer"  # InitProducerId for its transactional id
    TIMEOUT = "timeout"
    UNSYNCED_DATA = "unsynced data"  # a power failure may have taken some of its records


class ProducerInitialized(Struct, frozen=True):
    """A transactional id has a new epoch, or the same again for a repeated request."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    at_ms: int
    timeout_ms: int
    is_new: bool
    """The transactional id was not known before."""


class TransactionBegun(Struct, frozen=True):
    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    at_ms: int
    partitions: frozenset[TopicPartition]


class TransactionPartitionsAdded(Struct, frozen=True):
    """To a transaction that had begun before."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    at_ms: int
    partitions: frozenset[TopicPartition]


class TransactionPrepared(Struct, frozen=True):
    """The decision is stored: it is not reversed any more. Epoch and id are those of the markers.

    `cause`: why the coordinator aborts it; None if its producer ended it.
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    at_ms: int
    is_commit: bool
    partitions: int
    cause: AbortCause | None = None


class TransactionCompleted(Struct, frozen=True):
    """Every partition has its marker. Epoch and id are those of the next transaction."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    at_ms: int
    is_commit: bool
    duration_ms: int
    """Since it began, by the wall clock."""


class TransactionalIdExpired(Struct, frozen=True):
    transactional_id: TransactionalId
    producer_id: ProducerId
    at_ms: int
    last_update_at_ms: int


class CommitSyncFailed(Struct, frozen=True):
    """A commit was refused because the data of these partitions could not be made durable."""

    transactional_id: TransactionalId
    at_ms: int
    errors: tuple[tuple[TopicPartition, ErrorCode], ...]


class MarkersDelayed(Struct, frozen=True):
    """Some partitions did not take their marker yet; it is tried again. Once per transaction."""

    transactional_id: TransactionalId
    at_ms: int
    errors: tuple[tuple[TopicPartition, ErrorCode], ...]


class MarkerRefused(Struct, frozen=True):
    """A partition refuses its marker for good: the transaction is not completed before a restart.

    The partition has seen a later epoch of the producer, or of the coordinator.
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    at_ms: int
    topic_partition: TopicPartition
    error_code: ErrorCode


class SkippedTransactionRecord(Struct, frozen=True):
    """A record that a load passed over, as Kafka does."""

    offset: int
    reason: str


class TransactionsLoaded(Struct, frozen=True):
    """A partition of `__transaction_state` is served from now on."""

    partition: int
    at_ms: int
    transactional_ids: int
    open_transactions: int
    prepared: int
    """Of these, the ones that are completed now without their producers."""
    next_offset: int
    skipped: tuple[SkippedTransactionRecord, ...]


class TransactionsLoadFailed(Struct, frozen=True):
    partition: int
    reason: str


class TransactionsClosed(Struct, frozen=True):
    """A partition of `__transaction_state` is not served any more."""

    partition: int
    at_ms: int
    transactional_ids: int


TransactionEvent = (
    ProducerInitialized
    | TransactionBegun
    | TransactionPartitionsAdded
    | TransactionPrepared
    | TransactionCompleted
    | TransactionalIdExpired
    | CommitSyncFailed
    | MarkersDelayed
    | MarkerRefused
    | TransactionsLoaded
    | TransactionsLoadFailed
    | TransactionsClosed
)
