"""Commands: what can be asked of one transactional id, in one turn of a shard."""

from msgspec import Struct

from protocol.names import ProducerId, TransactionalId
from storage.api import TopicPartition
from transactions.events import AbortCause
from transactions.metadata import UNKNOWN_EPOCH, UNKNOWN_PRODUCER_ID


class InitProducerId(Struct, frozen=True):
    """`producer_id` and `producer_epoch` are what the producer has, if it goes on (KIP-360)."""

    transactional_id: TransactionalId
    timeout_ms: int
    producer_id: ProducerId = UNKNOWN_PRODUCER_ID
    producer_epoch: int = UNKNOWN_EPOCH

    @property
    def goes_on(self) -> bool:
        return self.producer_id != UNKNOWN_PRODUCER_ID


class AddPartitions(Struct, frozen=True):
    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_transaction_version: int


class EndTransaction(Struct, frozen=True):
    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: int
    is_commit: bool
    client_transaction_version: int


class AbortTransaction(Struct, frozen=True):
    """By the coordinator itself: fence the producer and abort what is ongoing."""

    transactional_id: TransactionalId
    cause: AbortCause


TransactionCommand = InitProducerId | AddPartitions | EndTransaction | AbortTransaction
