"""Rebalance costs by cause, from the history: partitions moved, and without an owner.

The history names a rebalance's cause when it is over; `RebalanceCosts` adds up what the history
reports. How the history and the samples of lag are kept is shown here, too. Without
`rollcall.history.enable` only the latter has samples.
Kafka's counterpart: none; a consumer's own rebalance-latency metrics cover one member.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions
from broker.observe.stats import Histogram
from history.causes import Cause, End, OffsetsBy, WaitEnd
from history.entries import HistoryEntry, OffsetsMovedEntry, Rebalance, RebalanceEndedEntry

DELAY_BUCKETS_S: Final = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 600.0)

_ENDED: Final = Family(
    "group_coordinator_rebalances_ended_total",
    MetricKind.COUNTER,
    "Rebalances that ended, by cause (as shown by `rollcall why`) and by how they ended.",
    ("cause", "end"),
)
_UNOWNED: Final = Family(
    "group_coordinator_unowned_partition_seconds_total",
    MetricKind.COUNTER,
    "Partition-seconds without an owner during rebalances, by cause.",
    ("cause",),
)
_MOVED: Final = Family(
    "group_coordinator_partitions_moved_total",
    MetricKind.COUNTER,
    "Partitions that rebalances moved from one member to another, by cause.",
    ("cause",),
)
_JOIN_DELAY: Final = Family(
    "group_coordinator_join_delay_seconds",
    MetricKind.HISTOGRAM,
    "Time from the begin of a rebalance until a member sent its JoinGroup; in a consumer group "
    "until it had reached the target assignment.",
    kafka="join-time-avg, join-time-max (of the consumer)",
)
_WAITED_FOR: Final = Family(
    "group_coordinator_waited_for_members_total",
    MetricKind.COUNTER,
    "Members that rebalances waited for, by how the wait ended.",
    ("end",),
)
_OFFSETS_MOVED: Final = Family(
    "group_coordinator_offsets_moved_total",
    MetricKind.COUNTER,
    "Offset moves by anything other than members' commits, by what moved them; steady commits "
    "of one client count once.",
    ("by",),
)
_FACTS_WRITTEN: Final = Family(
    "rollcall_history_events_written_total",
    MetricKind.COUNTER,
    "Events appended to __group_history.",
)
_FACTS_LOST: Final = Family(
    "rollcall_history_events_lost_total",
    MetricKind.COUNTER,
    "Events that could not be appended to __group_history: the history has a gap.",
)
_REBALANCES_KEPT: Final = Family(
    "rollcall_history_rebalances",
    MetricKind.GAUGE,
    "Rebalances kept in memory, for `rollcall why`.",
)
_REBALANCE_BYTES: Final = Family(
    "rollcall_history_rebalance_bytes",
    MetricKind.GAUGE,
    "Approximate memory of these rebalances; the limit is rollcall.history.memory.bytes.",
)
_LAG_ROUNDS: Final = Family(
    "rollcall_lag_rounds_total",
    MetricKind.COUNTER,
    "Rounds in which the lag of all groups was sampled.",
)
_LAG_ROUND_TOOK: Final = Family(
    "rollcall_lag_round_seconds",
    MetricKind.GAUGE,
    "Duration of the last sampling round, with its pauses.",
)
_LAG_ROUND_BUSY: Final = Family(
    "rollcall_lag_round_busy_seconds",
    MetricKind.GAUGE,
    "Time that the event loop spent on the last sampling round.",
)
_LAG_SAMPLES: Final = Family(
    "rollcall_lag_samples_written_total", MetricKind.COUNTER, "Samples appended to __group_lag."
)
_LAG_WINDOWS: Final = Family(
    "rollcall_lag_windows",
    MetricKind.GAUGE,
    "Partitions of groups whose lag is followed over time.",
)
_LAG_LEFT_OUT: Final = Family(
    "rollcall_lag_windows_left_out",
    MetricKind.GAUGE,
    "Partitions of groups that are not followed because of rollcall.lag.partitions.max; they "
    "have no status.",
)
_GROUPS_SKIPPED: Final = Family(
    "rollcall_groups_skipped_total",
    MetricKind.COUNTER,
    "Times that a group was skipped because work on it failed; the log names the group.",
    ("work",),
)


class RebalanceCosts:
    """Adds up the ended rebalances of the history, since the metrics are served."""

    def __init__(self) -> None:
        self.ended = {(cause.value, end.value): 0 for cause in Cause for end in _ENDS}
        self.unowned_seconds = {cause.value: 0.0 for cause in Cause}
        self.moved = {cause.value: 0 for cause in Cause}
        self.join_delays = Histogram(DELAY_BUCKETS_S)
        self.waited_for = {end.value: 0 for end in WaitEnd if end is not WaitEnd.WAITING}
        # An import is recorded by a command, while no daemon runs.
        self.offsets_moved = {by.value: 0 for by in OffsetsBy if by is not OffsetsBy.IMPORT}

    def add(self, event: HistoryEntry) -> None:
        if isinstance(event, RebalanceEndedEntry):
            self._add_rebalance(event.rebalance)
        elif isinstance(event, OffsetsMovedEntry):
            self.offsets_moved[event.by.value] += len(event.changes)

    def _add_rebalance(self, rebalance: Rebalance) -> None:
        cause = rebalance.cause.value
        key = (cause, rebalance.end.value)
        self.ended[key] = self.ended.get(key, 0) + 1
        self.unowned_seconds[cause] += rebalance.unowned_partition_seconds or 0.0
        self.moved[cause] += rebalance.partitions_moved or 0
        for joined in rebalance.joined:
            self.join_delays.add(joined.join_delay_ms / 1000)
        for wait in rebalance.waited_for:
            end = wait.end.value
            self.waited_for[end] = self.waited_for.get(end, 0) + 1


_ENDS: Final = tuple(end for end in End if end is not End.RUNNING)


def collect(daemon: Daemon, costs: RebalanceCosts) -> Portions:
    history = daemon.history
    if history is not None:
        yield _ENDED.samples(costs.ended.items())
        yield _UNOWNED.by_label(costs.unowned_seconds)
        yield _MOVED.by_label(costs.moved)
        yield _JOIN_DELAY.histograms({(): costs.join_delays})
        yield _WAITED_FOR.by_label(costs.waited_for)
        yield _OFFSETS_MOVED.by_label(costs.offsets_moved)
        yield _FACTS_WRITTEN.sample(history.events_written)
        yield _FACTS_LOST.sample(history.events_lost)
        yield _REBALANCES_KEPT.sample(history.index.kept)
        yield _REBALANCE_BYTES.sample(history.index.kept_bytes)
    lag = daemon.lag
    yield _LAG_ROUNDS.sample(lag.rounds)
    yield _LAG_ROUND_TOOK.sample(lag.round_seconds)
    yield _LAG_ROUND_BUSY.sample(lag.busy_seconds)
    yield _LAG_SAMPLES.sample(lag.samples_written)
    yield _LAG_WINDOWS.sample(lag.book.windows)
    yield _LAG_LEFT_OUT.sample(lag.book.left_out)
    yield _GROUPS_SKIPPED.by_label(lag.skipped.counts)
