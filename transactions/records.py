"""Record formats: transactional ids as bytes in `__transaction_state`, and back.

Byte for byte as Kafka 4.3.1 writes them, and read from either version. A key opens with its record
type, a value with its version, both int16; a record without a value is a tombstone.
Kafka's counterpart: `TransactionLog`.
"""

from struct import Struct
from typing import Final

from protocol.compiler import reader, writer
from protocol.names import TopicName, TransactionalId
from protocol.primitives import Malformed
from storage.api import Record, TopicPartition
from transactions.by_topic import by_topic
from transactions.metadata import STORED_STATES, TransactionMetadata, TransactionState
from transactions.record_schemas import (
    TRANSACTION_LOG,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

FLEXIBLE_VALUE_SINCE: Final = 1
"""The transaction version from which values are written in version 1."""

_INT16: Final = Struct(">h")


class UnreadableTransactionRecord(Exception):
    """A record that must be understood and is not: it fails the load of its partition."""


class UnknownVersion(Exception):
    """A record type or a value version of a later Kafka: a load skips it, as Kafka's does."""


def transaction_record(metadata: TransactionMetadata, transaction_version: int) -> Record:
    version = _value_version(metadata, transaction_version)
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=_partitions(metadata),
        transaction_last_update_timestamp_ms=metadata.last_update_at_ms,
        transaction_start_timestamp_ms=metadata.started_at_ms,
        client_transaction_version=metadata.client_transaction_version,
    )
    write = writer(TransactionLogValue, version, prefix=_INT16.pack(version))
    return Record(transaction_key(metadata.transactional_id), write(value))


def _value_version(metadata: TransactionMetadata, transaction_version: int) -> int:
    """Kafka differs: at level 0 it cannot write what a request of version 2 leads to, and leaves
    the transactional id pending forever."""
    is_flexible = transaction_version >= FLEXIBLE_VALUE_SINCE
    return 1 if is_flexible or metadata.client_transaction_version else 0


def tombstone(transactional_id: TransactionalId) -> Record:
    return Record(transaction_key(transactional_id), None)


def transaction_key(transactional_id: TransactionalId) -> bytes:
    write = writer(TransactionLogKey, 0, prefix=_INT16.pack(TRANSACTION_LOG))
    return write(TransactionLogKey(transactional_id))


def _partitions(metadata: TransactionMetadata) -> list[PartitionsSchema] | None:
    """By topic; null in Empty, and nowhere else."""
    if metadata.state is TransactionState.EMPTY:
        return None
    return [
        PartitionsSchema(TopicName(topic), partitions)
        for topic, partitions in by_topic(metadata.partitions)
    ]


def read_transaction_key(key: bytes | None) -> TransactionalId:
    """Raises UnknownVersion, UnreadableTransactionRecord."""
    if key is None or len(key) < _INT16.size:
        raise UnreadableTransactionRecord("the key is too short to name a record type")
    record_type: int = _INT16.unpack_from(key)[0]
    if record_type != TRANSACTION_LOG:
        raise UnknownVersion(f"record type {record_type} is not known")
    try:
        return reader(TransactionLogKey, 0)(key, _INT16.size, len(key)).transactional_id
    except Malformed as error:
        raise UnreadableTransactionRecord(f"key: {error}") from error


def read_transaction_value(transactional_id: TransactionalId, value: bytes) -> TransactionMetadata:
    """Raises UnknownVersion, UnreadableTransactionRecord."""
    if len(value) < _INT16.size:
        raise UnreadableTransactionRecord("the value is too short to have a version")
    version: int = _INT16.unpack_from(value)[0]
    if version not in TransactionLogValue.VERSIONS:
        raise UnknownVersion(f"value version {version} is not known")
    try:
        stored = reader(TransactionLogValue, version)(value, _INT16.size, len(value))
    except Malformed as error:
        raise UnreadableTransactionRecord(f"value version {version}: {error}") from error
    if stored.transaction_status not in STORED_STATES:
        raise UnreadableTransactionRecord(f"state {stored.transaction_status} is never stored")
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=TransactionState(stored.transaction_status),
        last_update_at_ms=stored.transaction_last_update_timestamp_ms,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in stored.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_at_ms=stored.transaction_start_timestamp_ms,
        client_transaction_version=stored.client_transaction_version,
    )


def record_bytes_at_most(record: Record) -> int:
    """A batch of this record is not larger: 61 bytes, and up to 21 beside the key and the value."""
    return 61 + 21 + len(record.key) + len(record.value or b"")
