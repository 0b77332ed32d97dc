"""Atomic append: after a crash the whole plan is applied, or none of it (`rollback_journal.py`).

In order: make durable what the logs already hold / write each log's end to the rollback journal /
append the records to their partitions, and their events to the history's / sync everything / remove
the rollback journal. Opening the directory before that last step truncates the logs to those ends.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from protocol.names import OFFSETS_TOPIC
from storage.api import TopicPartition
from storage.batch.timed_batches import TimedRecord, timed_batches
from storage.disk import Disk
from storage.log.partition_log import PartitionLog
from storage.repair import rollback_journal
from transfer.contents import home_of
from transfer.plan import Plan


class Target(Protocol):
    """A stopped broker's directory, opened for writing."""

    disk: Disk
    path: str
    partitions: int

    def existing(self, partition: int) -> PartitionLog | None: ...

    def log(self, partition: int) -> PartitionLog:
        """The partition's log; made if it is not there yet."""

    def stamp(self, partitions: Sequence[int]) -> Mapping[str, object] | None:
        """What shows later whether others wrote here, but for these partitions."""


class Beside(NamedTuple):
    """What is written in the same step into another log, which is there."""

    log: PartitionLog
    records: Sequence[TimedRecord]


class Appended(NamedTuple):
    """What was written."""

    partitions: int
    records: int
    batches: int
    bytes: int


def apply_plan(target: Target, plan: Plan, now_ms: int, beside: Sequence[Beside] = ()) -> Appended:
    """Write it, all or nothing. Raises OSError, LogClosed; then the next opening undoes it."""
    per_partition: dict[int, list[TimedRecord]] = {}
    for change in plan.changes:
        home = home_of(change.group_id, target.partitions)
        per_partition.setdefault(home, []).extend(change.records)
    if not per_partition:
        return Appended(0, 0, 0, 0)
    partitions = sorted(per_partition)
    _begin(target, partitions, [other.log for other in beside])
    batches = size = 0
    for partition in partitions:
        log = target.log(partition)
        for batch, _count in timed_batches(per_partition[partition]):
            log.append(batch, now_ms)
            batches += 1
            size += len(batch)
    for log, records in beside:
        for batch, _count in timed_batches(records):
            log.append(batch, now_ms)
    for log in [target.log(partition) for partition in partitions] + [
        other.log for other in beside
    ]:
        log.flush()
    rollback_journal.delete_journal(target.disk, target.path)
    return Appended(len(partitions), plan.records, batches, size)


def _begin(target: Target, partitions: Sequence[int], others: Sequence[PartitionLog]) -> None:
    ends: dict[TopicPartition, int] = {}
    for log in others:
        log.flush()
        ends[log.topic_partition] = log.log_end_offset
    for partition in partitions:
        found = target.existing(partition)
        if found is not None:
            found.flush()  # a killed process may have left it in the page cache
        key = TopicPartition(OFFSETS_TOPIC, partition)
        ends[key] = 0 if found is None else found.log_end_offset
    rollback_journal.write_journal(target.disk, target.path, ends, target.stamp(partitions))
