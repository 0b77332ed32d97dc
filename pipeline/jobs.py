"""Jobs: which jobs exist, which tables does each read, and which does it make?

A job is a function of a source and a span of time. Its tables are data frames; the caller
(runner.py, a notebook, spark-submit) decides where they go. Times are ms since the epoch, UTC; the
span includes `since_ms` and excludes `until_ms`. Rows of a table are about instants of the span.
What a job needs from before the span (the last commits of a window, the owners of partitions) is
read from the whole source.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from pipeline.derive import anomalies as odd
from pipeline.derive.audit import audit, went_back
from pipeline.derive.commit_rate import commit_rate, group_rate
from pipeline.derive.consumer_reconciliation import owners_of_records
from pipeline.derive.effective import effective_commits
from pipeline.derive.group_health import group_health, partition_health
from pipeline.derive.in_order import in_order
from pipeline.derive.lag_samples import deletions, each_once
from pipeline.derive.lag_trend import lag_trend
from pipeline.derive.measured_lag import measured_health, measured_samples
from pipeline.derive.offsets_as_of import offsets_as_of
from pipeline.derive.rebalances import of_records, rebalance_stats, rebalances
from pipeline.engine import fn
from pipeline.read.log_ends import MeasuredLog, summary
from pipeline.read.sources import PipelineSource
from pipeline.tables import (
    COMMITS,
    CONSUMER_GROUPS,
    GROUP_EVENTS,
    GROUP_METADATA_TABLE,
    LAG_SAMPLES,
    LOG_ENDS,
    TRANSACTION_MARKERS,
)
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC

Tables = Mapping[str, DataFrame]

COMMITS_NEEDED: Final = (
    "log_partition", "log_offset", "log_timestamp_ms", "group", "topic", "partition",
    "committed_offset", "leader_epoch", "metadata", "tombstone", "producer_id", "transactional",
)  # fmt: skip
SAMPLES_NEEDED: Final = (
    "group", "topic", "partition", "at_ms", "committed_offset", "lag", "log_end_offset",
)  # fmt: skip
"""Columns that the rules of derive/ need: no others are decoded from a log."""


class JobInput:
    """The tables of a source, each computed once, and the span of the job.

    `groups`, `topics`: those alone; empty: all.

    `keep`: for more than one job. Tables that several jobs use are then computed once and kept in
    memory, or on the workers' disks if there is not enough memory, until `forget`.
    """

    # Not a Struct: `cached_property` needs a `__dict__`. It is no value either: it keeps tables.
    def __init__(
        self,
        source: PipelineSource,
        since_ms: int,
        until_ms: int,
        version_pattern: str | None = None,
        *,
        keep: bool = False,
        groups: Collection[str] = (),
        topics: Collection[str] = (),
    ) -> None:
        self.source = source
        self.since_ms = since_ms
        self.until_ms = until_ms
        self.version_pattern = version_pattern
        self.keep = keep
        self._only = {"group": groups, "topic": topics}
        self._kept: list[DataFrame] = []

    def chosen(self, frame: DataFrame) -> DataFrame:
        """The rows of the chosen groups and topics. Results are filtered, not the input: what one
        row says depends on others (the end of a log, the partitions of a topic)."""
        for column, names in self._only.items():
            if names and column in frame.columns:
                frame = frame.where(fn.col(column).isin(*names))
        return frame

    def within(self, frame: DataFrame, column: str) -> DataFrame:
        at = fn.col(column)
        return frame.where((at >= self.since_ms) & (at < self.until_ms))

    def _shared(self, frame: DataFrame) -> DataFrame:
        if self.keep:
            self._kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return frame

    def forget(self) -> None:
        """Frees what was kept."""
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()
        self.source.forget()

    @cached_property
    def _few(self) -> Mapping[str, DataFrame]:
        """Everything except commits in a log of commits: all of it is read in one pass."""
        return self.source.few(TRANSACTION_MARKERS, GROUP_METADATA_TABLE, CONSUMER_GROUPS)

    @cached_property
    def effective(self) -> DataFrame:
        markers = self._few[TRANSACTION_MARKERS.name]
        commits = self.source.table(COMMITS.only(*COMMITS_NEEDED))
        return effective_commits(commits, None if markers.isEmpty() else markers)

    @cached_property
    def ordered(self) -> DataFrame:
        return self._shared(in_order(self.effective, self.group_metadata, self._consumer_owners))

    @cached_property
    def _consumer_owners(self) -> DataFrame | None:
        if self.consumer_groups.isEmpty():
            return None
        # The records of these groups have the ids of topics, and commits for them have both.
        ids = self.source.table(COMMITS.only("topic", "topic_id")).where("topic_id IS NOT NULL")
        names = ids.groupBy("topic_id").agg(fn.max("topic").alias("topic"))
        return owners_of_records(self.consumer_groups, names)

    @cached_property
    def counted(self) -> DataFrame:
        """The effective commits: in order if they are kept that way, otherwise as they are read."""
        return self.ordered if self.keep else self.effective

    @cached_property
    def commit_rate(self) -> DataFrame:
        return self._shared(commit_rate(self.ordered))

    @cached_property
    def group_rate(self) -> DataFrame:
        return self._shared(group_rate(self.commit_rate))

    @cached_property
    def suspects(self) -> DataFrame:
        return self._shared(went_back(self.ordered))

    @cached_property
    def group_metadata(self) -> DataFrame:
        return self._few[GROUP_METADATA_TABLE.name]

    @cached_property
    def consumer_groups(self) -> DataFrame:
        return self._few[CONSUMER_GROUPS.name]

    @cached_property
    def has_history(self) -> bool:
        return self.source.has(HISTORY_TOPIC)

    @cached_property
    def has_samples(self) -> bool:
        return self.source.has(LAG_TOPIC)

    @cached_property
    def events(self) -> DataFrame:
        return self._shared(self.source.table(GROUP_EVENTS))

    @cached_property
    def samples(self) -> DataFrame:
        return self._shared(each_once(self.source.table(LAG_SAMPLES.only(*SAMPLES_NEEDED))))

    @cached_property
    def deleted(self) -> DataFrame | None:
        """Offsets that were deleted before the end of the span; None without commits."""
        if not self.source.has(OFFSETS_TOPIC):
            return None
        gone = deletions(self.counted).where(fn.col("at_ms") < self.until_ms)
        return self._shared(gone)

    @cached_property
    def health(self) -> DataFrame:
        """Of partitions: at instants of the span where there are samples, otherwise whenever the
        log ends were measured."""
        if self.has_samples:
            found = partition_health(
                self.samples, self.since_ms, self.until_ms, deleted=self.deleted
            )
        else:
            found = measured_health(self.measured, self.since_ms, self.until_ms)
        return self._shared(found)

    @cached_property
    def log_end_rows(self) -> list[MeasuredLog]:
        """Where the logs ended that groups read, at the moments at which that was measured."""
        return self.source.log_end_rows()

    @cached_property
    def measured(self) -> DataFrame:
        ends = self.source.frame(LOG_ENDS, self.log_end_rows)
        return self._shared(measured_samples(self.ordered, ends))

    @cached_property
    def lag(self) -> DataFrame:
        """The daemon's samples, or what the log ends of a Kafka say."""
        return self.samples if self.has_samples else self.measured

    def log_ends_text(self) -> str:
        """Which source of log ends the jobs use; for people."""
        if self.has_samples:
            return "log ends: Rollcall's lag samples"
        if self.source.has_log_ends():
            return summary(self.log_end_rows).text
        return f"log ends: none, {WITHOUT_LOG_ENDS}"


