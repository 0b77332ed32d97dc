"""DescribeTransactions: one transactional id, as it is visible; a pending transition is not shown.

Kafka's counterpart: `TransactionCoordinator.handleDescribeTransactions`.
"""

from protocol.messages.describe_transactions import DescribedTransaction, TransactionTopic
from protocol.names import ErrorCode, TransactionalId
from protocol.primitives import echoed
from transactions.by_topic import by_topic
from transactions.transaction import Transaction


def describe_transaction(transaction: Transaction) -> DescribedTransaction:
    """Of a prepared transaction the partitions without their marker, as in Kafka."""
    metadata = transaction.metadata
    return DescribedTransaction(
        transactional_id=metadata.transactional_id,
        transaction_state=metadata.state.wire_name,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.started_at_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[
            TransactionTopic(topic, partitions)
            for topic, partitions in by_topic(transaction.shown_partitions)
        ],
    )


def refuse_describe_transaction(
    transactional_id: TransactionalId, error_code: ErrorCode
) -> DescribedTransaction:
    return DescribedTransaction(error_code=error_code, transactional_id=echoed(transactional_id))


def description_bytes(described: DescribedTransaction) -> int:
    """Approximately, on the wire."""
    topics = sum(len(topic.topic) + 4 * len(topic.partitions) for topic in described.topics)
    return len(described.transactional_id) + topics
