"""Evolve: the only writer of a transactional id's entry.

Nothing is decided here. A transition is begun, and applied when its record is stored; only a commit
whose data could not be synced is given up, before anything was appended.
"""

from collections.abc import Iterable

from storage.api import TopicPartition
from transactions.metadata import TransactionMetadata, TransactionState
from transactions.transaction import AnswerDone, Transaction


def begin(transaction: Transaction, state: TransactionState, done: AnswerDone | None) -> None:
    """A transition is on its way."""
    assert transaction.pending is None, f"{transaction.pending} is pending"
    transaction.pending = state
    transaction.done = done


def give_up(transaction: Transaction) -> AnswerDone | None:
    """The pending transition was never appended; whom to answer."""
    transaction.pending = None
    done, transaction.done = transaction.done, None
    return done


def apply(transaction: Transaction, target: TransactionMetadata) -> AnswerDone | None:
    """The record of the pending transition is stored; whom to answer."""
    assert transaction.pending is target.state, f"{transaction.pending} is pending"
    done = give_up(transaction)
    transaction.metadata = target
    transaction.unmarked = target.partitions if target.is_prepared else frozenset()
    transaction.marker_retries = 0
    transaction.is_refused = False
    return done


def marked(transaction: Transaction, partitions: Iterable[TopicPartition]) -> None:
    """These partitions have their marker, or do not exist."""
    transaction.unmarked = transaction.unmarked.difference(partitions)


def markers_delayed(transaction: Transaction) -> None:
    """Some partitions did not take their marker yet."""
    transaction.marker_retries += 1


def marker_refused(transaction: Transaction, partition: TopicPartition) -> None:
    """The partition will not take its marker: it is not asked again."""
    transaction.unmarked -= {partition}
    transaction.is_refused = True


def asked_by(transaction: Transaction, client_id: str, client_host: str) -> None:
    transaction.client_id = client_id
    transaction.client_host = client_host
