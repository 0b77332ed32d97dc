"""Batch validation: checks a produced record batch, and returns the bytes to be stored.

Pure: bytes and settings in; bytes or an error out, with the checks in Kafka's order.
`check_request` checks the records of a request before the topic is known, `check_batch` the rest. A
batch is stored as received but for two fields of its header, unless the topic has another
compression type.
Kafka's counterpart: `ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords`,
`LogValidator`.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, assert_never

import msgspec

from protocol.messages.produce import BatchIndexAndErrorMessage
from protocol.names import ErrorCode
from storage.api import TopicPartition
from storage.batch.compression import COMPRESSION_NAMES, ZSTD
from storage.batch.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    InvalidBatch,
    computed_crc,
)
from storage.batch.record_check import (
    BrokenRule,
    RecordCheck,
    RecordFault,
    RecordRules,
    check_records,
)
from storage.batch.rewrite import recompressed, restamped
from topics.configs import EffectiveConfig

FIRST_ZSTD_VERSION: Final = 7

_HEADER: Final = Struct(">qiibIhiqqqhii")
_EXTENT: Final = Struct(">qiib")  # offset, length, leader epoch, magic: the same in all formats
_LEAST_LENGTH: Final = 14  # of a record of the oldest format
_MAGIC: Final = 2
_LONG_MIN: Final = -(1 << 63)
_UNCOMPRESSED: Final = "uncompressed"


class RejectedBatch(msgspec.Struct, frozen=True):
    """Why records are refused. `message` and `record_errors` are for the client."""

    error_code: ErrorCode
    reason: str
    message: str | None = None
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    has_log_start: bool = True  # Kafka returns it with some errors, not with all


class ValidatedBatch(msgspec.Struct, frozen=True):
    """A valid batch; `header` is of `batch` as it will be stored."""

    batch: bytes
    header: BatchHeader
    max_timestamp: int


def check_request(records: bytes | None, api_version: int) -> BatchHeader | RejectedBatch:
    """The header of the one batch of a partition; its contents are not checked yet."""
    if not records:
        return _early(ErrorCode.INVALID_RECORD, "no record batch")
    header = _header_at(records, 0)
    if isinstance(header, RejectedBatch):
        return header
    if header is None:
        return _early(ErrorCode.INVALID_RECORD, "no whole record batch")
    if header.magic != _MAGIC:
        return _early(ErrorCode.INVALID_RECORD, f"magic {header.magic}")
    if header.compression == ZSTD and api_version < FIRST_ZSTD_VERSION:
        return _early(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd in version {api_version}")
    # The bytes after it may be a torn batch, which Kafka truncates silently.
    second = _header_at(records, header.size)
    if isinstance(second, RejectedBatch):
        return second
    if second is not None:
        return _early(ErrorCode.INVALID_RECORD, "more than one record batch")
    return header


def is_transactional(records: bytes | None) -> bool:
    """Whether the first batch is one of a transaction. Bytes that are no batch are not."""
    header = _header_at(records, 0) if records else None
    return isinstance(header, BatchHeader) and header.magic == _MAGIC and header.is_transactional


def check_batch(
    records: bytes,
    header: BatchHeader,
    config: EffectiveConfig,
    topic_partition: TopicPartition,
    now_ms: int,
    pause: Callable[[], None] | None = None,
) -> ValidatedBatch | RejectedBatch:
    """The batch to append, or the first reason against it.

    `pause` is called regularly while records are read.
    """
    refusal = _header_fault(records, header, config)
    if refusal is not None:
        return refusal
    batch = records if len(records) == header.size else records[: header.size]
    rules = _rules(header, config, now_ms)
    try:
        walked = check_records(batch, header, rules, pause)
    except InvalidBatch as fault:
        # Kafka differs: it answers UNKNOWN_SERVER_ERROR where decompression fails, and rewrites a
        # compressed batch with other offsets, which no client of this format sends.
        return _invalid(fault.reason)
    if walked.fault_count:
        return _refuse_records(walked, rules, topic_partition)
    assert walked.max_timestamp is not None, "a batch has a record"
    max_timestamp = now_ms if config.log_append_time else walked.max_timestamp
    return _stored_form(batch, header, max_timestamp, config)


def _header_at(records: bytes, position: int) -> BatchHeader | RejectedBatch | None:
    """The header at `position`; None where no whole batch is left."""
    left = len(records) - position
    if left < LOG_OVERHEAD:
        return None
    length = int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    if length < _LEAST_LENGTH:
        text = f"Record size {length} is less than the minimum record overhead ({_LEAST_LENGTH})"
        return _early(ErrorCode.CORRUPT_MESSAGE, text, text)
    if left < _EXTENT.size:
        return None
    magic = _EXTENT.unpack_from(records, position)[3]
    if not 0 <= magic <= _MAGIC:
        text = f"Invalid magic found in record: {magic}"
        return _early(ErrorCode.CORRUPT_MESSAGE, text, text)
    if left < length + LOG_OVERHEAD:
        return None
    if left < HEADER_BYTES or magic < _MAGIC:
        # Too short for a header of format 2, or of another format: the caller refuses it.
        return BatchHeader(0, length, 0, magic, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return BatchHeader._make(_HEADER.unpack_from(records, position))


def _header_fault(
    records: bytes, header: BatchHeader, config: EffectiveConfig
) -> RejectedBatch | None:
    if header.size >= HEADER_BYTES and header.base_offset != 0:
        return _invalid(f"base offset {header.base_offset}, not 0")
    if header.size > config.max_message_bytes:
        return RejectedBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{header.size} bytes, max.message.bytes is {config.max_message_bytes}",
            has_log_start=False,
        )
    if header.size < HEADER_BYTES or computed_crc(records, 0, header.size) != header.crc:
        return RejectedBatch(
            ErrorCode.CORRUPT_MESSAGE, "the checksum does not match", has_log_start=False
        )
    count = header.last_offset_delta + 1
    if count <= 0 or header.records_count <= 0 or count != header.records_count:
        return _invalid(f"{header.records_count} records at {count} offsets")
    if header.is_control:
        return _invalid("a client must not write control records")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        return _invalid(f"sequence number {header.base_sequence} of a producer with an id")
    if header.compression >= len(COMPRESSION_NAMES):
        return _invalid(f"unknown compression type {header.compression}")
    return None


def _rules(header: BatchHeader, config: EffectiveConfig, now_ms: int) -> RecordRules:
    """The rules for each record. With the log's own timestamps there are no limits of time."""
    before, after = config.timestamp_before_max_ms, config.timestamp_after_max_ms
    has_no_time = header.max_timestamp == NO_TIMESTAMP
    return RecordRules(
        needs_keys=config.compact,
        earliest=_LONG_MIN if config.log_append_time else now_ms - before,
        latest=-_LONG_MIN if config.log_append_time else now_ms + after,
        refuses_append_time=header.log_append_time and (config.log_append_time or has_no_time),
        in_order=bool(header.compression),
    )


