"""Restore: the records of a log, in their order, back to groups.

The inverse of records.py, used when a shard loads its partition and nowhere else: here a record
changes a group without a decision and without an event. Records of offsets are applied here, those
of a group type by its package (classic/restore.py, consumer/restore.py). The shard then starts the
timers and checks the groups against its limits. Reads every version that a Kafka ever wrote.

What was not stored is not there after a load: a rebalance in progress (the group is Stable in
the generation before it), ids that were handed out, and what a member offers besides the protocol
that was selected. Offsets of transactions are pending until their marker is read.
Kafka's counterpart: the `replay` methods of `GroupMetadataManager` and `OffsetMetadataManager`,
and what `CoordinatorLoaderImpl` skips.
"""

from typing import Protocol

from coordinator.classic.generation_record import GENERATION_BEGUN
from coordinator.classic.restore import apply_generation_record, apply_group_record
from coordinator.consumer.restore import CONSUMER_RECORDS, apply_consumer_record
from coordinator.events import GroupCreated
from coordinator.group_types import AnyGroup, new_group
from coordinator.loaded_record import StoredCommits
from coordinator.offsets.committed_offsets import offsets_by_partition
from coordinator.offsets.end_of_transaction import decide_end_of_transaction
from coordinator.offsets.events import OffsetsCommitted, PendingOffsetsEnded
from coordinator.offsets.evolve import evolve_offsets, evolve_pending
from coordinator.offsets.pending_offsets import PendingOffset, PendingOffsets, PendingRow
from coordinator.offsets.transactions import OffsetTransactions
from coordinator.record_schemas import RECORD_SCHEMAS
from coordinator.records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    UnreadableRecord,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from coordinator.stored_records import RecordSkipped
from protocol.names import GroupId
from protocol.primitives import Malformed
from storage.api import StoredMarker, StoredRecord, TransactionalRecord


class GroupTable(Protocol):
    """What a load writes records into: a dict of groups by id, or what decodes them when asked."""

    def get(self, group_id: GroupId, /) -> AnyGroup | None: ...
    def __setitem__(self, group_id: GroupId, group: AnyGroup, /) -> None: ...
    def __delitem__(self, group_id: GroupId, /) -> None: ...


def apply_record(groups: GroupTable, record: StoredRecord) -> RecordSkipped | None:
    """Write one record of the log into `groups`.

    Raises UnreadableRecord for what should have been understood; the partition must not be served
    then, for it would answer with offsets that have long been replaced.
    """
    kind = record_type(record.key)
    assert record.key is not None
    if kind in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        _apply_offset(groups, kind, record.key, record)
        return None
    if kind == GROUP_METADATA:
        apply_group_record(groups, record.key, record)
        return None
    if kind == GENERATION_BEGUN:
        try:
            apply_generation_record(groups, record.key, record.value)
        except Malformed as error:
            raise UnreadableRecord(kind, None, str(error)) from error
        return None
    if kind in CONSUMER_RECORDS:
        ended = apply_consumer_record(groups, kind, record.key, record)
        if ended is not None and ended.offsets:
            group = groups[ended.group_id] = new_group(ended.group_id, record.timestamp_ms)
            group.offsets = ended.offsets
        return None
    schema = RECORD_SCHEMAS.get(kind)
    return RecordSkipped(record.offset, kind, None if schema is None else schema.name)


def _apply_offset(groups: GroupTable, kind: int, key: bytes, record: StoredRecord) -> None:
    group_id, topic, partition = read_offset_key(key)
    group = groups.get(group_id)
    if record.value is None:
        if group is not None and topic in group.offsets:
            group.offsets[topic].pop(partition, None)
            if not group.offsets[topic]:
                del group.offsets[topic]
        return
    commit = read_offset_commit_value(record.value, kind)
    if group is None:
        # A simple group, until a record of its own says more.
        group = groups[group_id] = new_group(group_id, record.timestamp_ms)
    partitions = group.offsets.get(topic)
    if partitions is None:
        group.offsets[topic] = offsets_by_partition({partition: commit})
    else:
        partitions[partition] = commit


def apply_commits(groups: GroupTable, stored: StoredCommits) -> None:
    """Write the commits of a batch into their group, which is a simple one if it is new."""
    group = groups.get(stored.group_id)
    if group is None:
        group = groups[stored.group_id] = new_group(stored.group_id, stored.timestamp_ms)
    partitions = group.offsets.get(stored.topic)
    if partitions is None:
        group.offsets[stored.topic] = stored.commits
    else:
        partitions.update(stored.commits)


# ---------------------------------------------------------------- transactions


def apply_transactional_record(
    groups: GroupTable, transactions: OffsetTransactions, record: TransactionalRecord
) -> RecordSkipped | None:
    """A record of a transaction: a pending offset. Raises UnreadableRecord."""
    producer_id = record.producer_id
    transactions.producers.wrote(
        producer_id,
        record.producer_epoch,
        record.offset,
        record.offset,
        record.sequence,
        record.timestamp_ms,
    )
    kind = record_type(record.key)
    stored = StoredRecord(record.offset, record.timestamp_ms, record.key, record.value)
    if record.value is None or kind not in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        # Nobody writes them in a transaction; Kafka does not ask then.
        skipped = apply_record(groups, stored)
        note_plain_record(transactions.pending, stored)
        return skipped
    assert record.key is not None
    group_id, topic, partition = read_offset_key(record.key)
    commit = read_offset_commit_value(record.value, kind)
    if groups.get(group_id) is None:
        groups[group_id] = new_group(group_id, record.timestamp_ms)
    offset = PendingOffset(commit, record.offset)
    transactions.pending.add(PendingRow(producer_id, group_id, topic, partition, offset))
    return None


def note_plain_record(pending: PendingOffsets, record: StoredRecord) -> None:
    """A commit outside of transactions supersedes pending ones, a tombstone removes them."""
    if record_type(record.key) not in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        return
    assert record.key is not None
    group_id, topic, partition = read_offset_key(record.key)
    if record.value is None:
        pending.remove(group_id, topic, (partition,))
    else:
        pending.supersede(group_id, topic, partition)


def apply_marker(
    groups: GroupTable, transactions: OffsetTransactions, stored: StoredMarker
) -> None:
    """The end of a producer's transaction, for all of its pending offsets."""
    marker, at_ms = stored.marker, stored.timestamp_ms
    transactions.producers.ended(marker, stored.offset, at_ms)
    pending = transactions.pending
    for group_id in pending.groups_of(marker.producer_id):
        group = groups.get(group_id)
        for event in decide_end_of_transaction(group_id, group, pending, marker, at_ms):
            if isinstance(event, GroupCreated):
                group = groups[group_id] = new_group(group_id, at_ms)
            elif isinstance(event, OffsetsCommitted):
                assert group is not None
                evolve_offsets(group, event)
                evolve_pending(pending, event)
            else:
                assert isinstance(event, PendingOffsetsEnded)
                evolve_pending(pending, event)
