"""Transaction: the entry of one transactional id in memory.

The metadata that is visible, and the transition that is pending. Requests that change something
wait, or are answered CONCURRENT_TRANSACTIONS, while one is. Only evolve.py writes to an entry.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from protocol.names import ProducerId, TransactionalId
from storage.api import TopicPartition
from transactions.metadata import TransactionMetadata, TransactionState
from transactions.outcome import TransactionAnswer

AnswerDone = Callable[[TransactionAnswer], None]
"""Called once for each request."""


class TransactionView(Protocol):
    """An entry as decisions see it."""

    @property
    def metadata(self) -> TransactionMetadata: ...

    @property
    def pending(self) -> TransactionState | None: ...

    @property
    def unmarked(self) -> frozenset[TopicPartition]: ...


class Transaction:
    __slots__ = (
        "client_host",
        "client_id",
        "done",
        "is_refused",
        "marker_retries",
        "metadata",
        "pending",
        "unmarked",
    )

    def __init__(self, metadata: TransactionMetadata) -> None:
        self.metadata = metadata
        self.pending: TransactionState | None = None
        self.done: AnswerDone | None = None  # of the request that the pending transition answers
        # Prepared: the partitions that did not take their marker yet.
        self.unmarked = metadata.partitions if metadata.is_prepared else frozenset()
        self.marker_retries = 0  # how often markers were to be written again
        self.is_refused = False  # some partition refused its marker for good
        self.client_id = ""  # of the last request that changed something; not stored
        self.client_host = ""

    @property
    def shown_partitions(self) -> frozenset[TopicPartition]:
        """As Kafka shows them: those that have their marker have left."""
        return self.unmarked if self.metadata.is_prepared else self.metadata.partitions


class OpenTransaction(NamedTuple):
    """A transaction that is not completed, as the console and the verdicts see it."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    state: TransactionState
    started_at_ms: int
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    client_id: str
    client_host: str


def open_transaction(transaction: Transaction) -> OpenTransaction:
    metadata = transaction.metadata
    return OpenTransaction(
        metadata.transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state,
        metadata.started_at_ms,
        metadata.timeout_ms,
        transaction.shown_partitions,
        transaction.client_id,
        transaction.client_host,
    )
