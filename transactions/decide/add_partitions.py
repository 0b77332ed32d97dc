"""Adding partitions: AddPartitionsToTxn, AddOffsetsToTxn, and what Produce and TxnOffsetCommit add.

The first partition opens the transaction, and its time begins. Partitions that are in it already
need no record. Kafka's counterpart: `TransactionCoordinator.handleAddPartitionsToTransaction`.
"""

from msgspec.structs import replace

from protocol.names import ErrorCode
from seams.now import Now
from transactions.commands import AddPartitions
from transactions.events import TransactionBegun, TransactionPartitionsAdded
from transactions.metadata import TransactionMetadata, TransactionState
from transactions.outcome import ANSWERS, TransactionAnswer, TransactionOutcome, Transition
from transactions.transaction import TransactionView


def decide_add_partitions(
    transaction: TransactionView | None, command: AddPartitions, now: Now
) -> TransactionOutcome:
    if transaction is None:
        return ANSWERS[ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    if transaction.pending is not None:
        return ANSWERS[ErrorCode.CONCURRENT_TRANSACTIONS]
    metadata = transaction.metadata
    if metadata.producer_id != command.producer_id:
        return ANSWERS[ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    if metadata.producer_epoch != command.producer_epoch:
        return ANSWERS[ErrorCode.PRODUCER_FENCED]
    if metadata.is_prepared:
        return ANSWERS[ErrorCode.CONCURRENT_TRANSACTIONS]
    if metadata.state is TransactionState.ONGOING and command.partitions <= metadata.partitions:
        return ANSWERS[ErrorCode.NONE]
    return TransactionOutcome(transition=_added(metadata, command, now))


def _added(metadata: TransactionMetadata, command: AddPartitions, now: Now) -> Transition:
    begins = metadata.state is not TransactionState.ONGOING
    target = replace(
        metadata,
        state=TransactionState.ONGOING,
        previous_producer_id=metadata.producer_id,
        partitions=metadata.partitions | command.partitions,
        started_at_ms=now.wall_ms if begins else metadata.started_at_ms,
        last_update_at_ms=now.wall_ms,
        client_transaction_version=command.client_transaction_version,
    )
    event = (TransactionBegun if begins else TransactionPartitionsAdded)(
        target.transactional_id,
        target.producer_id,
        target.producer_epoch,
        now.wall_ms,
        command.partitions - metadata.partitions,
    )
    return Transition(target, TransactionAnswer(ErrorCode.NONE), (event,))
