"""Log dump: the records and batches of a log as JSON objects, filtered.

Reads batch after batch in constant memory, so that a log of any size can be piped on. Bytes that
cannot be read are passed to `on_damage`, with file and position, and reading continues after them.
Kafka's counterpart: DumpLogSegments with --print-data-log and a decoder.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from logtools.decoders import decode_control, decoder_for
from logtools.kafka_json import Json, base64_text
from logtools.layout import DataPlace, PartitionPlace, SegmentFile, after_offset
from logtools.record_view import ShownRecord
from logtools.walk import Batch, DamagedBytes, walk
from storage.batch.compression import COMPRESSION_NAMES
from storage.batch.record_batch import (
    NO_PRODUCER_ID,
    BatchHeader,
    Headers,
    InvalidBatch,
    RecordFields,
    read_records,
)

OnDamage = Callable[[Path, DamagedBytes], None]


class Wanted(Struct, frozen=True):
    """The filters: an empty one lets everything through. Times are ms, both ends included."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[tuple[str, int | None]] = frozenset()
    """(topic, partition) of a commit; None is every partition."""
    kinds: frozenset[str] = frozenset()
    """Names of record types in lower case, or their numbers."""
    from_offset: int = 0
    since_ms: int | None = None
    until_ms: int | None = None
    with_batches: bool = False
    with_records: bool = True

    def has_batch(self, header: BatchHeader) -> bool:
        """May it hold a record that is wanted?"""
        if header.last_offset < self.from_offset:
            return False
        return self.since_ms is None or header.max_timestamp >= self.since_ms

    def has_record(self, offset: int, timestamp_ms: int) -> bool:
        return (
            offset >= self.from_offset
            and (self.since_ms is None or timestamp_ms >= self.since_ms)
            and (self.until_ms is None or timestamp_ms <= self.until_ms)
        )

    def has(self, shown: ShownRecord) -> bool:
        if self.groups and shown.group not in self.groups:
            return False
        if self.topics and not (
            (shown.topic, None) in self.topics or (shown.topic, shown.partition) in self.topics
        ):
            return False
        if not self.kinds or shown.kind.lower() in self.kinds:
            return True
        number = shown.key.get("type") if isinstance(shown.key, dict) else None
        return str(number) in self.kinds


def dump(place: DataPlace, wanted: Wanted, on_damage: OnDamage) -> Iterator[dict[str, Json]]:
    """Every wanted object, partition by partition, in the order of their offsets."""
    for partition in place.partitions:
        for segment in after_offset(partition.segments, wanted.from_offset):
            yield from _dump_segment(partition, segment, wanted, on_damage)


def _dump_segment(
    place: PartitionPlace, segment: SegmentFile, wanted: Wanted, on_damage: OnDamage
) -> Iterator[dict[str, Json]]:
    for found in walk(segment.path):
        if isinstance(found, DamagedBytes):
            on_damage(segment.path, found)
            continue
        if not wanted.has_batch(found.header):
            continue
        if wanted.with_batches:
            yield {**_where(place), "batch": _batch_facts(segment, found)}
        if not wanted.with_records:
            continue
        try:
            records = read_records(found.content)
        except InvalidBatch as fault:
            on_damage(segment.path, DamagedBytes(found.position, found.header.size, fault.reason))
            continue
        yield from _dump_records(place, found.header, records, wanted)


def _dump_records(
    place: PartitionPlace, header: BatchHeader, records: list[RecordFields], wanted: Wanted
) -> Iterator[dict[str, Json]]:
    decode = decode_control if header.is_control else decoder_for(place.topic)
    for offset, timestamp_ms, key, value, headers in records:
        if not wanted.has_record(offset, timestamp_ms):
            continue
        shown = decode(key, value)
        if not wanted.has(shown):
            continue
        yield _record(place, header, _Placed(offset, timestamp_ms, headers), shown)


class _Placed(NamedTuple):
    offset: int
    timestamp_ms: int
    headers: Headers


def _record(
    place: PartitionPlace, header: BatchHeader, placed: _Placed, shown: ShownRecord
) -> dict[str, Json]:
    line: dict[str, Json] = {
        **_where(place),
        "offset": placed.offset,
        "timestamp": placed.timestamp_ms,
        "type": shown.kind,
        "key": shown.key,
        "value": shown.value,
    }
    if placed.headers:
        line["headers"] = [
            {"key": key.decode(errors="replace"), "value": _header_value(value)}
            for key, value in placed.headers
        ]
    if header.producer_id != NO_PRODUCER_ID:
        line["producerId"] = header.producer_id
        line["producerEpoch"] = header.producer_epoch
        line["isTransactional"] = header.is_transactional
    if shown.problem is not None:
        line["problem"] = shown.problem
    return line


def _header_value(value: bytes | None) -> Json:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"bytes": base64_text(value)}


def _where(place: PartitionPlace) -> dict[str, Json]:
    if place.partition is None:
        return {"topic": place.topic}
    return {"topic": place.topic, "partition": place.partition}


def _batch_facts(segment: SegmentFile, batch: Batch) -> dict[str, Json]:
    """The header, in the words of kafka-dump-log."""
    header = batch.header
    facts: dict[str, Json] = {
        "file": str(segment.path),
        "position": batch.position,
        "size": header.size,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.records_count,
        "baseSequence": header.base_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "timestampType": "LogAppendTime" if header.log_append_time else "CreateTime",
        "maxTimestamp": header.max_timestamp,
        "compresscodec": _codec(header.compression),
        "crc": header.crc,
        "magic": header.magic,
    }
    if header.has_delete_horizon:
        facts["deleteHorizonMs"] = header.base_timestamp
    else:
        facts["baseTimestamp"] = header.base_timestamp
    return facts


def _codec(compression: int) -> str:
    known = compression < len(COMPRESSION_NAMES)
    return COMPRESSION_NAMES[compression] if known else f"codec {compression}"
