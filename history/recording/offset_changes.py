"""Who moved a group's offsets? The facts of commits by nobody, of deletions and of expiries.

From n to n is no move. What one client moves steadily forward is gathered (steady_commits.py). A
member's commit in its generation is its work and no fact of the history. Long lists of partitions
go into several records, so that none is lost and none is too large.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from coordinator.events import Event, GroupDeleted
from coordinator.offsets.events import (
    DeletionCause,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsOfTopics,
)
from history.causes import OffsetsBy
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    OffsetChange,
    OffsetsMovedEntry,
    RequestClient,
)
from history.recording.steady_commits import Committer, SteadyCommits, without_moves

_DELETIONS: Final[Mapping[DeletionCause, OffsetsBy]] = {
    DeletionCause.REQUESTED: OffsetsBy.DELETION,
    DeletionCause.EXPIRED: OffsetsBy.EXPIRY,
    DeletionCause.TOPIC_DELETED: OffsetsBy.TOPIC_DELETION,
}


def offset_facts(
    event: Event, at_ms: int, most: int, steady: SteadyCommits
) -> Iterator[HistoryEntry]:
    """At most so many partitions in each."""
    if isinstance(event, OffsetsCommitted):
        yield from parted(_commit_facts(event, at_ms, steady), most)
        return
    if isinstance(event, OffsetsDeleted | GroupDeleted):
        yield from parted(steady.end(event.group_id), most)
    if isinstance(event, OffsetsDeleted):
        for part in parts_of(_lost(event.offsets), most):
            yield OffsetsMovedEntry(
                event.group_id, at_ms, _DELETIONS[event.cause], part, _asker(event)
            )
    elif isinstance(event, GroupDeleted):
        expired = event.cause is DeletionCause.EXPIRED
        by = OffsetsBy.GROUP_EXPIRY if expired else OffsetsBy.GROUP_DELETION
        for part in parts_of(_lost(event.offsets), most):
            yield OffsetsMovedEntry(event.group_id, at_ms, by, part, _asker(event))
        yield GroupDeletedEntry(event.group_id, at_ms, expired, _asker(event))


def _commit_facts(
    event: OffsetsCommitted, at_ms: int, steady: SteadyCommits
) -> Iterator[OffsetsMovedEntry]:
    changes = tuple(without_moves(_committed(event)))
    if not changes:
        return
    asker = RequestClient(event.client_id, event.client_host)
    who = Committer(event.group_id, asker, event.member_id)
    gathered = steady.take(who, changes, at_ms)
    if gathered is not None:
        yield from gathered
        yield from steady.make_room()
        return
    is_forward = all(one.old is None or (one.new or 0) > one.old for one in changes)
    if is_forward:
        yield from steady.before(event.group_id, changes)
    else:
        yield from steady.end(event.group_id)
    yield OffsetsMovedEntry(
        event.group_id, at_ms, OffsetsBy.COMMIT, changes, asker, event.member_id
    )
    steady.begin(who, at_ms)


def _committed(event: OffsetsCommitted) -> list[OffsetChange]:
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


def parted(moved: Iterable[OffsetsMovedEntry], most: int) -> list[HistoryEntry]:
    """The same, with at most so many partitions in each."""
    return [replace(fact, changes=part) for fact in moved for part in parts_of(fact.changes, most)]


def parts_of(changes: Sequence[OffsetChange], most: int) -> Iterator[tuple[OffsetChange, ...]]:
    """As many as one record takes, again and again."""
    for at in range(0, len(changes), most):
        yield tuple(changes[at : at + most])


def _asker(event: OffsetsDeleted | GroupDeleted) -> RequestClient | None:
    """The client that asked; time and deleted topics ask by themselves."""
    return RequestClient(event.client_id, event.client_host) if event.client_host else None
