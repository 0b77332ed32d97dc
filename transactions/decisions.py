"""Decisions: the decision of each command."""

from typing import assert_never

from seams.now import Now
from transactions.commands import (
    AbortTransaction,
    AddPartitions,
    EndTransaction,
    InitProducerId,
    TransactionCommand,
)
from transactions.decide.abort import decide_abort
from transactions.decide.add_partitions import decide_add_partitions
from transactions.decide.end_txn import decide_end_transaction
from transactions.decide.init_producer_id import decide_init_producer_id
from transactions.decision_context import TransactionContext
from transactions.outcome import TransactionOutcome
from transactions.transaction import TransactionView


def decide_transaction(
    transaction: TransactionView | None,
    command: TransactionCommand,
    now: Now,
    context: TransactionContext,
) -> TransactionOutcome:
    match command:
        case AddPartitions():
            return decide_add_partitions(transaction, command, now)
        case EndTransaction():
            return decide_end_transaction(transaction, command, now, context)
        case InitProducerId():
            return decide_init_producer_id(transaction, command, now, context)
        case AbortTransaction():
            return decide_abort(transaction, command, now, context)
        case _:
            assert_never(command)
