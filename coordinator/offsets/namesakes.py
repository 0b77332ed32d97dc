"""Namesake commits: pending offsets of a topic that has the name of a deleted one.

The tombstones of the deleted topic's offsets remove all that is pending for a partition. Those of
its namesake were acknowledged after the deletion, so they are written again, in their transaction.
Kafka has no counterpart: its tombstones take them.
"""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.offsets.events import OffsetsPending
from coordinator.offsets.log_producers import LogProducer
from coordinator.offsets.pending_offsets import OffsetCommitter, PendingOffset, PendingOffsets
from coordinator.outcome import Outcome
from coordinator.records import add_offset_commits
from protocol.names import GroupId, ProducerId, TopicName
from seams.now import Now
from storage.api import BatchProducer, Position, RecordPair


class NamesakeCommit(NamedTuple):
    producer_id: int
    partition: int
    offset: PendingOffset
    committer: OffsetCommitter


def pending_of(
    pending: PendingOffsets, group_id: GroupId, topic: TopicName
) -> list[NamesakeCommit]:
    """All of this name that may become visible, in the order of the log."""
    found = [
        NamesakeCommit(producer_id, index, offset, pending.committer(producer_id, group_id))
        for index, producers in pending.of_group(group_id).get(topic, {}).items()
        for producer_id, offset in producers.items()
        if not offset.is_superseded
    ]
    return sorted(found, key=lambda commit: commit.offset.record_offset)


def written_again(
    commit: NamesakeCommit,
    group_id: GroupId,
    topic: TopicName,
    producers: Mapping[int, LogProducer],
    first_offset: Position,
    value_version: int,
    now: Now,
) -> Outcome:
    """As its transaction wrote it; `first_offset` is where its record will be."""
    offsets = {commit.partition: commit.offset.commit}
    records: list[RecordPair] = []
    add_offset_commits(records, group_id, topic, offsets, value_version)
    producer = BatchProducer(commit.producer_id, producers[commit.producer_id].producer_epoch)
    committer = commit.committer
    event = OffsetsPending(
        group_id,
        now.wall_ms,
        committer.generation_id,
        committer.member_id,
        committer.client_id,
        committer.client_host,
        ProducerId(commit.producer_id),
        producer.producer_epoch,
        first_offset,
        [(topic, offsets)],
        committer.principal,
    )
    return Outcome(events=[event], records=records, producer=producer)
