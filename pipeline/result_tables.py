"""Which tables do jobs write, with which columns in which units? As tables.py, for what is derived.

Declared here for readers: `rollcall pipeline schema` and docs/pipeline.md show them, the report
reads them so, and a test compares each with what its job makes. On the disk each also has `dt`, the
day (UTC) that it is partitioned by.
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
        "a minute in which a member (or nobody known) committed for a partition",
        column("minute_ms", _LONG, "ms", "The minute's beginning."),
        *_PARTITION,
        column("member_id", _TEXT, "", "Who owned the partition; null: not known."),
        column("client_id", _TEXT, "", "Of that member."),
        column("commits", _LONG, "commits", "That counted, in this minute."),
        column("advanced", _LONG, "records", "How far they moved the offset; null: the first."),
    ),
    _table(
        "group_commit_rate",
        "a minute in which a group committed, beside what is usual",
        column("minute_ms", _LONG, "ms", "The minute's beginning."),
        _GROUP,
        column("commits", _LONG, "commits", "Of all its partitions, in this minute."),
        column("baseline", _REAL, "commits", "The median of the group's minutes at this hour."),
        column("spread", _REAL, "commits", "The median distance from it, as a sigma (x 1.4826)."),
        column("score", _REAL, "spreads", "How far above the baseline; a spread is at least 1."),
    ),
    _table(
        "lag_trend",
        "an hour of a partition's lag, and the line through it",
        *_PARTITION,
        column("hour_ms", _LONG, "ms", "The hour's beginning."),
        column("samples", _LONG, "samples", "In this hour."),
        column("lag_p50", _REAL, "records", "The median."),
        column("lag_p95", _REAL, "records", "The 95th percentile."),
        column("lag_max", _LONG, "records", "The greatest."),
        column("lag_last", _LONG, "records", "At the hour's last sample."),
        column("delay_p95_s", _REAL, "s", "The 95th percentile of the delay; null: not known."),
        column("consumed_per_s", _REAL, "records/s", "Committed; null: one sample."),
        column("produced_per_s", _REAL, "records/s", "By how much the log grew; null as above."),
        column("slope_per_s", _REAL, "records/s", "Of the least-squares line; negative: it falls."),
        column("r2", _REAL, "", "How much of a line it was: 0 to 1."),
        column("slope_error_per_s", _REAL, "records/s", "One standard error; null: 2 samples."),
        column("catch_up_s", _REAL, "s", "From the last sample until no lag; null: never."),
        column("catch_up_low_s", _REAL, "s", "With a slope two standard errors steeper."),
        column("catch_up_high_s", _REAL, "s", "Two standard errors flatter; null: maybe never."),
    ),
    _table(
        "rebalances",
        "a rebalance that ended; without a history: a generation that was stored",
        _GROUP,
        column("cause", _TEXT, "", "Why it began; null without a history."),
        column("began_at_ms", _LONG, "ms", "When; without a history: when it was stored."),
        column("duration_ms", _LONG, "ms duration", "Null without a history."),
        column("generation_before", _INT, "", "Null: the first."),
        column("generation_after", _INT, "", "The new one."),
        column("members_before", _INT, "members", ""),
        column("members_after", _INT, "members", ""),
        column("partitions_moved", _INT, "partitions", "That changed their owner."),
        column("unowned_partition_seconds", _REAL, "partition-seconds", "Without an owner."),
        column("member_id", _TEXT, "", "Of the member that began it."),
        column("client_id", _TEXT, "", "Of the same."),
        column("host", _TEXT, "", "Of the same."),
    ),
    _table(
        "rebalance_stats",
        "a day's rebalances of a group by cause, client and deployment",
        column("window_ms", _LONG, "ms", "The day's beginning."),
        _GROUP,
        column("cause", _TEXT, "", "As in rebalances."),
        column("client_id", _TEXT, "", "Of the members that began them."),
        column("version", _TEXT, "", "The deployment, by --version-pattern; null: none."),
        column("rebalances", _LONG, "rebalances", "How many."),
        column("duration_p50_ms", _REAL, "ms duration", "The median."),
        column("duration_p95_ms", _REAL, "ms duration", "The 95th percentile."),
        column("duration_max_ms", _LONG, "ms duration", "The longest."),
        column("duration_total_ms", _LONG, "ms duration", "All together."),
        column("partitions_moved", _LONG, "partitions", "All together."),
        column("unowned_partition_seconds", _REAL, "partition-seconds", "All together."),
    ),
    _table(
        "partition_health",
        "a partition's verdict at an instant (every five minutes)",
        *_PARTITION,
        column("at_ms", _LONG, "ms", "The instant."),
        column("verdict", _TEXT, "", "OK, WARN, STALL, REWIND or STOP."),
        column("lag", _LONG, "records", "At the window's last commit."),
        column("committed_offset", _LONG, "records", "Of the same."),
        column("commits", _INT, "commits", "In the window: at most ten."),
        column("window_ms", _LONG, "ms duration", "From its first commit to the instant."),
    ),
    _table(
        "group_health",
        "a group's verdict at an instant: that of its worst partition",
        _GROUP,
        column("at_ms", _LONG, "ms", "The instant."),
        column("status", _TEXT, "", "OK, WARN or ERR."),
        column("worst_topic", _TEXT, "", "Where it is worst; null: OK."),
        column("worst_partition", _INT, "", "The same."),
        column("worst_verdict", _TEXT, "", "The same."),
        column("total_lag", _LONG, "records", "Of all its partitions."),
        column("max_lag", _LONG, "records", "Of one."),
        column("partitions", _LONG, "partitions", "With commits in the last week."),
        column("bad_partitions", _LONG, "partitions", "That are not OK."),
    ),
    _table(
        "anomalies",
        "something out of the ordinary",
        column("kind", _TEXT, "", "See the jobs below."),
        _GROUP,
        column("topic", _TEXT, "", "Null where it is about none."),
        column("partition", _INT, "", "The same."),
        column("member", _TEXT, "", "The same."),
        column("since_ms", _LONG, "ms", "Its beginning."),
        column("until_ms", _LONG, "ms", "Its end."),
        column("score", _REAL, "", "How far beyond its threshold; 1 is at it."),
        column("evidence", _TEXT, "JSON", "The figures behind it."),
    ),
    _table(
        "offsets_as_of",
        "a partition's offset as it counted at the span's end",
        *_PARTITION,
        column("committed_offset", _LONG, "records", "The next offset to read."),
        column("leader_epoch", _INT, "", "Of the record before; null: not said."),
        column("metadata", _TEXT, "", "What the client added."),
        column("log_offset", _LONG, "records", "Of the commit, in its log partition."),
        column("committed_at_ms", _LONG, "ms", "Since when it counts."),
        column("oldest_at_ms", _LONG, "ms", "The partition's first commit that is known."),
    ),
    _table(
        "offset_suspects",
        "a commit that went backwards, or a deletion, by the log alone",
        column("at_ms", _LONG, "ms", "When it took effect."),
        *_PARTITION,
        column("old_offset", _LONG, "records", "Before."),
        column("new_offset", _LONG, "records", "After; null: deleted."),
    ),
    _table(
        "audit",
        "an offset that no member moved in the course of its work",
        column("at_ms", _LONG, "ms", "When."),
        *_PARTITION,
        column("old_offset", _LONG, "records", "Before; null: there was none."),
        column("new_offset", _LONG, "records", "After; null: deleted."),
        column("moved", _LONG, "records", "After less before; negative: back."),
        column("by", _TEXT, "", "How: commit, deletion, expiry, ..."),
        column("client_id", _TEXT, "", "Of who asked; null: the daemon itself."),
        column("host", _TEXT, "", "The address that they came from."),
        column("member_id", _TEXT, "", "Theirs, if they said one."),
    ),
)

RESULTS: Final = {table.name: table for table in _EVERY}
