"""End of a transaction: what a marker does to the pending offsets of its producer in one group.

The shard asks it for each group when it appends a marker, and a load when it reads one.
Kafka's counterpart: `OffsetMetadataManager.replayEndTransactionMarker`.
"""

from coordinator.events import Event, GroupCreated
from coordinator.group import CommittedOffset
from coordinator.group_view import GroupView
from coordinator.offsets.events import OffsetsCommitted, PendingOffsetsEnded
from coordinator.offsets.offset_commit import replaced_offsets
from coordinator.offsets.pending_offsets import PendingOffsets
from protocol.names import NO_GENERATION, GroupId, ProducerId, TopicName
from storage.api import EndMarker

Commits = dict[TopicName, dict[int, CommittedOffset]]


def decide_end_of_transaction(
    group_id: GroupId,
    group: GroupView | None,
    pending: PendingOffsets,
    marker: EndMarker,
    at_ms: int,
) -> list[Event]:
    """The events of one of the groups in which the producer has pending offsets."""
    producer_id = ProducerId(marker.producer_id)
    ended: Commits = {}
    visible: Commits = {}
    for topic, partition, offset in pending.of_producer(producer_id, group_id):
        ended.setdefault(topic, {})[partition] = offset.commit
        if marker.is_commit and not offset.is_superseded:
            visible.setdefault(topic, {})[partition] = offset.commit
    committer = pending.committer(producer_id, group_id)
    client = (committer.client_id, committer.client_host)
    events: list[Event] = []
    if visible:
        if group is None:
            events.append(GroupCreated(group_id, at_ms, simple=True))
        offsets = list(visible.items())
        is_recorded = committer.generation_id == NO_GENERATION and group is not None
        replaced = replaced_offsets(group.offsets, offsets) if group and is_recorded else ()
        events.append(
            OffsetsCommitted(
                group_id,
                at_ms,
                committer.generation_id,
                committer.member_id,
                *client,
                offsets,
                replaced,
                producer_id,
                committer.principal,
            )
        )
    events.append(
        PendingOffsetsEnded(
            group_id,
            at_ms,
            producer_id,
            marker.producer_epoch,
            marker.is_commit,
            list(ended.items()),
            *client,
            committer.principal,
        )
    )
    return events
