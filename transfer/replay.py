"""Replay: the batches of one partition become contents, in order, each verified and counted.

The one reader for every log: a Kafka's, a backup's, our own. A transaction's records count from its
marker on. A record that must be decoded but cannot be is reported with its file, position and
offset; earlier records remain. Records of kinds of groups that are not served are only kept.
Kafka's counterpart: `CoordinatorLoaderImpl`, which stops where this one reports.
"""

from typing import Final

from coordinator.consumer.restore import CONSUMER_RECORDS
from coordinator.records import (
    GROUP_METADATA,
    UnreadableRecord,
    decode_record,
    read_group_metadata_value,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from storage.api import StoredRecord
from storage.batch.record_batch import HEADER_BYTES, InvalidBatch, read_header
from storage.log.transactions import CommittedRecords, Withheld
from transfer.contents import OFFSET_TYPES, Contents, type_name
from transfer.source_stats import BatchPosition, Damaged, Pending, SourceStats

TOMBSTONE: Final = "tombstone"


class Replay:
    """Fed the batches of one partition; the partitions of a source share contents and tally."""

    __slots__ = ("_committed", "_contents", "_next_offset", "_tally")

    def __init__(self, contents: Contents, tally: SourceStats) -> None:
        self._contents = contents
        self._tally = tally
        self._committed = CommittedRecords()
        self._next_offset = 0

    @property
    def next_offset(self) -> int:
        return self._next_offset

    def take(self, batch: bytes, place: BatchPosition) -> None:
        """The next batch of the partition."""
        tally = self._tally
        header = read_header(batch)
        if header.base_offset < self._next_offset:
            self._damaged(place, -1, f"offset {header.base_offset} after {self._next_offset - 1}")
            return
        self._next_offset = header.next_offset
        tally.batches += 1
        tally.records += 0 if header.is_control else header.records_count
        tally.control_batches += header.is_control
        tally.empty_batches += not header.records_count
        tally.compressed_batches += header.compression != 0 and header.size > HEADER_BYTES
        try:
            records = self._committed.take(batch)
        except InvalidBatch as fault:
            self._damaged(place, header.base_offset, fault.reason)
            return
        for record in records:
            try:
                self._apply(record)
            except UnreadableRecord as fault:
                self._damaged(place, record.offset, str(fault))

    def finish(self) -> None:
        """After the last batch: what became of its transactions."""
        committed, sums = self._committed, self._tally.transactions
        sums.committed += committed.committed
        sums.committed_records += committed.committed_records
        sums.aborted += committed.aborted
        sums.aborted_records += committed.aborted_records
        sums.pending += [p for record in committed.withheld if (p := _pending(record)) is not None]

    def _apply(self, record: StoredRecord) -> None:
        key, value = record.key, record.value
        kind = record_type(key)
        assert key is not None
        if value is None:
            self._contents.remove(key)
            self._tally.tombstones += 1
            self._tally.by_type[type_name(kind), TOMBSTONE] += 1
            return
        if kind == GROUP_METADATA:
            read_group_metadata_value(value)
        elif kind in CONSUMER_RECORDS:
            decode_record(key, value)
        elif kind not in OFFSET_TYPES and not _can_be_read(key, value):
            self._tally.kept_undecoded += 1
        self._contents.put(key, value, record.timestamp_ms)
        version = int.from_bytes(value[:2], "big", signed=True)
        self._tally.by_type[type_name(kind), f"v{version}"] += 1

    def _damaged(self, place: BatchPosition, offset: int, reason: str) -> None:
        self._tally.damaged.append(Damaged(place.file, place.position, offset, reason))


def _can_be_read(key: bytes, value: bytes) -> bool:
    try:
        return decode_record(key, value) is not None
    except UnreadableRecord:
        return False


def _pending(withheld: Withheld) -> Pending | None:
    """What it would commit; None for what no transaction should hold."""
    key, value = withheld.record.key, withheld.record.value
    try:
        if key is None or value is None or record_type(key) not in OFFSET_TYPES:
            return None
        group_id, topic, partition = read_offset_key(key)
        commit = read_offset_commit_value(value, record_type(key))
    except UnreadableRecord:
        return None
    return Pending(group_id, topic, partition, commit.committed_offset, withheld.producer_id)
