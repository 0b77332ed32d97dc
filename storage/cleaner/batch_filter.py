"""Batch filter: what compaction leaves of one record batch, by Kafka's rules, byte for byte.

A record stays if its offset is at or after the end of the map, or if no newer record of its key is
in the map, and, where it is a tombstone, until its delete horizon has passed. The horizon is
stamped on a batch when a pass first keeps a tombstone in it: attribute bit 6, the base timestamp
becomes the moment from which on the tombstone may be removed, and the records' times are counted
from there. A marker whose transaction has nothing else left in the log is treated likewise.

What stays keeps its offset, and the batch keeps its first and last offset, epoch, producer and
sequence, so gaps appear. A batch of which all is kept is not touched. An empty one is kept as a
bare header where it says something that would be lost: the last sequence of an active producer, or
the offset that a pass ended at.
Kafka's counterparts: Cleaner.cleanInto, Cleaner.shouldRetainRecord, MemoryRecords.filterTo.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.batch.record_batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_sole_key,
)
from storage.batch.record_spans import RecordSpan, joined, moved, records_of, spans_in
from storage.batch.rewrite import assemble, compress
from storage.cleaner.messages import LastOfProducer
from storage.cleaner.offset_map import NOT_PLAIN, OffsetMap
from storage.log.transaction_ends import CleanedTransactions

KEPT_WHEN_EMPTY: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG | LOG_APPEND_TIME


class Filtered(NamedTuple):
    """What is left of a batch: None if nothing is, the batch itself if everything is."""

    batch: bytes | None
    records: int
    max_timestamp: int


_NOTHING: Final = Filtered(None, 0, NO_TIMESTAMP)


class BatchFilter:
    """Asked of every batch of a log in order."""

    def __init__(
        self,
        offset_map: OffsetMap,
        *,
        now_ms: int,
        delete_retention_ms: int,
        round_end: int,
        producers: Mapping[int, LastOfProducer],
        transactions: CleanedTransactions,
    ) -> None:
        """`round_end` is the first offset that the round might not clean, full map or not."""
        self._offsets = offset_map.offsets
        self._map_start = offset_map.start
        self._map_end = offset_map.end
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self._round_end = round_end
        self._producers = producers
        self._transactions = transactions
        self.without_key = offset_map.records_without_key  # dropped, for no newer one is known

    def filter(self, header: BatchHeader, batch: bytes) -> Filtered:
        """Raises InvalidBatch where the records are not what the header says."""
        if header.records_count == 1 and not header.attributes & NOT_PLAIN:
            left = self._filter_plain(header, batch)
            if left is not None:
                return left
        is_special = header.is_control or header.is_transactional
        may_discard = is_special and self._transactions.may_discard(header, batch)
        discards = may_discard
        if header.is_control:
            discards = may_discard and self._is_past(header)
        keeps_empty = self._is_last_of_its_producer(header) or header.next_offset == self._round_end
        kept: list[RecordSpan] = []
        everything = False
        records = b""
        if not discards:
            records = records_of(batch, header)
            spans = spans_in(records, header.records_count)
            kept = spans if header.is_control else self._kept(header, spans)
            everything = len(kept) == len(spans)
        if not kept:
            return self._emptied(header) if keeps_empty else _NOTHING
        needs_horizon = (may_discard and header.is_control) or not all(
            span.has_value for span in kept
        )
        if needs_horizon and not header.has_delete_horizon:
            return self._rebuilt(header, records, kept, self._horizon_ms)
        if everything:
            return Filtered(batch, len(kept), header.max_timestamp)
        return self._rebuilt(header, records, kept, None)

    def _filter_plain(self, header: BatchHeader, batch: bytes) -> Filtered | None:
        """The same for one record with a value, of no producer: most of what there is to keep."""
        if header.last_offset_delta or header.producer_id >= 0:
            return None
        key = read_sole_key(batch)
        if key is None:
            return None
        offset = header.base_offset
        if offset >= self._map_end or offset >= self._offsets.get(key, -1):
            return Filtered(batch, 1, header.max_timestamp)
        return None if offset + 1 == self._round_end else _NOTHING

    def _kept(self, header: BatchHeader, spans: list[RecordSpan]) -> list[RecordSpan]:
        base, newest = header.base_offset, self._offsets
        is_past = self._is_past(header)
        kept = []
        for span in spans:
            offset = base + span.offset_delta
            if offset >= self._map_end:
                kept.append(span)
            elif span.key is None:
                self.without_key += offset < self._map_start
            elif offset >= newest.get(span.key, -1) and (span.has_value or not is_past):
                kept.append(span)
        return kept

    def _is_past(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._now_ms

    def _is_last_of_its_producer(self, header: BatchHeader) -> bool:
        if header.producer_id < 0:
            return False
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset is not None:
            return last.last_offset == header.last_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _emptied(self, header: BatchHeader) -> Filtered:
        bare = header._replace(
            batch_length=HEADER_BYTES - LOG_OVERHEAD,
            attributes=header.attributes & KEPT_WHEN_EMPTY,
            base_timestamp=NO_TIMESTAMP,
            records_count=0,
        )
        return Filtered(assemble(bare, b""), 0, header.max_timestamp)

    def _rebuilt(
        self, header: BatchHeader, records: bytes, kept: list[RecordSpan], horizon_ms: int | None
    ) -> Filtered:
        """A batch of the kept records only; with a horizon, their times are counted from it."""
        old_base = header.base_timestamp
        if header.log_append_time:
            # All of its records have one time, whatever their deltas say.
            kept = [span._replace(timestamp_delta=header.max_timestamp - old_base) for span in kept]
        max_timestamp = max(old_base + span.timestamp_delta for span in kept)
        if horizon_ms is not None:
            base_timestamp = horizon_ms
        elif header.has_delete_horizon:
            base_timestamp = old_base
        else:
            base_timestamp = old_base + kept[0].timestamp_delta
        if base_timestamp == old_base and not header.log_append_time:
            content = joined(records, kept)
        else:
            content = moved(records, kept, base_timestamp - old_base)
        if header.compression:
            content = compress(content, header.compression, None)
        attributes = header.attributes
        if horizon_ms is not None:
            attributes |= DELETE_HORIZON_FLAG
        changed = header._replace(
            batch_length=HEADER_BYTES - LOG_OVERHEAD + len(content),
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            records_count=len(kept),
        )
        return Filtered(assemble(changed, content), len(kept), max_timestamp)
