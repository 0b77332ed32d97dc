"""Result tables: which tables do jobs write, with which columns in which units?

Declared as in tables.py: `rollcall pipeline schema` and docs/pipeline.md show them, the report
reads them, and a test compares each with the output of its job. On disk each also has `dt`, the day
(UTC) that it is partitioned by.
"""

from typing import Final

import pyarrow as pa

from pipeline.tables import Table, column

_TEXT: Final = pa.string()
_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_REAL: Final = pa.float64()

_GROUP: Final = column("group", _TEXT, "", "The group.")
_PARTITION: Final = (
    _GROUP,
    column("topic", _TEXT, "", "The topic that the group reads."),
    column("partition", _INT, "", "Its partition."),
)


def _table(name: str, row: str, *columns: pa.Field) -> Table:
    return Table(name, None, row, pa.schema(columns))


_EVERY: Final = (
    _table(
        "commit_rate",
        "a minute in which a member (or an unknown client) committed for a partition",
        column("minute_ms", _LONG, "ms", "Start of the minute."),
        *_PARTITION,
        column("member_id", _TEXT, "", "Owner of the partition; null: unknown."),
        column("client_id", _TEXT, "", "Of that member."),
        column("commits", _LONG, "commits", "Effective commits in this minute."),
        column("advanced", _LONG, "records", "How far they moved the offset; null: first commit."),
    ),
    _table(
        "group_commit_rate",
        "a minute in which a group committed, compared with its baseline",
        column("minute_ms", _LONG, "ms", "Start of the minute."),
        _GROUP,
        column("commits", _LONG, "commits", "Of all partitions, in this minute."),
        column("baseline", _REAL, "commits", "Median of the group's minutes at this hour of day."),
        column("spread", _REAL, "commits", "Median absolute deviation from it, times 1.4826."),
        column("score", _REAL, "spreads", "Distance above the baseline; a spread is at least 1."),
    ),
    _table(
        "lag_trend",
        "an hour of a partition's lag, with its linear trend",
        *_PARTITION,
        column("hour_ms", _LONG, "ms", "Start of the hour."),
        column("samples", _LONG, "samples", "Samples in this hour."),
        column("lag_p50", _REAL, "records", "Median."),
        column("lag_p95", _REAL, "records", "95th percentile."),
        column("lag_max", _LONG, "records", "Maximum."),
        column("lag_last", _LONG, "records", "At the hour's last sample."),
        column("delay_p95_s", _REAL, "s", "95th percentile of the delay; null: unknown."),
        column("consumed_per_s", _REAL, "records/s", "Progress of the offset; null: one sample."),
        column("produced_per_s", _REAL, "records/s", "Growth of the log; null: one sample."),
        column("slope_per_s", _REAL, "records/s", "Slope of the trend; negative: lag shrinks."),
        column("r2", _REAL, "", "Fit of the trend: 0 to 1."),
        column("slope_error_per_s", _REAL, "records/s", "One standard error; null: 2 samples."),
        column("catch_up_s", _REAL, "s", "From the last sample to zero lag; null: never."),
        column("catch_up_low_s", _REAL, "s", "The same, slope two standard errors steeper."),
        column("catch_up_high_s", _REAL, "s", "Two standard errors flatter; null: maybe never."),
        column("deleted_ms", _LONG, "ms", "Deletion after that sample: no forecast; null: none."),
    ),
    _table(
        "rebalances",
        "a completed rebalance; without a history: one that the records of the group show",
        _GROUP,
        column("group_type", _TEXT, "", "classic, consumer, share or streams."),
        column("cause", _TEXT, "", "Why it began; null without a history."),
        column("began_at_ms", _LONG, "ms", "Start; without a history: when it was stored."),
        column("duration_ms", _LONG, "ms duration", "Null: unknown, or not ended in the log."),
        column("generation_before", _INT, "", "Generation or group epoch; null: the first known."),
        column("generation_after", _INT, "", "The new generation or group epoch."),
        column("members_before", _INT, "members", "Members before; null: unknown."),
        column("members_after", _INT, "members", "Members after; null: unknown."),
        column("partitions_moved", _INT, "partitions", "With a new owner; null: unknown."),
        column("unowned_partition_seconds", _REAL, "partition-seconds", "Time without an owner."),
        column("member_id", _TEXT, "", "The member that began it; null: unknown."),
        column("client_id", _TEXT, "", "Of that member."),
        column("host", _TEXT, "", "Of that member."),
    ),
    _table(
        "rebalance_stats",
        "a day's rebalances of a group by cause, client and deployment",
        column("window_ms", _LONG, "ms", "Start of the day."),
        _GROUP,
        column("cause", _TEXT, "", "As in rebalances."),
        column("client_id", _TEXT, "", "Client that began them."),
        column("version", _TEXT, "", "Deployment, by --version-pattern; null: none."),
        column("rebalances", _LONG, "rebalances", "Number of rebalances."),
        column("duration_p50_ms", _REAL, "ms duration", "Median of those known."),
        column("duration_p95_ms", _REAL, "ms duration", "95th percentile of those known."),
        column("duration_max_ms", _LONG, "ms duration", "Maximum of those known."),
        column("duration_total_ms", _LONG, "ms duration", "Sum; null: one is unknown."),
        column("partitions_moved", _LONG, "partitions", "Sum; null: one is unknown."),
        column(
            "unowned_partition_seconds", _REAL, "partition-seconds", "Sum; null: one is unknown."
        ),
    ),
    _table(
        "partition_health",
        "a partition's status at an instant (every five minutes)",
        *_PARTITION,
        column("at_ms", _LONG, "ms", "The instant."),
        column("verdict", _TEXT, "", "The status: OK, WARN, STALL, REWIND or STOP."),
        column("lag", _LONG, "records", "At the window's last commit."),
        column("committed_offset", _LONG, "records", "Of the same commit."),
        column("commits", _INT, "commits", "In the window: at most ten."),
        column("window_ms", _LONG, "ms duration", "From the window's first commit to the instant."),
    ),
    _table(
        "group_health",
        "a group's status at an instant: that of its worst partition",
        _GROUP,
        column("at_ms", _LONG, "ms", "The instant."),
        column("status", _TEXT, "", "OK, WARN or ERR."),
        column("worst_topic", _TEXT, "", "Topic of the worst partition; null: OK."),
        column("worst_partition", _INT, "", "The worst partition; null: OK."),
        column("worst_verdict", _TEXT, "", "Its status; null: OK."),
        column("total_lag", _LONG, "records", "Sum over its partitions."),
        column("max_lag", _LONG, "records", "Maximum of its partitions."),
        column("partitions", _LONG, "partitions", "Partitions with commits in the last week."),
        column("bad_partitions", _LONG, "partitions", "Partitions that are not OK."),
    ),
    _table(
        "anomalies",
        "an anomaly",
        column("kind", _TEXT, "", "The kinds are listed in docs/pipeline.md."),
        _GROUP,
        column("topic", _TEXT, "", "Null: not about a topic."),
        column("partition", _INT, "", "Null: not about a partition."),
        column("member", _TEXT, "", "Null: not about a member."),
        column("since_ms", _LONG, "ms", "Start."),
        column("until_ms", _LONG, "ms", "End."),
        column("score", _REAL, "", "Ratio to the threshold; 1 is at the threshold."),
        column("evidence", _TEXT, "JSON", "The figures that it is based on."),
    ),
    _table(
        "offsets_as_of",
        "a partition's effective offset at the end of the span",
        *_PARTITION,
        column("committed_offset", _LONG, "records", "The next offset to read."),
        column("leader_epoch", _INT, "", "Epoch of the last read record; null: not given."),
        column("metadata", _TEXT, "", "The client's metadata text."),
        column("log_offset", _LONG, "records", "Offset of the commit in its log partition."),
        column("committed_at_ms", _LONG, "ms", "Since when the commit counts."),
        column("oldest_at_ms", _LONG, "ms", "The partition's first known commit."),
    ),
    _table(
        "offset_suspects",
        "a commit that went backwards, or a deletion; from the log only",
        column("at_ms", _LONG, "ms", "When it took effect."),
        *_PARTITION,
        column("old_offset", _LONG, "records", "Before."),
        column("new_offset", _LONG, "records", "After; null: deleted."),
    ),
    _table(
        "audit",
        "an offset change that was not a commit of a member of the current generation",
        column("at_ms", _LONG, "ms", "When it happened."),
        *_PARTITION,
        column("old_offset", _LONG, "records", "Before; null: none."),
        column("new_offset", _LONG, "records", "After; null: deleted."),
        column("moved", _LONG, "records", "After minus before; negative: backwards."),
        column("by", _TEXT, "", "Kind of change: commit, deletion, expiry, ..."),
        column("client_id", _TEXT, "", "Of the requester; null: the daemon itself."),
        column("host", _TEXT, "", "Address of the requester."),
        column("principal", _TEXT, "", "Of the requester; null: not authenticated."),
        column("member_id", _TEXT, "", "Of the requester, if it sent one."),
    ),
)

RESULTS: Final = {table.name: table for table in _EVERY}