WITHOUT_LOG_ENDS: Final = (
    "there are no lag samples of Rollcall and no log ends; these need kafka://, a data directory "
    "with the folders of the topics, or a lake landed from one of them"
)

WITHOUT: Final[Mapping[str, str]] = {
    LAG_TOPIC: WITHOUT_LOG_ENDS,
    HISTORY_TOPIC: "the history that only Rollcall keeps",
    OFFSETS_TOPIC: "the commits",
}
"""What a topic would bring."""


def lacks(source: PipelineSource, topic: str) -> str | None:
    """Why a job that needs the topic cannot run; None: it can. In place of lag samples, log ends
    may have been measured. Raises NoBroker."""
    if source.has(topic) or (topic == LAG_TOPIC and source.has_log_ends()):
        return None
    return f"{source.where} has no {topic}: {WITHOUT[topic]}"


class Job(Struct, frozen=True):
    """`needs`: topics without which the job has no input (or what stands for them: `lacks`);
    `days`: the time column of each table; `uses`: topics that it also uses where they are."""

    name: str
    makes: str
    needs: tuple[str, ...]
    run: Callable[[JobInput], Tables]
    days: Mapping[str, str]
    uses: tuple[str, ...] = ()


def _commit_rate(job_input: JobInput) -> Tables:
    return {
        "commit_rate": job_input.within(job_input.commit_rate, "minute_ms"),
        "group_commit_rate": job_input.within(job_input.group_rate, "minute_ms"),
    }


