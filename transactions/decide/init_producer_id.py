"""InitProducerId: the next epoch of a transactional id, and the end of what its producer left open.

A producer without an identity gets the next epoch, which fences all others with its transactional
id. One that goes on with its identity (KIP-360) gets the next epoch, or the same again if it only
missed the answer. An ongoing transaction is fenced and aborted first; the client asks again.
Kafka's counterpart: `TransactionCoordinator.prepareInitProducerIdTransit`.
"""

from msgspec.structs import replace

from protocol.names import ErrorCode
from seams.now import Now
from transactions.commands import InitProducerId
from transactions.decide.abort import fence_and_abort
from transactions.decision_context import TransactionContext
from transactions.events import AbortCause, ProducerInitialized
from transactions.metadata import (
    LAST_CLIENT_EPOCH,
    NOT_BEGUN,
    UNKNOWN_EPOCH,
    TransactionMetadata,
    TransactionState,
)
from transactions.outcome import (
    ANSWERS,
    NEEDS_PRODUCER_ID,
    TransactionAnswer,
    TransactionOutcome,
    Transition,
)
from transactions.transaction import TransactionView


def decide_init_producer_id(
    transaction: TransactionView | None,
    command: InitProducerId,
    now: Now,
    context: TransactionContext,
) -> TransactionOutcome:
    if transaction is None:
        return _first(command, now, context)
    if transaction.pending is not None:
        return ANSWERS[ErrorCode.CONCURRENT_TRANSACTIONS]
    metadata = transaction.metadata
    if command.goes_on and not _is_of(metadata, command):
        return ANSWERS[ErrorCode.PRODUCER_FENCED]
    if metadata.is_prepared:
        return ANSWERS[ErrorCode.CONCURRENT_TRANSACTIONS]
    if metadata.state is TransactionState.ONGOING:
        again = TransactionAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
        return fence_and_abort(metadata, AbortCause.NEW_PRODUCER, again, now, context)
    if metadata.is_epoch_exhausted and (
        not command.goes_on or command.producer_epoch == metadata.producer_epoch
    ):
        return _next_producer_id(metadata, command, now, context)
    return _next_epoch(metadata, command, now)


def _is_of(metadata: TransactionMetadata, command: InitProducerId) -> bool:
    """Is the identity that the producer names one of this transactional id?"""
    if command.producer_id == metadata.producer_id:
        return True  # its epoch is compared with what the next one follows from
    return (
        command.producer_id == metadata.previous_producer_id
        and command.producer_epoch >= LAST_CLIENT_EPOCH
    )


def _first(command: InitProducerId, now: Now, context: TransactionContext) -> TransactionOutcome:
    """An unknown transactional id; an identity that the producer names does not matter."""
    if context.is_full:
        return ANSWERS[ErrorCode.POLICY_VIOLATION]
    if context.producer_id is None:
        return NEEDS_PRODUCER_ID
    target = TransactionMetadata(
        transactional_id=command.transactional_id,
        producer_id=context.producer_id,
        producer_epoch=0,
        timeout_ms=command.timeout_ms,
        state=TransactionState.EMPTY,
        last_update_at_ms=now.wall_ms,
        previous_producer_id=context.producer_id,  # as Kafka, which has made the entry before
    )
    return _initialized(target, is_new=True)


def _next_producer_id(
    metadata: TransactionMetadata, command: InitProducerId, now: Now, context: TransactionContext
) -> TransactionOutcome:
    if context.producer_id is None:
        return NEEDS_PRODUCER_ID
    last_epoch = metadata.producer_epoch if command.goes_on else UNKNOWN_EPOCH
    target = replace(
        _emptied(metadata, command, now),
        producer_id=context.producer_id,
        producer_epoch=0,
        last_producer_epoch=last_epoch,
    )
    return _initialized(target)


def _next_epoch(
    metadata: TransactionMetadata, command: InitProducerId, now: Now
) -> TransactionOutcome:
    emptied = _emptied(metadata, command, now)
    epoch = metadata.producer_epoch
    if not command.goes_on:
        target = replace(emptied, producer_epoch=epoch + 1, last_producer_epoch=UNKNOWN_EPOCH)
    elif command.producer_epoch == epoch:
        target = replace(emptied, producer_epoch=epoch + 1, last_producer_epoch=epoch)
    elif command.producer_epoch == metadata.last_producer_epoch:
        target = emptied  # The answer was lost. A new producer would have set the last epoch to -1.
    else:
        return ANSWERS[ErrorCode.PRODUCER_FENCED]
    return _initialized(target)


def _emptied(
    metadata: TransactionMetadata, command: InitProducerId, now: Now
) -> TransactionMetadata:
    return replace(
        metadata,
        previous_producer_id=metadata.producer_id,
        timeout_ms=command.timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        started_at_ms=NOT_BEGUN,
        last_update_at_ms=now.wall_ms,
    )


def _initialized(target: TransactionMetadata, *, is_new: bool = False) -> TransactionOutcome:
    event = ProducerInitialized(
        target.transactional_id,
        target.producer_id,
        target.producer_epoch,
        target.last_update_at_ms,
        target.timeout_ms,
        is_new,
    )
    answer = TransactionAnswer(ErrorCode.NONE, target.producer_id, target.producer_epoch)
    return TransactionOutcome(transition=Transition(target, answer, (event,)))