def _refuse_records(
    walked: RecordCheck, rules: RecordRules, topic_partition: TopicPartition
) -> RejectedBatch:
    errors = [
        BatchIndexAndErrorMessage(fault.index, _fault_text(fault, rules, topic_partition))
        for fault in walked.faults
    ]
    reason = errors[0].batch_index_error_message or ""
    if walked.about_time:
        message = "One or more records have been rejected due to invalid timestamp"
        return RejectedBatch(ErrorCode.INVALID_TIMESTAMP, reason, message, errors)
    shown = ", ".join(
        f"RecordError(batchIndex={fault.batch_index}, message='{fault.batch_index_error_message}')"
        for fault in errors[:3]
    )
    message = (
        f"One or more records have been rejected due to {walked.fault_count} record errors in "
        f"total, and only showing the first three errors at most: [{shown}]"
    )
    return RejectedBatch(ErrorCode.INVALID_RECORD, reason, message, errors)


def _fault_text(fault: RecordFault, rules: RecordRules, topic_partition: TopicPartition) -> str:
    """Kafka's error text."""
    match fault.broken:
        case BrokenRule.MISSING_KEY:
            where = f"{topic_partition.topic}-{topic_partition.partition}"
            return f"Compacted topic cannot accept message without key in topic partition {where}"
        case BrokenRule.TIMESTAMP_OUT_OF_RANGE:
            return (
                f"Timestamp {fault.timestamp} of message with offset {fault.offset} is out of "
                f"range. The timestamp should be within [{rules.earliest}, {rules.latest}]"
            )
        case BrokenRule.APPEND_TIME:
            return (
                f"Invalid timestamp type in message DefaultRecord(offset={fault.offset}, "
                f"timestamp={fault.timestamp}, key={max(fault.key_bytes, 0)} bytes, "
                f"value={max(fault.value_bytes, 0)} bytes). "
                "Producer should not set timestamp type to LogAppendTime."
            )
        case _:
            assert_never(fault.broken)


def _stored_form(
    batch: bytes,
    header: BatchHeader,
    max_timestamp: int,
    config: EffectiveConfig,
) -> ValidatedBatch | RejectedBatch:
    """The batch with the topic's timestamp type and compression."""
    if max_timestamp != header.max_timestamp or config.log_append_time != header.log_append_time:
        batch = restamped(
            batch, header, max_timestamp=max_timestamp, log_append_time=config.log_append_time
        )
        header = BatchHeader._make(_HEADER.unpack_from(batch))
    wanted = config.compression_type
    if wanted == _UNCOMPRESSED:
        wanted = COMPRESSION_NAMES[0]
    if wanted not in ("producer", COMPRESSION_NAMES[header.compression]):
        compression = COMPRESSION_NAMES.index(wanted)
        batch = recompressed(batch, header, compression, config.compression_level)
        header = BatchHeader._make(_HEADER.unpack_from(batch))
        if header.size > config.max_message_bytes:
            return RejectedBatch(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{header.size} bytes as {wanted}, max.message.bytes is {config.max_message_bytes}",
                has_log_start=False,
            )
    if header.size > config.segment_bytes:
        return RejectedBatch(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{header.size} bytes, segment.bytes is {config.segment_bytes}",
            has_log_start=False,
        )
    return ValidatedBatch(batch, header, max_timestamp)


def _early(error_code: ErrorCode, reason: str, message: str | None = None) -> RejectedBatch:
    return RejectedBatch(error_code, reason, message, has_log_start=False)


def _invalid(reason: str) -> RejectedBatch:
    return RejectedBatch(ErrorCode.INVALID_RECORD, reason)
