"""Transactions of a partition: its producers and their pending offsets, as one value.

A load builds it from a snapshot and the log, then the group store of the shard has it. In plain
values (`plain_transactions`) it is a part of each snapshot.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from coordinator.group import CommittedOffset
from coordinator.offsets.log_producers import LogProducers, ProducerRow
from coordinator.offsets.pending_offsets import PendingOffset, PendingOffsets, PendingRow
from protocol.names import GroupId, TopicName
from protocol.primitives import read_uuid
from storage.api import AbortedTransaction


class OffsetTransactions(NamedTuple):
    producers: LogProducers
    pending: PendingOffsets


def no_transactions() -> OffsetTransactions:
    return OffsetTransactions(LogProducers(), PendingOffsets())


class _PlainPending(NamedTuple):
    producer_id: int
    group_id: str
    topic: str
    partition: int
    record_offset: int
    is_superseded: bool
    committed_offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expire_at_ms: int
    topic_id: bytes


class _Plain(NamedTuple):
    producers: Sequence[Sequence[int | None]]
    aborted: Sequence[Sequence[int]]
    pending: Sequence[Sequence[object]]


def plain_transactions(transactions: OffsetTransactions) -> object:
    """What msgpack takes."""
    return _Plain(
        list(transactions.producers.rows()),
        list(transactions.producers.aborted),
        [_plain_pending(row) for row in transactions.pending.rows()],
    )


def transactions_of_plain(plain: object) -> OffsetTransactions:
    """What `plain_transactions` was asked about."""
    stored = _Plain._make(cast("Sequence[Sequence[Sequence[int]]]", plain))
    producers = LogProducers(
        [ProducerRow(*cast("Sequence[int]", row)) for row in stored.producers],
        [AbortedTransaction(*row) for row in stored.aborted],
    )
    pending = PendingOffsets()
    for row in stored.pending:
        pending.add(_pending_row(_PlainPending._make(row)))
    return OffsetTransactions(producers, pending)


def _plain_pending(row: PendingRow) -> _PlainPending:
    commit = row.offset.commit
    return _PlainPending(
        row.producer_id,
        row.group_id,
        row.topic,
        row.partition,
        row.offset.record_offset,
        row.offset.is_superseded,
        commit.committed_offset,
        commit.leader_epoch,
        commit.metadata,
        commit.committed_at_ms,
        commit.expire_at_ms,
        commit.topic_id.bytes,
    )


def _pending_row(plain: _PlainPending) -> PendingRow:
    commit = CommittedOffset(
        plain.committed_offset,
        plain.leader_epoch,
        plain.metadata,
        plain.committed_at_ms,
        plain.expire_at_ms,
        read_uuid(plain.topic_id),
    )
    return PendingRow(
        plain.producer_id,
        GroupId(plain.group_id),
        TopicName(plain.topic),
        plain.partition,
        PendingOffset(commit, plain.record_offset, plain.is_superseded),
    )
