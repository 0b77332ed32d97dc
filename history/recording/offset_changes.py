"""Offset changes: entries for commits by non-members, deletions and expiries of offsets.

A commit of the same offset is no change. Steady forward commits of one client are aggregated
(steady_commits.py). A member's commit in its generation is not recorded. Long lists of partitions
are split over several records, so that none is lost and no record is too large.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from coordinator.events import GroupDeleted
from coordinator.offsets.events import (
    NO_PRODUCER,
    DeletionCause,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsOfTopics,
    PendingOffsetsEnded,
)
from history.causes import OffsetsBy
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    OffsetsMovedEntry,
    PendingOffsetsEndedEntry,
)
from history.entry_values import (
    OffsetChange,
    RequestClient,
)
from history.recording.steady_commits import Committer, SteadyCommits, changed_only

_DELETIONS: Final[Mapping[DeletionCause, OffsetsBy]] = {
    DeletionCause.REQUESTED: OffsetsBy.DELETION,
    DeletionCause.EXPIRED: OffsetsBy.EXPIRY,
    DeletionCause.TOPIC_DELETED: OffsetsBy.TOPIC_DELETION,
}


def offset_entries(
    event: OffsetsCommitted | OffsetsDeleted | GroupDeleted,
    at_ms: int,
    most: int,
    steady: SteadyCommits,
) -> Iterator[HistoryEntry]:
    """The entries of an event, at most `most` partitions in each."""
    match event:
        case OffsetsCommitted():
            yield from split_entries(_commit_entries(event, at_ms, steady), most)
        case OffsetsDeleted():
            yield from split_entries(steady.end(event.group_id), most)
            by = _DELETIONS[event.cause]
            for chunk in chunks(_deleted(event.offsets), most):
                yield OffsetsMovedEntry(event.group_id, at_ms, by, chunk, _client(event))
        case GroupDeleted():
            yield from split_entries(steady.end(event.group_id), most)
            expired = event.cause is DeletionCause.EXPIRED
            by = OffsetsBy.GROUP_EXPIRY if expired else OffsetsBy.GROUP_DELETION
            for chunk in chunks(_deleted(event.offsets), most):
                yield OffsetsMovedEntry(event.group_id, at_ms, by, chunk, _client(event))
            yield GroupDeletedEntry(event.group_id, at_ms, expired, _client(event))
        case _:
            assert_never(event)


def aborted_entries(
    event: PendingOffsetsEnded, at_ms: int, most: int
) -> Iterator[PendingOffsetsEndedEntry]:
    """The entries of an aborted transaction, at most `most` partitions in each."""
    if event.is_commit:
        return  # what became visible has an event of its own
    dropped = [
        OffsetChange(topic, partition, None, commit.committed_offset)
        for topic, partitions in event.offsets
        for partition, commit in partitions.items()
    ]
    client = (
        RequestClient(event.client_id, event.client_host, event.principal)
        if event.client_host
        else None
    )
    for chunk in chunks(dropped, most):
        yield PendingOffsetsEndedEntry(
            event.group_id, at_ms, event.producer_id, event.producer_epoch, chunk, client
        )


def _commit_entries(
    event: OffsetsCommitted, at_ms: int, steady: SteadyCommits
) -> Iterator[OffsetsMovedEntry]:
    changes = tuple(changed_only(_committed(event)))
    if not changes:
        return
    client = RequestClient(event.client_id, event.client_host, event.principal)
    committer = Committer(event.group_id, client, event.member_id)
    aggregated = steady.add(committer, changes, at_ms)
    if aggregated is not None:
        yield from aggregated
        yield from steady.make_room()
        return
    is_forward = all(change.old is None or (change.new or 0) > change.old for change in changes)
    if is_forward:
        yield from steady.before(event.group_id, changes)
    else:
        yield from steady.end(event.group_id)
    yield OffsetsMovedEntry(
        event.group_id,
        at_ms,
        OffsetsBy.COMMIT,
        changes,
        client,
        event.member_id,
        producer_id=None if event.producer_id == NO_PRODUCER else event.producer_id,
    )
    steady.begin(committer, at_ms)


def _committed(event: OffsetsCommitted) -> list[OffsetChange]:
    changes = []
    replaced = dict(event.replaced)
    for topic, partitions in event.offsets:
        before = replaced.get(topic, {})
        for partition, commit in partitions.items():
            old = before[partition].committed_offset if partition in before else None
            changes.append(OffsetChange(topic, partition, old, commit.committed_offset))
    return changes


def _deleted(deleted: OffsetsOfTopics) -> list[OffsetChange]:
    return [
        OffsetChange(topic, partition, commit.committed_offset, None)
        for topic, partitions in deleted
        for partition, commit in partitions.items()
    ]


def split_entries(moved: Iterable[OffsetsMovedEntry], most: int) -> list[HistoryEntry]:
    """The same entries, with at most `most` partitions in each."""
    return [
        replace(entry, changes=chunk) for entry in moved for chunk in chunks(entry.changes, most)
    ]


def chunks(changes: Sequence[OffsetChange], most: int) -> Iterator[tuple[OffsetChange, ...]]:
    """Consecutive parts of at most `most` changes."""
    for at in range(0, len(changes), most):
        yield tuple(changes[at : at + most])


def _client(
    event: OffsetsDeleted | GroupDeleted | PendingOffsetsEnded,
) -> RequestClient | None:
    """The client that requested it; None for expiry and deleted topics."""
    return (
        RequestClient(event.client_id, event.client_host, event.principal)
        if event.client_host
        else None
    )
