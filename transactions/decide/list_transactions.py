"""ListTransactions: the transactional ids that match every filter of the request.

Kafka's counterpart: `TransactionStateManager.listTransactionStates`.
"""

from collections.abc import Iterable, Iterator

from protocol.messages.list_transactions import ListedTransaction, ListTransactionsRequest
from seams.now import Now
from seams.regular_expressions import check_regex, resolve
from transactions.metadata import STATE_NAMES
from transactions.transaction import Transaction


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """Filters that name no state; they match nothing."""
    return [name for name in dict.fromkeys(request.state_filters) if name not in STATE_NAMES]


def is_pattern_valid(request: ListTransactionsRequest) -> bool:
    pattern = request.transactional_id_pattern
    return not pattern or check_regex(pattern) is None


def list_transactions(
    transactions: Iterable[Transaction], request: ListTransactionsRequest, now: Now
) -> list[ListedTransaction]:
    """The request's pattern must be valid."""
    found = [
        ListedTransaction(metadata.transactional_id, metadata.producer_id, metadata.state.wire_name)
        for metadata in (
            transaction.metadata for transaction in _filtered(transactions, request, now)
        )
    ]
    pattern = request.transactional_id_pattern
    if not pattern:
        return found
    matching = resolve((pattern,), (listed.transactional_id for listed in found))[pattern]
    return [listed for listed in found if listed.transactional_id in matching]


def _filtered(
    transactions: Iterable[Transaction], request: ListTransactionsRequest, now: Now
) -> Iterator[Transaction]:
    states = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)
    duration_ms = request.duration_filter
    for transaction in transactions:
        metadata = transaction.metadata
        if states and metadata.state.wire_name not in states:
            continue
        if producer_ids and metadata.producer_id not in producer_ids:
            continue
        # Without a transaction the start is -1, and so long ago.
        if duration_ms >= 0 and now.wall_ms - metadata.started_at_ms <= duration_ms:
            continue
        yield transaction
