"""Who moved a group's offsets? The facts of commits by nobody, of deletions and of expiries.

A member's commit in its generation is its work and no fact of the history. Long lists of partitions
go into several records, so that none is lost and none is too large.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coordinator import offset_events as offsets
from coordinator.events import Event
from coordinator.offset_events import DeletionCause, OffsetsOfTopics
from history.events import (
    Asker,
    GroupDeleted,
    HistoryEvent,
    OffsetChange,
    OffsetsBy,
    OffsetsMoved,
)

_DELETIONS: Final[Mapping[DeletionCause, OffsetsBy]] = {
    DeletionCause.REQUESTED: OffsetsBy.DELETION,
    DeletionCause.EXPIRED: OffsetsBy.EXPIRY,
    DeletionCause.TOPIC_DELETED: OffsetsBy.TOPIC_DELETION,
}


def offset_facts(event: Event, at_ms: int, most: int) -> Iterator[HistoryEvent]:
    """At most so many partitions in each."""
    if isinstance(event, offsets.OffsetsCommitted):
        asker = Asker(event.client_id, event.client_host)
        for part in parts_of(_committed(event), most):
            yield OffsetsMoved(
                event.group_id, at_ms, OffsetsBy.COMMIT, part, asker, event.member_id
            )
    elif isinstance(event, offsets.OffsetsDeleted):
        for part in parts_of(_lost(event.offsets), most):
            yield OffsetsMoved(event.group_id, at_ms, _DELETIONS[event.cause], part, _asker(event))
    elif isinstance(event, offsets.GroupDeleted):
        expired = event.cause is DeletionCause.EXPIRED
        by = OffsetsBy.GROUP_EXPIRY if expired else OffsetsBy.GROUP_DELETION
        for part in parts_of(_lost(event.offsets), most):
            yield OffsetsMoved(event.group_id, at_ms, by, part, _asker(event))
        yield GroupDeleted(event.group_id, at_ms, expired, _asker(event))


def _committed(event: offsets.OffsetsCommitted) -> list[OffsetChange]:
    changes = []
    replaced = dict(event.replaced)
    for topic, partitions in event.offsets:
        before = replaced.get(topic, {})
        for partition, commit in partitions.items():
            old = before[partition].committed_offset if partition in before else None
            changes.append(OffsetChange(topic, partition, old, commit.committed_offset))
    return changes


def _lost(gone: OffsetsOfTopics) -> list[OffsetChange]:
    return [
        OffsetChange(topic, partition, commit.committed_offset, None)
        for topic, partitions in gone
        for partition, commit in partitions.items()
    ]


def parts_of(changes: Sequence[OffsetChange], most: int) -> Iterator[tuple[OffsetChange, ...]]:
    """As many as one record takes, again and again."""
    for at in range(0, len(changes), most):
        yield tuple(changes[at : at + most])


def _asker(event: offsets.OffsetsDeleted | offsets.GroupDeleted) -> Asker | None:
    """The client that asked; time and deleted topics ask by themselves."""
    return Asker(event.client_id, event.client_host) if event.client_host else None
