"""Timeouts: which ongoing transactions have lasted too long?

The time runs from the first partition that was added, by the wall clock, because the start is in
the log and has to hold after a restart. Kafka's counterpart:
`TransactionStateManager.timedOutTransactions`.
"""

from seams.now import Now
from transactions.metadata import TIMEOUT_NEVER, TransactionState
from transactions.transaction import TransactionView


def is_timed_out(transaction: TransactionView, now: Now) -> bool:
    metadata = transaction.metadata
    return (
        metadata.state is TransactionState.ONGOING
        and transaction.pending is None
        and metadata.timeout_ms != TIMEOUT_NEVER
        and metadata.started_at_ms + metadata.timeout_ms < now.wall_ms
    )
