"""Rebalance costs by cause, from the history: partitions moved, and without an owner.

The history names a rebalance's cause when it is over and knows all of it; this file adds up what
it tells (`Stories`), and says how the history and the samples of lag are being kept themselves.
Without `rollcall.history.enable` only the latter has samples.
Kafka's counterpart: none; a consumer's own rebalance-latency metrics know of one member.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions
from broker.observe.stats import Histogram
from history.causes import Cause, End, OffsetsBy, WaitEnd
from history.entries import HistoryEntry, OffsetsMovedEntry, Rebalance, RebalanceEndedEntry

DELAY_BUCKETS_S: Final = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 600.0)

ENDED: Final = Family(
    "group_coordinator_rebalances_ended_total",
    Kind.COUNTER,
    "Rebalances that ended, by cause (as shown by `rollcall why`) and by how they ended.",
    ("cause", "end"),
)
UNOWNED: Final = Family(
    "group_coordinator_unowned_partition_seconds_total",
    Kind.COUNTER,
    "Partition-seconds without an owner during rebalances, by cause.",
    ("cause",),
)
MOVED: Final = Family(
    "group_coordinator_partitions_moved_total",
    Kind.COUNTER,
    "Partitions that rebalances moved from one member to another, by cause.",
    ("cause",),
)
JOIN_DELAY: Final = Family(
    "group_coordinator_join_delay_seconds",
    Kind.HISTOGRAM,
    "Time from the begin of a rebalance until a member sent its JoinGroup.",
    kafka="join-time-avg, join-time-max (of the consumer)",
)
WAITED_FOR: Final = Family(
    "group_coordinator_waited_for_members_total",
    Kind.COUNTER,
    "Members that rebalances waited for, by how the wait ended.",
    ("end",),
)
OFFSETS_MOVED: Final = Family(
    "group_coordinator_offsets_moved_total",
    Kind.COUNTER,
    "Offset moves by anything other than members' commits, by what moved them; steady commits "
    "of one client count once.",
    ("by",),
)
FACTS_WRITTEN: Final = Family(
    "rollcall_history_events_written_total",
    Kind.COUNTER,
    "Events appended to __group_history.",
)
FACTS_LOST: Final = Family(
    "rollcall_history_events_lost_total",
    Kind.COUNTER,
    "Events that could not be appended to __group_history: the history has a gap.",
)
REBALANCES_KEPT: Final = Family(
    "rollcall_history_rebalances", Kind.GAUGE, "Rebalances kept in memory, for `rollcall why`."
)
REBALANCE_BYTES: Final = Family(
    "rollcall_history_rebalance_bytes",
    Kind.GAUGE,
    "Approximate memory of these rebalances; the limit is rollcall.history.memory.bytes.",
)
LAG_ROUNDS: Final = Family(
    "rollcall_lag_rounds_total", Kind.COUNTER, "Rounds in which the lag of all groups was sampled."
)
LAG_ROUND_TOOK: Final = Family(
    "rollcall_lag_round_seconds",
    Kind.GAUGE,
    "Duration of the last sampling round, with its pauses.",
)
LAG_ROUND_BUSY: Final = Family(
    "rollcall_lag_round_busy_seconds",
    Kind.GAUGE,
    "Time that the event loop spent on the last sampling round.",
)
LAG_SAMPLES: Final = Family(
    "rollcall_lag_samples_written_total", Kind.COUNTER, "Samples appended to __group_lag."
)
LAG_WINDOWS: Final = Family(
    "rollcall_lag_windows", Kind.GAUGE, "Partitions of groups whose lag is followed over time."
)
LAG_LEFT_OUT: Final = Family(
    "rollcall_lag_windows_left_out",
    Kind.GAUGE,
    "Partitions of groups that are not followed because of rollcall.lag.partitions.max; they "
    "have no status.",
)
GROUPS_SKIPPED: Final = Family(
    "rollcall_groups_skipped_total",
    Kind.COUNTER,
    "Times that a group was skipped because work on it failed; the log names the group.",
    ("work",),
)


class Stories:
    """Adds up what the history tells; from the moment on that somebody can scrape it."""

    def __init__(self) -> None:
        self.ended = {(cause.value, end.value): 0 for cause in Cause for end in _ENDS}
        self.unowned_seconds = {cause.value: 0.0 for cause in Cause}
        self.moved = {cause.value: 0 for cause in Cause}
        self.join_delays = Histogram(DELAY_BUCKETS_S)
        self.waited_for = {end.value: 0 for end in WaitEnd if end is not WaitEnd.WAITING}
        # An import is recorded by a command, while no daemon runs.
        self.offsets_moved = {by.value: 0 for by in OffsetsBy if by is not OffsetsBy.IMPORT}

    def see(self, event: HistoryEntry) -> None:
        if isinstance(event, RebalanceEndedEntry):
            self._see_rebalance(event.rebalance)
        elif isinstance(event, OffsetsMovedEntry):
            self.offsets_moved[event.by.value] += len(event.changes)

    def _see_rebalance(self, rebalance: Rebalance) -> None:
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


def collect(daemon: Daemon, stories: Stories) -> Portions:
    history = daemon.history
    if history is not None:
        yield ENDED.rows(stories.ended.items())
        yield UNOWNED.each(stories.unowned_seconds)
        yield MOVED.each(stories.moved)
        yield JOIN_DELAY.histograms({(): stories.join_delays})
        yield WAITED_FOR.each(stories.waited_for)
        yield OFFSETS_MOVED.each(stories.offsets_moved)
        yield FACTS_WRITTEN.one(history.events_written)
        yield FACTS_LOST.one(history.events_lost)
        yield REBALANCES_KEPT.one(history.index.kept)
        yield REBALANCE_BYTES.one(history.index.kept_bytes)
    lag = daemon.lag
    yield LAG_ROUNDS.one(lag.rounds)
    yield LAG_ROUND_TOOK.one(lag.round_seconds)
    yield LAG_ROUND_BUSY.one(lag.busy_seconds)
    yield LAG_SAMPLES.one(lag.samples_written)
    yield LAG_WINDOWS.one(lag.book.windows)
    yield LAG_LEFT_OUT.one(lag.book.left_out)
    yield GROUPS_SKIPPED.each(lag.skipped.counts)
