"""EndTxn: commit or abort. Which answers a repeated request gets depends on its version.

Up to v4 the epoch stays, so an EndTxn that comes late cannot be told from the end of the next
transaction. From v5 on (transaction version 2) each end raises the epoch: an epoch that is one less
than the stored one is a repeated request, an equal one is new.
Kafka's counterpart: `TransactionCoordinator.endTransaction`, `endTransactionWithTV1`.
"""

from typing import Final

from protocol.names import ErrorCode
from seams.now import Now
from transactions.commands import EndTransaction
from transactions.decide.prepare import prepared
from transactions.decision_context import TransactionContext
from transactions.metadata import (
    COMPLETED,
    EPOCH_BUMP_SINCE,
    LAST_CLIENT_EPOCH,
    TransactionMetadata,
    TransactionState,
)
from transactions.outcome import ANSWERS, NEEDS_PRODUCER_ID, TransactionAnswer, TransactionOutcome
from transactions.transaction import TransactionView

_FENCED: Final = ANSWERS[ErrorCode.PRODUCER_FENCED]
_INVALID_STATE: Final = ANSWERS[ErrorCode.INVALID_TXN_STATE]
_BUSY: Final = ANSWERS[ErrorCode.CONCURRENT_TRANSACTIONS]


def decide_end_transaction(
    transaction: TransactionView | None,
    command: EndTransaction,
    now: Now,
    context: TransactionContext,
) -> TransactionOutcome:
    if transaction is None:
        return ANSWERS[ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    if command.client_transaction_version >= EPOCH_BUMP_SINCE:
        return _end_with_next_epoch(transaction, command, now, context)
    return _end_with_same_epoch(transaction, command, now, context)


def _end_with_same_epoch(
    transaction: TransactionView, command: EndTransaction, now: Now, context: TransactionContext
) -> TransactionOutcome:
    metadata = transaction.metadata
    if metadata.producer_id != command.producer_id:
        return ANSWERS[ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    if metadata.producer_epoch != command.producer_epoch:
        return _FENCED
    if transaction.pending is not None:
        return _BUSY
    if metadata.state is TransactionState.ONGOING:
        return _prepared(metadata, command, now, context)
    if metadata.state is TransactionState.EMPTY or metadata.is_commit != command.is_commit:
        return _INVALID_STATE
    return ANSWERS[ErrorCode.NONE] if metadata.state in COMPLETED else _BUSY


def _end_with_next_epoch(
    transaction: TransactionView, command: EndTransaction, now: Now, context: TransactionContext
) -> TransactionOutcome:
    if transaction.pending is not None:
        return _BUSY
    metadata = transaction.metadata
    is_retry_of_overflow = (
        metadata.previous_producer_id == command.producer_id
        and metadata.producer_epoch == 0
        and command.producer_epoch == LAST_CLIENT_EPOCH
    )
    if metadata.producer_id != command.producer_id and not is_retry_of_overflow:
        return ANSWERS[ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    is_retry = is_retry_of_overflow or _is_retry(metadata, command)
    is_current = metadata.producer_epoch == command.producer_epoch
    match metadata.state:
        case TransactionState.ONGOING if is_current:
            return _prepared(metadata, command, now, context)
        case TransactionState.EMPTY if is_current:
            return _end_of_nothing(metadata, command, now, context)
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT if is_retry:
            return _BUSY if metadata.is_commit == command.is_commit else _INVALID_STATE
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT if is_retry:
            if metadata.is_commit != command.is_commit:
                return _INVALID_STATE
            identity = TransactionAnswer(
                ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch
            )
            return TransactionOutcome(identity)
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT if is_current:
            return _end_of_nothing(metadata, command, now, context)
        case _:
            return _FENCED


def _is_retry(metadata: TransactionMetadata, command: EndTransaction) -> bool:
    """Did the end of a transaction lead from this epoch to the stored one?

    Kafka differs: it takes any epoch that is one less. After the end of a transaction by an older
    client, which keeps its epoch, that is the epoch of a fenced producer; the answer would give it
    the epoch of the other.
    """
    return (
        metadata.producer_epoch == command.producer_epoch + 1
        and metadata.client_transaction_version >= EPOCH_BUMP_SINCE
    )


def _end_of_nothing(
    metadata: TransactionMetadata, command: EndTransaction, now: Now, context: TransactionContext
) -> TransactionOutcome:
    """A client does not know whether its first batch opened a transaction, so it may abort none."""
    if command.is_commit:
        return _INVALID_STATE
    return _prepared(metadata, command, now, context)


def _prepared(
    metadata: TransactionMetadata, command: EndTransaction, now: Now, context: TransactionContext
) -> TransactionOutcome:
    version = command.client_transaction_version
    if version >= EPOCH_BUMP_SINCE and metadata.is_epoch_exhausted and context.producer_id is None:
        return NEEDS_PRODUCER_ID
    state = TransactionState.PREPARE_COMMIT if command.is_commit else TransactionState.PREPARE_ABORT
    return prepared(metadata, state, version, now, context)