def _lag_trend(job_input: JobInput) -> Tables:
    samples = job_input.within(job_input.lag, "at_ms")
    return {"lag_trend": lag_trend(samples, job_input.deleted)}


def _rebalances(job_input: JobInput) -> Tables:
    # A log written by Kafka has no history: there are generations then, but no causes.
    whole = (
        rebalances(job_input.events)
        if job_input.has_history
        else of_records(job_input.group_metadata, job_input.consumer_groups)
    )
    whole = job_input.within(whole, "began_at_ms")
    return {
        "rebalances": whole,
        "rebalance_stats": rebalance_stats(whole, version_pattern=job_input.version_pattern),
    }


def _group_health(job_input: JobInput) -> Tables:
    return {"partition_health": job_input.health, "group_health": group_health(job_input.health)}


def _anomalies(job_input: JobInput) -> Tables:
    found = [
        odd.commit_storm_rows(job_input.group_rate),
        odd.rewinds(job_input.suspects),
        odd.skewed_assignment_rows(job_input.group_metadata),
    ]
    if lacks(job_input.source, LAG_TOPIC) is None:
        found += [odd.stalled_partitions(job_input.health), odd.hot_partitions(job_input.lag)]
    if job_input.has_history:
        found.append(odd.flapping_member_rows(job_input.events))
    every = found[0]
    for more in found[1:]:
        every = every.unionByName(more)
    return {"anomalies": job_input.within(every, "since_ms")}


def _offsets_as_of(job_input: JobInput) -> Tables:
    return {"offsets_as_of": offsets_as_of(job_input.counted, job_input.until_ms)}


def _audit(job_input: JobInput) -> Tables:
    moved = {"offset_suspects": job_input.within(job_input.suspects, "at_ms")}
    if job_input.has_history:
        moved["audit"] = job_input.within(audit(job_input.events), "at_ms")
    return moved


JOBS: Final = {
    job.name: job
    for job in (
        Job(
            "commit_rate", "how often each group, member and partition commits", (OFFSETS_TOPIC,),
            _commit_rate, {"commit_rate": "minute_ms", "group_commit_rate": "minute_ms"},
        ),
        Job(
            "lag_trend", "lag by the hour, and when the group will catch up", (LAG_TOPIC,),
            _lag_trend, {"lag_trend": "hour_ms"},
        ),
        Job(
            "rebalance_stats", "rebalances by cause and client, and their cost", (),
            _rebalances, {"rebalances": "began_at_ms", "rebalance_stats": "window_ms"},
        ),
        Job(
            "group_health", "Burrow's status over sliding windows", (LAG_TOPIC,),
            _group_health, {"partition_health": "at_ms", "group_health": "at_ms"},
        ),
        Job(
            "anomalies", "storms, rewinds, stalls, flapping, hot partitions, skew",
            (OFFSETS_TOPIC,), _anomalies, {"anomalies": "since_ms"}, (LAG_TOPIC, HISTORY_TOPIC),
        ),
        Job(
            "offsets_as_of", "each group's offsets at the end of the span", (OFFSETS_TOPIC,),
            _offsets_as_of, {"offsets_as_of": ""},
        ),
        Job(
            "audit", "who moved, reset or deleted offsets", (OFFSETS_TOPIC,),
            _audit, {"offset_suspects": "at_ms", "audit": "at_ms"},
        ),
    )
}  # fmt: skip
"""By name. `ingest` is not a job: it lands input tables and derives none (lake.py)."""
