"""Transactions: what the transaction coordinator and the partitions of a transaction share.

The transaction coordinator knows which partitions a transaction has. The partitions (topic data,
and the offsets topic) hold its records until a marker ends it. Both sides are in one process, so
the requests that brokers send each other in Kafka are calls here. `done` is called exactly once, on
the event loop: before the call returns, or later.
Kafka's counterparts: `AddPartitionsToTxnManager`, `TransactionMarkerChannelManager`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from protocol.names import ErrorCode, ProducerId, TransactionalId
from seams.now import Now
from storage.api import TopicPartition

PartitionErrors = Mapping[TopicPartition, ErrorCode]
"""The result for each partition that was named."""

Done = Callable[[PartitionErrors], None]


class TransactionMarker(Struct, frozen=True):
    """The end of a producer's transaction, as it is written to each of its partitions."""

    producer_id: ProducerId
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    """The leader epoch of the transaction's partition of `__transaction_state`."""
    transaction_version: int
    """2: the epoch must be greater than the producer's last one in the partition (KIP-890)."""


class TransactionPartitions(Protocol):
    """The partitions of transactions, as the transaction coordinator uses them."""

    def sync(self, partitions: Sequence[TopicPartition], done: Done, /) -> None:
        """Make the records of the partitions as durable as `rollcall.flush` promises.

        Called before the decision to commit is recorded. A partition that is gone counts as done.
        """

    def write_markers(
        self,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        now: Now,
        done: Done,
        /,
    ) -> None:
        """Append the marker to each partition; `done` when they are durable, as `sync` says.

        UNKNOWN_TOPIC_OR_PARTITION: there is no such partition (any more).
        TRANSACTION_COORDINATOR_FENCED, INVALID_PRODUCER_EPOCH: refused for good.
        Any other error: to be tried again.
        """


class TransactionVerifier(Protocol):
    """The transaction coordinator, as Produce and TxnOffsetCommit use it (KIP-890)."""

    def add_or_verify(
        self,
        transactional_id: TransactionalId,
        producer_id: ProducerId,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        now: Now,
        done: Done,
        /,
        *,
        add: bool,
        wait: bool,
    ) -> None:
        """Are the partitions in the producer's open transaction? With `add`, put them there.

        The answer to `add` comes when the change is durable. `wait`: while the transaction before
        it is completed, wait for that, for `add.partitions.to.txn.retry.backoff.max.ms`, instead of
        the error CONCURRENT_TRANSACTIONS.

        Errors, for every partition: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
        NOT_COORDINATOR, INVALID_PRODUCER_ID_MAPPING (unknown id, other producer),
        INVALID_PRODUCER_EPOCH, CONCURRENT_TRANSACTIONS; without `add` for a partition that is not
        in the transaction: TRANSACTION_ABORTABLE. Callers map them to what their version knows.
        """
