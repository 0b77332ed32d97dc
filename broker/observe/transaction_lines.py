"""Log lines of transactions: what happens to transactional ids and to the partitions of their log.

What every transaction brings is at level debug. Kafka's counterparts: the log of
`TransactionCoordinator`, `TransactionStateManager`, `TransactionMarkerChannelManager`.
"""

from collections.abc import Iterable
from typing import Final

from broker.observe.log_lines import (
    LineTable,
    LogFields,
    LogLine,
    first_names,
    log_lines_for,
)
from protocol.names import TRANSACTION_STATE_TOPIC, ErrorCode
from storage.api import TopicPartition
from transactions import events as transactions
from transactions.events import AbortCause

TRANSACTION_LINES: Final[LineTable] = {}

_ABORTS: Final = {
    AbortCause.NEW_PRODUCER: ("info", "Rolling back ongoing transaction: it has a new producer"),
    AbortCause.TIMEOUT: ("info", "Rolling back ongoing transaction due to timeout"),
    AbortCause.UNSYNCED_DATA: (
        "warning",
        "Rolling back ongoing transaction: the system stopped before its records were synced",
    ),
}


@log_lines_for(TRANSACTION_LINES, transactions.ProducerInitialized)
def _(event: transactions.ProducerInitialized) -> Iterable[LogLine]:
    fields = _fields(event.transactional_id, event.producer_id, event.producer_epoch)
    fields["timeout_ms"] = event.timeout_ms
    yield LogLine("info", "Initialized transactionalId", fields)


@log_lines_for(TRANSACTION_LINES, transactions.TransactionPrepared)
def _(event: transactions.TransactionPrepared) -> Iterable[LogLine]:
    fields = _fields(event.transactional_id, event.producer_id, event.producer_epoch)
    fields["partitions"] = event.partitions
    if event.cause is None:
        fields["result"] = _result(event.is_commit)
        yield LogLine("debug", "Ending transaction", fields)
    else:
        level, message = _ABORTS[event.cause]
        yield LogLine(level, message, fields)


@log_lines_for(TRANSACTION_LINES, transactions.TransactionCompleted)
def _(event: transactions.TransactionCompleted) -> Iterable[LogLine]:
    fields = _fields(event.transactional_id, event.producer_id, event.producer_epoch)
    fields |= {"result": _result(event.is_commit), "duration_ms": event.duration_ms}
    yield LogLine("debug", "Completed transaction", fields)


@log_lines_for(TRANSACTION_LINES, transactions.TransactionalIdExpired)
def _(event: transactions.TransactionalIdExpired) -> Iterable[LogLine]:
    fields: LogFields = {
        "transactional_id": event.transactional_id,
        "producer_id": event.producer_id,
        "last_update_at_ms": event.last_update_at_ms,
    }
    yield LogLine("info", "Removed expired transactionalId", fields)


@log_lines_for(TRANSACTION_LINES, transactions.CommitSyncFailed)
def _(event: transactions.CommitSyncFailed) -> Iterable[LogLine]:
    fields: LogFields = {"transactional_id": event.transactional_id, **_causes(event.errors)}
    message = "Could not sync the records of a transaction; its commit was refused"
    yield LogLine("warning", message, fields)


@log_lines_for(TRANSACTION_LINES, transactions.MarkersDelayed)
def _(event: transactions.MarkersDelayed) -> Iterable[LogLine]:
    fields: LogFields = {"transactional_id": event.transactional_id, **_causes(event.errors)}
    message = "Some partitions did not take the marker of a transaction; trying again"
    yield LogLine("warning", message, fields)


@log_lines_for(TRANSACTION_LINES, transactions.MarkerRefused)
def _(event: transactions.MarkerRefused) -> Iterable[LogLine]:
    fields = _fields(event.transactional_id, event.producer_id, event.producer_epoch)
    topic, partition = event.topic_partition
    fields |= {"partition": f"{topic}-{partition}", "error": event.error_code.name}
    message = "A partition refused the marker of a transaction: it stays open until a restart"
    yield LogLine("error", message, fields)


@log_lines_for(TRANSACTION_LINES, transactions.TransactionsLoaded)
def _(event: transactions.TransactionsLoaded) -> Iterable[LogLine]:
    partition = _partition(event.partition)
    for skipped in event.skipped:
        fields: LogFields = {"partition": partition, "offset": skipped.offset}
        yield LogLine(
            "warning", "Skipped a transaction record", {**fields, "reason": skipped.reason}
        )
    yield LogLine(
        "info" if event.transactional_ids else "debug",
        "Finished loading transaction metadata",
        {
            "partition": partition,
            "transactional_ids": event.transactional_ids,
            "open": event.open_transactions,
            "prepared": event.prepared,
        },
    )


@log_lines_for(TRANSACTION_LINES, transactions.TransactionsClosed)
def _(event: transactions.TransactionsClosed) -> Iterable[LogLine]:
    fields: LogFields = {
        "partition": _partition(event.partition),
        "transactional_ids": event.transactional_ids,
    }
    yield LogLine("debug", "Closed the transactions of a partition", fields)


def _fields(transactional_id: str, producer_id: int, producer_epoch: int) -> LogFields:
    return {
        "transactional_id": transactional_id,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
    }


def _result(is_commit: bool) -> str:  # noqa: FBT001 - of an event
    return "commit" if is_commit else "abort"


def _partition(partition: int) -> str:
    return f"{TRANSACTION_STATE_TOPIC}-{partition}"


def _causes(errors: Iterable[tuple[TopicPartition, ErrorCode]]) -> LogFields:
    named = [f"{topic}-{index}: {error_code.name}" for (topic, index), error_code in errors]
    return {"partitions": first_names(named)}
