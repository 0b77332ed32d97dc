"""Groups: states, members, commits, and why they rebalance, over all groups.

Read from the coordinator's group counts and from the counters that events feed
(broker/observe/observer.py). No
label has a value that clients choose; series of single groups are in labelled.py.
Kafka's counterpart: `GroupCoordinatorMetrics`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions
from coordinator.classic.events import RemovalCause
from coordinator.offsets.events import DeletionCause
from history.causes import Cause
from history.recording.attribution import CAUSES
from protocol.names import GroupState

GROUPS_A_BREATH: Final = 500

GROUPS: Final = Family(
    "group_coordinator_groups",
    Kind.GAUGE,
    "Groups by state.",
    ("protocol", "state"),
    kafka="group-count{protocol}; NumGroups, NumGroupsStable and so on",
)
MEMBERS: Final = Family("group_coordinator_members", Kind.GAUGE, "Members of all groups.")
OFFSETS: Final = Family(
    "group_coordinator_offsets",
    Kind.GAUGE,
    "Committed offsets that the coordinator keeps.",
    kafka="NumOffsets",
)
PARTITIONS: Final = Family(
    "group_coordinator_partitions",
    Kind.GAUGE,
    "Partitions of the offsets topic by state: loading, failed or active.",
    ("state",),
    kafka="num-partitions{state}",
)
LOAD_SECONDS: Final = Family(
    "group_coordinator_partition_load_seconds",
    Kind.HISTOGRAM,
    "Time from the first record read of a partition of the offsets topic until it is served.",
    kafka="partition-load-time-avg (sum by count)",
)
LOAD_LONGEST: Final = Family(
    "group_coordinator_partition_load_max_seconds",
    Kind.GAUGE,
    "The longest load of a partition of the offsets topic since the start.",
    kafka="partition-load-time-max (over 30 s)",
)
LOADED_RECORDS: Final = Family(
    "group_coordinator_loaded_records_total",
    Kind.COUNTER,
    "Records of the offsets topic that loads have read.",
)
OFFSET_COMMITS: Final = Family(
    "group_coordinator_offset_commits_total",
    Kind.COUNTER,
    "Offsets committed, one per partition of a commit.",
    kafka="offset-commit-count, offset-commit-rate",
)
OUTSIDE_COMMITS: Final = Family(
    "group_coordinator_outside_offset_commits_total",
    Kind.COUNTER,
    "Offsets committed by clients outside the group (generation -1): tools, simple consumers.",
)
OFFSET_DELETIONS: Final = Family(
    "group_coordinator_offset_deletions_total",
    Kind.COUNTER,
    "Offsets that were removed, by cause.",
    ("cause",),
    kafka="offset-expiration-count, offset-deletion-count",
)
GROUP_DELETIONS: Final = Family(
    "group_coordinator_group_deletions_total",
    Kind.COUNTER,
    "Groups that were removed, by cause.",
    ("cause",),
)
REBALANCES_BEGUN: Final = Family(
    "group_coordinator_rebalances_begun_total",
    Kind.COUNTER,
    "Rebalances that began, by cause.",
    ("cause",),
)
REBALANCES_COMPLETED: Final = Family(
    "group_coordinator_rebalances_completed_total",
    Kind.COUNTER,
    "Rebalances that ended with a Stable group, by the cause of their begin.",
    ("cause",),
    kafka="group-completed-rebalance-count, group-completed-rebalance-rate",
)
REBALANCES_RUNNING: Final = Family(
    "group_coordinator_rebalances_running", Kind.GAUGE, "Rebalances that have not ended yet."
)
REBALANCE_OLDEST: Final = Family(
    "group_coordinator_rebalance_oldest_seconds",
    Kind.GAUGE,
    "Duration so far of the longest running rebalance; 0 without one.",
)
REBALANCE_SECONDS: Final = Family(
    "group_coordinator_rebalance_seconds",
    Kind.HISTOGRAM,
    "Time from the begin of a rebalance until the group is Stable.",
)
JOIN_WAIT_SECONDS: Final = Family(
    "group_coordinator_join_wait_seconds",
    Kind.HISTOGRAM,
    "How long a member's JoinGroup waited for the other members.",
    kafka="RemoteTimeMs of JoinGroup",
)
MEMBERS_ADDED: Final = Family(
    "group_coordinator_members_added_total", Kind.COUNTER, "Members that joined."
)
MEMBERS_REMOVED: Final = Family(
    "group_coordinator_members_removed_total",
    Kind.COUNTER,
    "Members that were removed, by cause.",
    ("cause",),
)
MEMBERS_FENCED: Final = Family(
    "group_coordinator_members_fenced_total",
    Kind.COUNTER,
    "Requests of static members that were fenced, because another member uses their "
    "group.instance.id.",
)
STATIC_REPLACED: Final = Family(
    "group_coordinator_static_members_replaced_total",
    Kind.COUNTER,
    "Static members that rejoined with a new member id.",
)
SESSIONS_FORGIVEN: Final = Family(
    "group_coordinator_sessions_forgiven_total",
    Kind.COUNTER,
    "Members whose session had expired, and that sent a request before a rebalance was needed.",
)
ASSIGNMENTS_REFUSED: Final = Family(
    "group_coordinator_assignments_refused_total",
    Kind.COUNTER,
    "Assignments of group leaders that could not be stored.",
)


def collect(daemon: Daemon) -> Portions:
    yield from _present(daemon)
    yield from _offsets(daemon)
    yield from _rebalances(daemon)
    yield from _members(daemon)
    yield from _loads(daemon)


def _present(daemon: Daemon) -> Portions:
    group_counts = daemon.coordinator.group_counts
    yield GROUPS.rows(
        (("classic", state.value), count) for state, count in group_counts.states.items()
    )
    yield MEMBERS.one(group_counts.members)


def _offsets(daemon: Daemon) -> Portions:
    counters = daemon.observer.counters
    offsets = count = 0
    for partition in range(daemon.config.offsets_topic_num_partitions):
        for group in daemon.coordinator.groups_of(partition):
            offsets += sum(map(len, group.offsets.values()))
            count += 1
            if count % GROUPS_A_BREATH == 0:
                yield None
    yield OFFSETS.one(offsets)
    yield OFFSET_COMMITS.one(counters.offsets_committed)
    yield OUTSIDE_COMMITS.one(counters.offsets_committed_outside)
    yield OFFSET_DELETIONS.each(_by(DeletionCause, counters.offsets_deleted))
    yield GROUP_DELETIONS.each(_by(DeletionCause, counters.groups_deleted))


def _rebalances(daemon: Daemon) -> Portions:
    counters, now_ms = daemon.observer.counters, daemon.clock.now().mono_ms
    states = daemon.coordinator.group_counts.states
    yield REBALANCES_BEGUN.each(_by_cause(counters.rebalances_begun))
    yield REBALANCES_COMPLETED.each(_by_cause(counters.rebalances_completed))
    yield REBALANCES_RUNNING.one(
        states[GroupState.PREPARING_REBALANCE] + states[GroupState.COMPLETING_REBALANCE]
    )
    yield REBALANCE_OLDEST.one(counters.oldest_rebalance_ms(now_ms) / 1000)
    yield REBALANCE_SECONDS.histograms({(): counters.rebalance_seconds})
    yield JOIN_WAIT_SECONDS.histograms({(): counters.join_wait_seconds})
    yield ASSIGNMENTS_REFUSED.one(counters.assignments_refused)


def _members(daemon: Daemon) -> Portions:
    counters = daemon.observer.counters
    yield MEMBERS_ADDED.one(counters.members_added)
    yield MEMBERS_REMOVED.each(_by(RemovalCause, counters.members_removed))
    yield MEMBERS_FENCED.one(counters.members_fenced)
    yield STATIC_REPLACED.one(counters.static_members_replaced)
    yield SESSIONS_FORGIVEN.one(counters.lapses_forgiven)


def _loads(daemon: Daemon) -> Portions:
    ownership, counters = daemon.ownership, daemon.observer.counters
    failed, loading = len(ownership.failed), ownership.loading
    yield PARTITIONS.each(
        {"loading": loading, "failed": failed, "active": ownership.owned - loading - failed}
    )
    yield LOAD_SECONDS.histograms({(): counters.load_seconds})
    yield LOAD_LONGEST.one(counters.load_seconds_max)
    yield LOADED_RECORDS.one(counters.records_loaded)


def _by(causes: type[Enum], counts: Mapping[str, int]) -> dict[str, int]:
    """A series for each cause from the start: a rate misses the first of what begins with 1."""
    return {str(cause.value): 0 for cause in causes} | dict(counts)


def _by_cause(counts: Mapping[str, int]) -> dict[str, int]:
    """In the words of the history, which are everybody's; the coordinator's are finer."""
    found = {cause.value: 0 for cause in Cause}
    for cause, count in counts.items():
        word = _WORDS.get(cause, cause)
        found[word] = found.get(word, 0) + count
    return found


_WORDS: Final = {str(own.value): cause.value for own, cause in CAUSES.items()}
