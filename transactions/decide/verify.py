"""Verification: are these partitions in the open transaction of this producer? (KIP-890).

A pending transition does not matter: the append to the partition is checked against its own state
once more. Kafka's counterpart: `TransactionCoordinator.handleVerifyPartitionsInTransaction`.
"""

from collections.abc import Iterable

from protocol.names import ErrorCode, ProducerId
from storage.api import TopicPartition
from transactions.transaction import TransactionView


def verify_partitions(
    transaction: TransactionView | None,
    producer_id: ProducerId,
    producer_epoch: int,
    partitions: Iterable[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    refusal = _refusal(transaction, producer_id, producer_epoch)
    if transaction is None or refusal is not ErrorCode.NONE:
        return dict.fromkeys(partitions, refusal)
    there = transaction.metadata.partitions
    return {
        partition: ErrorCode.NONE if partition in there else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _refusal(
    transaction: TransactionView | None, producer_id: ProducerId, producer_epoch: int
) -> ErrorCode:
    if transaction is None or transaction.metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.metadata.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE
