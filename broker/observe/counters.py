"""Counters: the numbers that only events have, for the metrics.

Everything else that /metrics shows is read from the parts at scrape time, see metrics/. A function
for each type of event that counts; tests/broker/observe/test_observer.py names the other types.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeVar, cast

from broker.observe import events as shell
from broker.observe.stats import Histogram
from coordinator.classic import events as groups
from coordinator.consumer import events as consumers
from coordinator.events import GroupDeleted, PartitionClosed
from coordinator.offsets import events as offsets
from history.causes import End
from history.entries import HistoryEntry, RebalanceBegunEntry, RebalanceEndedEntry
from protocol.names import NO_GENERATION, OFFSETS_TOPIC, GroupId
from topics import events as topics
from transactions import events as transactions

REBALANCE_BUCKETS_S: Final[tuple[float, ...]] = (
    0.01,
    0.05,
    0.1,
    0.5,
    1.0,
    3.0,
    6.0,
    10.0,
    30.0,
    60.0,
    300.0,
)
ASSIGNMENT_BUCKETS_S: Final[tuple[float, ...]] = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    3.0,
    10.0,
)
LOAD_BUCKETS_S: Final[tuple[float, ...]] = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
RUNNING_REBALANCES_MAX: Final = 100_000

E = TypeVar("E")


class Counters:
    """Numbers that grow with events; plain integers, read by metrics/."""

    def __init__(self) -> None:
        self.rebalances_begun: dict[str, int] = {}  # by cause
        self.rebalances_completed: dict[str, int] = {}
        self.group_epochs_bumped: dict[str, int] = {}  # consumer groups: by the first cause
        self.target_assignment_seconds = Histogram(ASSIGNMENT_BUCKETS_S)
        self.target_assignments_refused = 0
        self.consumer_members_fenced = 0
        self.rebalance_seconds = Histogram(REBALANCE_BUCKETS_S)
        self.join_wait_seconds = Histogram(REBALANCE_BUCKETS_S)
        self.assignments_refused = 0
        self.members_added = 0
        self.members_fenced = 0
        self.static_members_replaced = 0
        self.members_removed: dict[str, int] = {}
        self.lapses_forgiven = 0
        self.offsets_committed = 0
        self.offsets_committed_outside = 0  # by no member of the group
        self.offsets_deleted: dict[str, int] = {}
        self.groups_deleted: dict[str, int] = {}
        self.load_seconds = Histogram(LOAD_BUCKETS_S)
        self.load_seconds_max = 0.0
        self.records_loaded = 0
        self.snapshots_taken = 0
        self.snapshots_ms = 0
        self.snapshot_bytes = 0
        self.snapshots_failed = 0
        self.snapshots_ignored = 0
        self.records_appended = 0
        self.bytes_appended = 0
        self.bytes_fetched = 0
        self.parts_failed = 0
        self.journal_failures = 0
        self.transactions_committed = 0
        self.transactions_aborted: dict[str, int] = {}  # by cause
        self.markers_written = 0
        self.markers_delayed = 0
        self.markers_refused = 0
        self.transaction_syncs_failed = 0
        self.producers_initialized = 0
        self.transactional_ids_expired = 0
        self.stalls = 0
        self.stalled_ms = 0
        self.running: dict[GroupId, tuple[str, int]] = {}  # rebalances: cause, since

        # For joins that found no common protocol (lag/verdict_watch.py).
        self.on_join_refused: Callable[[groups.JoinRefused], None] | None = None
        # For groups that are deleted (lag/verdict_watch.py).
        self.on_group_deleted: Callable[[str], None] | None = None
        # For each commit: who commits how often (lag/commit_rates.py).
        self.on_commit: Callable[[offsets.OffsetsCommitted], None] | None = None
        # For each that replaces offsets from outside the group (broker/audit/audit.py).
        self.on_outside_commit: Callable[[offsets.OffsetsCommitted], None] | None = None

    def count(self, event: object) -> None:
        counting = COUNTING.get(type(event))
        if counting is not None:
            counting(self, event)

    def count_entry(self, entry: HistoryEntry) -> None:
        """Rebalances of consumer groups: their events do not say when one begins or ends."""
        if isinstance(entry, RebalanceBegunEntry):
            if entry.group_type:
                _increment(self.rebalances_begun, entry.cause)
        elif isinstance(entry, RebalanceEndedEntry) and entry.rebalance.group_type:
            rebalance = entry.rebalance
            if rebalance.end is End.STABLE:
                _increment(self.rebalances_completed, rebalance.began_by or rebalance.cause)
                self.rebalance_seconds.add((rebalance.duration_ms or 0) / 1000)

    def oldest_rebalance_ms(self, now_ms: int) -> int:
        """How long the longest of those that run has lasted; 0 without one."""
        for _, since_ms in self.running.values():  # in the order in which they began
            return now_ms - since_ms
        return 0


COUNTING: Final[dict[type, Callable[[Counters, object], None]]] = {}
"""Each function takes the events of its own type alone."""


def _counts(event_type: type[E]) -> Callable[[Callable[[Counters, E], None]], None]:
    """Enter the decorated function into the table: it counts one type of event."""

    def enter(count: Callable[[Counters, E], None]) -> None:
        assert event_type not in COUNTING, f"{event_type.__name__} is counted already"
        COUNTING[event_type] = cast("Callable[[Counters, object], None]", count)

    return enter


def _increment(counts: dict[str, int], key: str, by: int = 1) -> None:
    counts[key] = counts.get(key, 0) + by


@_counts(groups.RebalanceBegun)
def _rebalance_begun(counters: Counters, event: groups.RebalanceBegun) -> None:
    _increment(counters.rebalances_begun, event.cause)
    if len(counters.running) < RUNNING_REBALANCES_MAX:
        # One that is begun again goes on: its clients have waited since the first.
        counters.running.setdefault(event.group_id, (event.cause, event.now_ms))


@_counts(groups.GroupStabilized)
def _group_stabilized(counters: Counters, event: groups.GroupStabilized) -> None:
    cause, since_ms = counters.running.pop(event.group_id, ("unknown", event.now_ms))
    _increment(counters.rebalances_completed, cause)
    counters.rebalance_seconds.add((event.now_ms - since_ms) / 1000)


@_counts(groups.GroupEmptied)
def _group_emptied(counters: Counters, event: groups.GroupEmptied) -> None:
    counters.running.pop(event.group_id, None)


@_counts(PartitionClosed)
def _partition_closed(counters: Counters, _event: PartitionClosed) -> None:
    # Which rebalances were those of this partition is not known here, and closing is rare: all
    # are forgotten.
    counters.running.clear()


@_counts(groups.GenerationBegun)
def _generation_begun(counters: Counters, event: groups.GenerationBegun) -> None:
    for waited_ms, members in Counter(event.waited_ms).items():  # many are the same
        counters.join_wait_seconds.add_times(waited_ms / 1000, members)


@_counts(groups.AssignmentRefused)
def _assignment_refused(counters: Counters, _event: groups.AssignmentRefused) -> None:
    counters.assignments_refused += 1


@_counts(groups.JoinRefused)
def _join_refused(counters: Counters, event: groups.JoinRefused) -> None:
    if counters.on_join_refused is not None:
        counters.on_join_refused(event)


@_counts(groups.MemberFenced)
def _member_fenced(counters: Counters, _event: groups.MemberFenced) -> None:
    counters.members_fenced += 1


@_counts(groups.StaticMemberReplaced)
def _static_member_replaced(counters: Counters, _event: groups.StaticMemberReplaced) -> None:
    counters.static_members_replaced += 1


@_counts(groups.MemberAdded)
def _member_added(counters: Counters, _event: groups.MemberAdded) -> None:
    counters.members_added += 1


@_counts(groups.MembersRemoved)
def _members_removed(counters: Counters, event: groups.MembersRemoved) -> None:
    _increment(counters.members_removed, event.cause, len(event.removed))


@_counts(groups.LapseForgiven)
def _lapse_forgiven(counters: Counters, _event: groups.LapseForgiven) -> None:
    counters.lapses_forgiven += 1


@_counts(consumers.GroupEpochBumped)
def _group_epoch_bumped(counters: Counters, event: consumers.GroupEpochBumped) -> None:
    for cause in event.causes[:1]:
        _increment(counters.group_epochs_bumped, cause)


@_counts(consumers.TargetAssignmentUpdated)
def _target_assignment_updated(
    counters: Counters, event: consumers.TargetAssignmentUpdated
) -> None:
    counters.target_assignment_seconds.add(event.took_ms / 1000)


@_counts(consumers.TargetAssignmentRefused)
def _target_assignment_refused(
    counters: Counters, _event: consumers.TargetAssignmentRefused
) -> None:
    counters.target_assignments_refused += 1


@_counts(consumers.ConsumerMemberUpdated)
def _consumer_member_updated(counters: Counters, event: consumers.ConsumerMemberUpdated) -> None:
    counters.members_added += event.is_new


@_counts(consumers.ConsumerMemberRemoved)
def _consumer_member_removed(counters: Counters, event: consumers.ConsumerMemberRemoved) -> None:
    _increment(counters.members_removed, event.cause)


@_counts(consumers.ConsumerStaticMemberReplaced)
def _consumer_static_member_replaced(
    counters: Counters, _event: consumers.ConsumerStaticMemberReplaced
) -> None:
    counters.static_members_replaced += 1


@_counts(consumers.ConsumerMemberFenced)
def _consumer_member_fenced(counters: Counters, _event: consumers.ConsumerMemberFenced) -> None:
    counters.consumer_members_fenced += 1


@_counts(offsets.OffsetsCommitted)
def _offsets_committed(counters: Counters, event: offsets.OffsetsCommitted) -> None:
    if counters.on_commit is not None:
        counters.on_commit(event)
    for _, partitions in event.offsets:
        counters.offsets_committed += len(partitions)
        if event.generation_id == NO_GENERATION:
            counters.offsets_committed_outside += len(partitions)
    if event.replaced and counters.on_outside_commit is not None:
        counters.on_outside_commit(event)


@_counts(offsets.OffsetsDeleted)
def _offsets_deleted(counters: Counters, event: offsets.OffsetsDeleted) -> None:
    count = sum(len(partitions) for _, partitions in event.offsets)
    _increment(counters.offsets_deleted, event.cause, count)


@_counts(GroupDeleted)
def _group_deleted(counters: Counters, event: GroupDeleted) -> None:
    _increment(counters.groups_deleted, event.cause)
    if counters.on_group_deleted is not None:
        counters.on_group_deleted(event.group_id)
    counters.running.pop(event.group_id, None)
    count = sum(len(partitions) for _, partitions in event.offsets)
    _increment(counters.offsets_deleted, event.cause, count)


@_counts(topics.RecordsAppended)
def _records_appended(counters: Counters, event: topics.RecordsAppended) -> None:
    counters.records_appended += event.records
    counters.bytes_appended += event.bytes


@_counts(topics.RecordsFetched)
def _records_fetched(counters: Counters, event: topics.RecordsFetched) -> None:
    counters.bytes_fetched += event.bytes


@_counts(shell.PartitionRead)
def _partition_read(counters: Counters, event: shell.PartitionRead) -> None:
    if event.topic != OFFSETS_TOPIC:
        return
    seconds = event.load_ms / 1000
    counters.load_seconds.add(seconds)
    counters.load_seconds_max = max(counters.load_seconds_max, seconds)
    counters.records_loaded += event.records


@_counts(shell.SnapshotTaken)
def _snapshot_taken(counters: Counters, event: shell.SnapshotTaken) -> None:
    counters.snapshots_taken += 1
    counters.snapshots_ms += event.took_ms
    counters.snapshot_bytes += event.size_bytes


@_counts(shell.SnapshotFailed)
def _snapshot_failed(counters: Counters, _event: shell.SnapshotFailed) -> None:
    counters.snapshots_failed += 1


@_counts(shell.SnapshotIgnored)
def _snapshot_ignored(counters: Counters, _event: shell.SnapshotIgnored) -> None:
    counters.snapshots_ignored += 1


@_counts(shell.PartFailed)
def _part_failed(counters: Counters, _event: shell.PartFailed) -> None:
    counters.parts_failed += 1


@_counts(shell.JournalFailed)
def _journal_failed(counters: Counters, _event: shell.JournalFailed) -> None:
    counters.journal_failures += 1


@_counts(shell.LoopStalled)
def _loop_stalled(counters: Counters, event: shell.LoopStalled) -> None:
    counters.stalls += 1
    counters.stalled_ms += event.stalled_ms


@_counts(transactions.ProducerInitialized)
def _producer_initialized(counters: Counters, _event: transactions.ProducerInitialized) -> None:
    counters.producers_initialized += 1


@_counts(transactions.TransactionPrepared)
def _transaction_prepared(counters: Counters, event: transactions.TransactionPrepared) -> None:
    if not event.is_commit:
        _increment(counters.transactions_aborted, event.cause or "producer")


@_counts(transactions.TransactionCompleted)
def _transaction_completed(counters: Counters, event: transactions.TransactionCompleted) -> None:
    counters.transactions_committed += event.is_commit


@_counts(transactions.TransactionalIdExpired)
def _transactional_id_expired(
    counters: Counters, _event: transactions.TransactionalIdExpired
) -> None:
    counters.transactional_ids_expired += 1


@_counts(transactions.CommitSyncFailed)
def _commit_sync_failed(counters: Counters, _event: transactions.CommitSyncFailed) -> None:
    counters.transaction_syncs_failed += 1


@_counts(transactions.MarkersDelayed)
def _markers_delayed(counters: Counters, _event: transactions.MarkersDelayed) -> None:
    counters.markers_delayed += 1


@_counts(transactions.MarkerRefused)
def _marker_refused(counters: Counters, _event: transactions.MarkerRefused) -> None:
    counters.markers_refused += 1


@_counts(shell.MarkersWritten)
def _markers_written(counters: Counters, event: shell.MarkersWritten) -> None:
    counters.markers_written += event.markers
