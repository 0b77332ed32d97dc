"""Transaction records: decodes records of `__transaction_state`, with kafka-dump-log's field names.

Kafka's counterpart: TransactionLogMessageParser of DumpLogSegments.
"""

from typing import Final

from coordinator.record_schemas import RecordSchema
from logtools.group_records import decode_by_schema
from logtools.record_view import ShownRecord
from transactions.record_schemas import TRANSACTION_LOG, TransactionLogKey, TransactionLogValue

_RECORD_TYPES: Final[dict[int, RecordSchema]] = {
    TRANSACTION_LOG: RecordSchema("TransactionLog", TransactionLogKey, TransactionLogValue)
}


def decode_transaction_record(key: bytes | None, value: bytes | None) -> ShownRecord:
    """One record, key and value; nothing raises."""
    return decode_by_schema(_RECORD_TYPES, key, value)
