"""Abort by the coordinator: fence the producer of an ongoing transaction and abort it.

One transition does both, with the next epoch: what the producer still sends is refused. No client
is given that epoch: with transaction version 2 the producer may go on from it (KIP-360), below it
the next InitProducerId raises it once more. Kafka's counterpart: `prepareFenceProducerEpoch`, then
`TransactionCoordinator.endTransaction` with the level of the server.
"""

from msgspec.structs import replace

from protocol.names import ErrorCode
from seams.now import Now
from transactions.commands import AbortTransaction
from transactions.decide.prepare import prepared
from transactions.decision_context import TransactionContext
from transactions.events import AbortCause
from transactions.metadata import (
    EPOCH_BUMP_SINCE,
    MAX_EPOCH,
    UNKNOWN_EPOCH,
    TransactionMetadata,
    TransactionState,
)
from transactions.outcome import ANSWERS, NEEDS_PRODUCER_ID, TransactionAnswer, TransactionOutcome
from transactions.transaction import TransactionView


def decide_abort(
    transaction: TransactionView | None,
    command: AbortTransaction,
    now: Now,
    context: TransactionContext,
) -> TransactionOutcome:
    """CONCURRENT_TRANSACTIONS if it is being ended already; INVALID_TXN_STATE if none is open."""
    if transaction is None:
        return ANSWERS[ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    if transaction.pending is not None:
        return ANSWERS[ErrorCode.CONCURRENT_TRANSACTIONS]
    if transaction.metadata.state is not TransactionState.ONGOING:
        return ANSWERS[ErrorCode.INVALID_TXN_STATE]
    answer = TransactionAnswer(ErrorCode.NONE)
    return fence_and_abort(transaction.metadata, command.cause, answer, now, context)


def fence_and_abort(
    metadata: TransactionMetadata,
    cause: AbortCause,
    answer: TransactionAnswer,
    now: Now,
    context: TransactionContext,
) -> TransactionOutcome:
    if context.transaction_version >= EPOCH_BUMP_SINCE:
        if metadata.is_epoch_exhausted and context.producer_id is None:
            return NEEDS_PRODUCER_ID
        return prepared(
            metadata,
            TransactionState.PREPARE_ABORT,
            context.transaction_version,
            now,
            context,
            answer=answer,
            cause=cause,
        )
    fenced = replace(
        metadata,
        producer_epoch=min(metadata.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=UNKNOWN_EPOCH,
    )
    return prepared(
        fenced, TransactionState.PREPARE_ABORT, 0, now, context, answer=answer, cause=cause
    )
