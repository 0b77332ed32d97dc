"""Control batches: transaction markers, and what a load reads of each kind of batch.

A marker ends the transaction of one producer in one partition. It is a batch of one record: the key
says commit or abort, the value has the epoch of the transaction coordinator that wrote it.
Kafka's counterparts: EndTransactionMarker, ControlRecordType.
"""

from struct import Struct
from typing import Final

from storage.api import EndMarker, LoggedRecord, StoredMarker, StoredRecord, TransactionalRecord
from storage.batch.record_batch import (
    CONTROL_FLAG,
    LOG_APPEND_TIME,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    encode_batch,
    read_header,
    read_records,
)

_KEY: Final = Struct(">hh")  # version, type
_VALUE: Final = Struct(">hi")  # version, coordinator epoch
_VERSION: Final = 0
ABORT: Final = 0
COMMIT: Final = 1

NO_SEQUENCE: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

_NOT_PLAIN: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG


def encode_marker(
    marker: EndMarker,
    base_offset: int,
    timestamp_ms: int,
    leader_epoch: int = 0,
    *,
    log_append_time: bool = False,
) -> bytes:
    """The batch of one marker, as Kafka writes it."""
    key = _KEY.pack(_VERSION, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return encode_batch(
        [(key, value)],
        base_offset,
        timestamp_ms,
        leader_epoch,
        marker.producer_id,
        marker.producer_epoch,
        NO_SEQUENCE,
        _NOT_PLAIN | (LOG_APPEND_TIME if log_append_time else 0),
    )


def read_marker(batch: bytes, header: BatchHeader) -> EndMarker | None:
    """The marker of a control batch; None for another control record, or if it was emptied."""
    if not header.is_transactional:
        return None
    for _, _, key, value, _ in read_records(batch, 0, header):
        if key is None or len(key) < _KEY.size:
            continue  # of a later Kafka
        kind = _KEY.unpack_from(key)[1]
        if kind in (ABORT, COMMIT):
            epoch = NO_COORDINATOR_EPOCH
            if value is not None and len(value) >= _VALUE.size:
                epoch = _VALUE.unpack_from(value)[1]
            return EndMarker(header.producer_id, header.producer_epoch, kind == COMMIT, epoch)
    return None


def control_type(batch: bytes, header: BatchHeader) -> int | None:
    """ABORT, COMMIT, the number of another control record; None of a batch left empty."""
    for _, _, key, _, _ in read_records(batch, 0, header):
        kind: int = -1 if key is None or len(key) < _KEY.size else _KEY.unpack_from(key)[1]
        return kind
    return None


def logged_records(batch: bytes, header: BatchHeader | None = None) -> list[LoggedRecord]:
    """All that a batch says, for the load of a shard. Raises InvalidBatch."""
    header = header or read_header(batch)
    if not header.attributes & _NOT_PLAIN:
        return [StoredRecord(*fields[:4]) for fields in read_records(batch, 0, header)]
    if header.is_control:
        marker = read_marker(batch, header)
        if marker is None:
            return []
        return [StoredMarker(header.base_offset, header.max_timestamp, marker)]
    sequence = header.base_sequence - header.base_offset
    return [
        TransactionalRecord(
            *fields[:4], header.producer_id, header.producer_epoch, fields[0] + sequence
        )
        for fields in read_records(batch, 0, header)
    ]
