"""Expiry: which transactional ids were not used for transactional.id.expiration.ms?

Only a record counts as use. An open transaction never expires.
Kafka's counterpart: `TransactionStateManager.shouldExpire`.
"""

from seams.now import Now
from transactions.transaction import TransactionView


def is_id_expired(transaction: TransactionView, now: Now, expiration_ms: int) -> bool:
    metadata = transaction.metadata
    return (
        transaction.pending is None
        and not metadata.is_open
        and metadata.last_update_at_ms <= now.wall_ms - expiration_ms
    )
