"""Record schemas: the key and the value of each record of `__transaction_state`, by version.

Field for field as TransactionLogKey.json and TransactionLogValue.json. A key has one version, 0: it
is the record type. Value version 1 (transaction.version 1 and up) is flexible, and its new fields
are tagged; Kafka 4.3.1 declares next_producer_epoch and never writes it.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from protocol.names import ProducerId, TopicName, TransactionalId
from protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    NEVER,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    tagged,
)

TRANSACTION_LOG: Final = 0
"""The only record type."""


class TransactionLogKey(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    transactional_id: Annotated[TransactionalId, STRING] = TransactionalId("")


class PartitionsSchema(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partition_ids: Annotated[Sequence[int], array(INT32)] = ()


class TransactionLogValue(Message):
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    producer_id: Annotated[ProducerId, INT64] = ProducerId(0)
    previous_producer_id: Annotated[ProducerId, tagged(INT64, 0, since=1, ignorable=True)] = (
        ProducerId(-1)
    )
    next_producer_id: Annotated[ProducerId, tagged(INT64, 1, since=1, ignorable=True)] = ProducerId(
        -1
    )
    producer_epoch: Annotated[int, INT16] = 0
    next_producer_epoch: Annotated[int, tagged(INT16, 3, since=1, ignorable=True)] = -1
    transaction_timeout_ms: Annotated[int, INT32] = 0
    transaction_status: Annotated[int, INT8] = 0
    transaction_partitions: Annotated[
        Sequence[PartitionsSchema] | None, nullable(array(PartitionsSchema))
    ] = ()
    transaction_last_update_timestamp_ms: Annotated[int, INT64] = 0
    transaction_start_timestamp_ms: Annotated[int, INT64] = 0
    client_transaction_version: Annotated[int, tagged(INT16, 2, since=1, ignorable=True)] = 0
