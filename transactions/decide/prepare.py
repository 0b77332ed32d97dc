"""Prepare and complete: the two transitions that end every transaction.

Prepare* is the decision; its record is stored before the answer and before any marker. Complete*
follows when every partition has its marker. With transaction version 2 Prepare* takes the next
epoch, which the markers carry and the next transaction uses; when the epochs are used up the
markers carry the last one, and Complete* begins with another producer id.
Kafka's counterpart: `TransactionMetadata.prepareAbortOrCommit` and `prepareComplete`.
"""

from msgspec.structs import replace

from protocol.names import ErrorCode
from seams.now import Now
from transactions.decision_context import TransactionContext
from transactions.events import AbortCause, TransactionCompleted, TransactionPrepared
from transactions.metadata import (
    EPOCH_BUMP_SINCE,
    MAX_EPOCH,
    UNKNOWN_PRODUCER_ID,
    TransactionMetadata,
    TransactionState,
)
from transactions.outcome import TransactionAnswer, TransactionOutcome, Transition


def prepared(
    metadata: TransactionMetadata,
    state: TransactionState,
    client_transaction_version: int,
    now: Now,
    context: TransactionContext,
    *,
    answer: TransactionAnswer | None = None,
    cause: AbortCause | None = None,
) -> TransactionOutcome:
    """`answer`: another one than the identity of the next transaction."""
    target = replace(
        metadata,
        state=state,
        previous_producer_id=metadata.producer_id,
        next_producer_id=UNKNOWN_PRODUCER_ID,
        last_update_at_ms=now.wall_ms,
        client_transaction_version=client_transaction_version,
    )
    if metadata.state is not TransactionState.ONGOING:
        target = replace(target, started_at_ms=now.wall_ms)  # An abort of no transaction.
    if client_transaction_version >= EPOCH_BUMP_SINCE:
        target = _with_next_epoch(target, context)
    event = TransactionPrepared(
        target.transactional_id,
        target.producer_id,
        target.producer_epoch,
        now.wall_ms,
        target.is_commit,
        len(target.partitions),
        cause,
    )
    return TransactionOutcome(
        transition=Transition(target, answer or _next_identity(target), (event,))
    )


def _with_next_epoch(
    target: TransactionMetadata, context: TransactionContext
) -> TransactionMetadata:
    next_producer_id = UNKNOWN_PRODUCER_ID
    if target.is_epoch_exhausted:
        assert context.producer_id is not None, "the next transaction needs a producer id"
        next_producer_id = context.producer_id
    return replace(
        target,
        producer_epoch=min(target.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=target.producer_epoch,
        next_producer_id=next_producer_id,
    )


def _next_identity(target: TransactionMetadata) -> TransactionAnswer:
    """What the producer uses from now on; before version 2 it is not told, and keeps its own."""
    if target.client_transaction_version < EPOCH_BUMP_SINCE:
        return TransactionAnswer(ErrorCode.NONE)
    if target.next_producer_id != UNKNOWN_PRODUCER_ID:
        return TransactionAnswer(ErrorCode.NONE, target.next_producer_id, 0)
    return TransactionAnswer(ErrorCode.NONE, target.producer_id, target.producer_epoch)


def completed_state(metadata: TransactionMetadata) -> TransactionState:
    """The state that follows from a decision."""
    if metadata.is_commit:
        return TransactionState.COMPLETE_COMMIT
    return TransactionState.COMPLETE_ABORT


def completed(metadata: TransactionMetadata, now: Now) -> Transition:
    target = replace(
        metadata,
        state=completed_state(metadata),
        previous_producer_id=metadata.producer_id,
        next_producer_id=UNKNOWN_PRODUCER_ID,
        partitions=frozenset(),
        last_update_at_ms=now.wall_ms,
    )
    if (
        metadata.client_transaction_version >= EPOCH_BUMP_SINCE
        and metadata.next_producer_id != UNKNOWN_PRODUCER_ID
    ):
        target = replace(target, producer_id=metadata.next_producer_id, producer_epoch=0)
    event = TransactionCompleted(
        target.transactional_id,
        target.producer_id,
        target.producer_epoch,
        now.wall_ms,
        target.is_commit,
        max(now.wall_ms - metadata.started_at_ms, 0),
    )
    return Transition(target, TransactionAnswer(ErrorCode.NONE), (event,))
