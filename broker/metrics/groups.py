"""Groups: states, members, commits, and why they rebalance, over all groups.

Read from the coordinator's group counts and from the counters of events
(broker/observe/counters.py). No label has a value that clients choose; series of single groups are
in labelled.py.
Kafka's counterpart: `GroupCoordinatorMetrics`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions
from coordinator.classic.events import RemovalCause
from coordinator.consumer.events import ConsumerRemovalCause, EpochCause
from coordinator.group import GroupType
from coordinator.offsets.events import DeletionCause
from history.causes import Cause
from history.recording.attribution import CAUSES
from history.recording.consumer_turn_recorder import EPOCH_CAUSES
from protocol.names import GroupState

_GROUPS_PER_SLICE: Final = 500

_GROUPS: Final = Family(
    "group_coordinator_groups",
    MetricKind.GAUGE,
    "Groups by state.",
    ("protocol", "state"),
    kafka="group-count{protocol}; consumer-group-count{state}; NumGroups, NumGroupsStable, ...",
)
_MEMBERS: Final = Family("group_coordinator_members", MetricKind.GAUGE, "Members of all groups.")
_OFFSETS: Final = Family(
    "group_coordinator_offsets",
    MetricKind.GAUGE,
    "Committed offsets that the coordinator keeps.",
    kafka="NumOffsets",
)
_PARTITIONS: Final = Family(
    "group_coordinator_partitions",
    MetricKind.GAUGE,
    "Partitions of the offsets topic by state: loading, failed or active.",
    ("state",),
    kafka="num-partitions{state}",
)
_LOAD_SECONDS: Final = Family(
    "group_coordinator_partition_load_seconds",
    MetricKind.HISTOGRAM,
    "Time from the first record read of a partition of the offsets topic until it is served.",
    kafka="partition-load-time-avg (sum by count)",
)
_LOAD_LONGEST: Final = Family(
    "group_coordinator_partition_load_max_seconds",
    MetricKind.GAUGE,
    "The longest load of a partition of the offsets topic since the start.",
    kafka="partition-load-time-max (over 30 s)",
)
_LOADED_RECORDS: Final = Family(
    "group_coordinator_loaded_records_total",
    MetricKind.COUNTER,
    "Records of the offsets topic that loads have read.",
)
_OFFSET_COMMITS: Final = Family(
    "group_coordinator_offset_commits_total",
    MetricKind.COUNTER,
    "Offsets committed, one per partition of a commit.",
    kafka="offset-commit-count, offset-commit-rate",
)
_OUTSIDE_COMMITS: Final = Family(
    "group_coordinator_outside_offset_commits_total",
    MetricKind.COUNTER,
    "Offsets committed by clients outside the group (generation -1): tools, simple consumers.",
)
_OFFSET_DELETIONS: Final = Family(
    "group_coordinator_offset_deletions_total",
    MetricKind.COUNTER,
    "Offsets that were removed, by cause.",
    ("cause",),
    kafka="offset-expiration-count, offset-deletion-count",
)
_GROUP_DELETIONS: Final = Family(
    "group_coordinator_group_deletions_total",
    MetricKind.COUNTER,
    "Groups that were removed, by cause.",
    ("cause",),
)
_REBALANCES_BEGUN: Final = Family(
    "group_coordinator_rebalances_begun_total",
    MetricKind.COUNTER,
    "Rebalances that began, by cause. Here and below those of consumer groups need "
    "rollcall.history.enable.",
    ("cause",),
)
_REBALANCES_COMPLETED: Final = Family(
    "group_coordinator_rebalances_completed_total",
    MetricKind.COUNTER,
    "Rebalances that ended with a Stable group, by the cause of their begin.",
    ("cause",),
    kafka="group-completed-rebalance-count, group-completed-rebalance-rate",
)
_REBALANCES_RUNNING: Final = Family(
    "group_coordinator_rebalances_running", MetricKind.GAUGE, "Rebalances that have not ended yet."
)
_REBALANCE_OLDEST: Final = Family(
    "group_coordinator_rebalance_oldest_seconds",
    MetricKind.GAUGE,
    "Duration so far of the longest running rebalance; 0 without one.",
)
_REBALANCE_SECONDS: Final = Family(
    "group_coordinator_rebalance_seconds",
    MetricKind.HISTOGRAM,
    "Time from the begin of a rebalance until the group is Stable.",
)
_JOIN_WAIT_SECONDS: Final = Family(
    "group_coordinator_join_wait_seconds",
    MetricKind.HISTOGRAM,
    "How long a member's JoinGroup waited for the other members.",
    kafka="RemoteTimeMs of JoinGroup",
)
_MEMBERS_ADDED: Final = Family(
    "group_coordinator_members_added_total", MetricKind.COUNTER, "Members that joined."
)
_MEMBERS_REMOVED: Final = Family(
    "group_coordinator_members_removed_total",
    MetricKind.COUNTER,
    "Members that were removed, by cause.",
    ("cause",),
)
_MEMBERS_FENCED: Final = Family(
    "group_coordinator_members_fenced_total",
    MetricKind.COUNTER,
    "Requests of static members that were fenced, because another member uses their "
    "group.instance.id.",
)
_STATIC_REPLACED: Final = Family(
    "group_coordinator_static_members_replaced_total",
    MetricKind.COUNTER,
    "Static members that rejoined with a new member id.",
)
_SESSIONS_FORGIVEN: Final = Family(
    "group_coordinator_sessions_forgiven_total",
    MetricKind.COUNTER,
    "Members whose session had expired, and that sent a request before a rebalance was needed.",
)
_GROUP_EPOCHS: Final = Family(
    "group_coordinator_consumer_group_rebalances_total",
    MetricKind.COUNTER,
    "Group epochs of consumer groups that began, by cause.",
    ("cause",),
    kafka="consumer-group-rebalance-count, consumer-group-rebalance-rate",
)
_TARGET_SECONDS: Final = Family(
    "group_coordinator_target_assignment_seconds",
    MetricKind.HISTOGRAM,
    "Time that a server-side assignor took for a target assignment.",
)
_TARGETS_REFUSED: Final = Family(
    "group_coordinator_target_assignments_failed_total",
    MetricKind.COUNTER,
    "Target assignments that a server-side assignor could not compute.",
)
_EPOCHS_FENCED: Final = Family(
    "group_coordinator_consumer_members_fenced_total",
    MetricKind.COUNTER,
    "Requests to consumer groups that were fenced, because of an old member epoch or an instance "
    "id that is in use.",
)
_ASSIGNMENTS_REFUSED: Final = Family(
    "group_coordinator_assignments_refused_total",
    MetricKind.COUNTER,
    "Assignments of group leaders that could not be stored.",
)


_IN_REBALANCE: Final = (
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
)
_STATES: Final = {
    GroupType.CLASSIC: (
        GroupState.EMPTY,
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
        GroupState.DEAD,
    ),
    GroupType.CONSUMER: (
        GroupState.EMPTY,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
        GroupState.STABLE,
        GroupState.DEAD,
    ),
}


def collect(daemon: Daemon) -> Portions:
    yield from _present(daemon)
    yield from _offsets(daemon)
    yield from _rebalances(daemon)
    yield from _members(daemon)
    yield from _loads(daemon)


def _present(daemon: Daemon) -> Portions:
    group_counts = daemon.coordinator.group_counts
    yield _GROUPS.samples(
        ((kind.value, state.value), group_counts.of_type[kind][state])
        for kind, states in _STATES.items()
        for state in states
    )
    yield _MEMBERS.sample(group_counts.members)


def _offsets(daemon: Daemon) -> Portions:
    counters = daemon.observer.counters
    offsets = count = 0
    for partition in range(daemon.config.offsets_topic_num_partitions):
        for group in daemon.coordinator.groups_of(partition):
            offsets += sum(map(len, group.offsets.values()))
            count += 1
            if count % _GROUPS_PER_SLICE == 0:
                yield None
    yield _OFFSETS.sample(offsets)
    yield _OFFSET_COMMITS.sample(counters.offsets_committed)
    yield _OUTSIDE_COMMITS.sample(counters.offsets_committed_outside)
    yield _OFFSET_DELETIONS.by_label(_by(DeletionCause, counters.offsets_deleted))
    yield _GROUP_DELETIONS.by_label(_by(DeletionCause, counters.groups_deleted))


def _rebalances(daemon: Daemon) -> Portions:
    counters, now_ms = daemon.observer.counters, daemon.clock.now().mono_ms
    states = daemon.coordinator.group_counts.states
    yield _REBALANCES_BEGUN.by_label(_by_cause(counters.rebalances_begun))
    yield _REBALANCES_COMPLETED.by_label(_by_cause(counters.rebalances_completed))
    yield _REBALANCES_RUNNING.sample(sum(states[state] for state in _IN_REBALANCE))
    epochs = {cause.value: 0 for cause in EPOCH_CAUSES.values()}
    for cause, count in counters.group_epochs_bumped.items():
        epochs[EPOCH_CAUSES[EpochCause(cause)].value] += count
    yield _GROUP_EPOCHS.by_label(epochs)
    yield _TARGET_SECONDS.histograms({(): counters.target_assignment_seconds})
    yield _TARGETS_REFUSED.sample(counters.target_assignments_refused)
    oldest_ms = counters.oldest_rebalance_ms(now_ms)
    if daemon.history is not None:
        since_ms = daemon.history.recorder.oldest_reconciliation_ms()
        oldest_ms = max(oldest_ms, 0 if since_ms is None else now_ms - since_ms)
    yield _REBALANCE_OLDEST.sample(oldest_ms / 1000)
    yield _REBALANCE_SECONDS.histograms({(): counters.rebalance_seconds})
    yield _JOIN_WAIT_SECONDS.histograms({(): counters.join_wait_seconds})
    yield _ASSIGNMENTS_REFUSED.sample(counters.assignments_refused)


def _members(daemon: Daemon) -> Portions:
    counters = daemon.observer.counters
    yield _MEMBERS_ADDED.sample(counters.members_added)
    removed = _by(RemovalCause, counters.members_removed)
    yield _MEMBERS_REMOVED.by_label(_by(ConsumerRemovalCause, removed))
    yield _MEMBERS_FENCED.sample(counters.members_fenced)
    yield _EPOCHS_FENCED.sample(counters.consumer_members_fenced)
    yield _STATIC_REPLACED.sample(counters.static_members_replaced)
    yield _SESSIONS_FORGIVEN.sample(counters.lapses_forgiven)


def _loads(daemon: Daemon) -> Portions:
    ownership, counters = daemon.ownership, daemon.observer.counters
    failed, loading = len(ownership.failed), ownership.loading
    yield _PARTITIONS.by_label(
        {"loading": loading, "failed": failed, "active": ownership.owned - loading - failed}
    )
    yield _LOAD_SECONDS.histograms({(): counters.load_seconds})
    yield _LOAD_LONGEST.sample(counters.load_seconds_max)
    yield _LOADED_RECORDS.sample(counters.records_loaded)


def _by(causes: type[Enum], counts: Mapping[str, int]) -> dict[str, int]:
    """A series for each cause from the start: a rate misses the step from no series to 1."""
    return {str(cause.value): 0 for cause in causes} | dict(counts)


def _by_cause(counts: Mapping[str, int]) -> dict[str, int]:
    """By the history's causes, which users see; the coordinator's are finer."""
    found = {cause.value: 0 for cause in Cause}
    for cause, count in counts.items():
        word = _WORDS.get(cause, cause)
        found[word] = found.get(word, 0) + count
    return found


_WORDS: Final = {str(own.value): cause.value for own, cause in CAUSES.items()}
