"""Import history: which offsets did an import move, from where to where?

A daemon writes history in the turn that decides. An import decides nothing, so its plan is
recorded: the groups that it creates, and each offset that it moves, by `import`. The records are
written in the same step as the offsets (append.py), so that both are there or neither.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from history.causes import OffsetsBy
from history.encoding import encode
from history.entries import (
    GroupCreatedEntry,
    HistoryEntry,
    OffsetsMovedEntry,
)
from history.entry_values import RequestClient
from history.recording.offset_changes import chunks
from history.recording.record_limits import RecordLimits
from seams.java_hash import partition_of
from storage.batch.timed_batches import TimedRecord
from storage.log.partition_log import PartitionLog
from transfer.append import Beside
from transfer.plan import Plan


class ImportHistory(NamedTuple):
    """What goes into the history."""

    beside: list[Beside]
    recorded: int
    lost: int  # events that have no log to go to


def events_of(plan: Plan, now_ms: int, actor: RequestClient) -> Iterator[HistoryEntry]:
    """`actor`: the command, and the host that it ran on."""
    most = RecordLimits().offsets
    for change in plan.changes:
        if change.is_new:
            yield GroupCreatedEntry(change.group_id, now_ms, simple=not change.has_state)
        for part in chunks(change.moved, most):
            yield OffsetsMovedEntry(change.group_id, now_ms, OffsetsBy.IMPORT, part, actor)


def history_of_plan(
    plan: Plan, now_ms: int, actor: RequestClient, history: Sequence[PartitionLog | None]
) -> ImportHistory:
    """`history`: its partitions in order, None for one that is damaged; none if it is not kept."""
    if not history:
        return ImportHistory([], 0, 0)
    records: dict[int, list[TimedRecord]] = {}
    for event in events_of(plan, now_ms, actor):
        home = partition_of(event.group_id, len(history))
        records.setdefault(home, []).append(TimedRecord(now_ms, *encode(event)))
    total = sum(map(len, records.values()))
    logs = [(log, at) for at, log in enumerate(history) if log is not None and at in records]
    beside = [Beside(log, records[at]) for log, at in logs]
    recorded = sum(len(part.records) for part in beside)
    return ImportHistory(beside, recorded, total - recorded)
