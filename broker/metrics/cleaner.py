"""Log cleaner: passes, their results, and the logs that need one.

Kafka's counterparts: the beans kafka.log:type=LogCleaner and type=LogCleanerManager, by whose names
each of these is called in docs/metrics.md.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions

_RUNS: Final = Family("rollcall_cleaner_runs_total", MetricKind.COUNTER, "Logs cleaned.")
_ABORTED: Final = Family(
    "rollcall_cleaner_aborted_total",
    MetricKind.COUNTER,
    "Passes that were not completed: their topic was deleted, or they will be retried.",
)
_READ: Final = Family(
    "rollcall_cleaner_read_bytes_total",
    MetricKind.COUNTER,
    "Bytes read by passes, for the map of newest offsets and for the copy.",
)
_WRITTEN: Final = Family(
    "rollcall_cleaner_written_bytes_total", MetricKind.COUNTER, "Bytes written by passes."
)
_SECONDS: Final = Family(
    "rollcall_cleaner_seconds_total",
    MetricKind.COUNTER,
    "Time spent on passes, including the swap of segments.",
)
_LAST_SECONDS: Final = Family(
    "rollcall_cleaner_last_pass_seconds",
    MetricKind.GAUGE,
    "Duration of the last pass.",
    kafka="max-clean-time-secs",
)
_UTILIZATION: Final = Family(
    "rollcall_cleaner_buffer_utilization_ratio",
    MetricKind.GAUGE,
    "Used share of the last pass' offset map (log.cleaner.dedupe.buffer.size).",
    kafka="max-buffer-utilization-percent",
)
_RECOPY: Final = Family(
    "rollcall_cleaner_recopy_ratio",
    MetricKind.GAUGE,
    "Bytes written by the last pass, as a share of the bytes it read.",
    kafka="cleaner-recopy-percent",
)
_DIRTY: Final = Family(
    "rollcall_cleaner_max_dirty_ratio",
    MetricKind.GAUGE,
    "Dirty ratio of the dirtiest log.",
    kafka="max-dirty-percent",
)
_DELAY: Final = Family(
    "rollcall_cleaner_max_compaction_delay_seconds",
    MetricKind.GAUGE,
    "Time by which the oldest uncompacted record exceeds max.compaction.lag.ms.",
    kafka="max-compaction-delay-secs",
)
_SINCE: Final = Family(
    "rollcall_cleaner_since_last_run_seconds",
    MetricKind.GAUGE,
    "Time since the cleaner last looked for logs to clean.",
    kafka="time-since-last-run-ms",
)
_UNCLEANABLE: Final = Family(
    "rollcall_cleaner_uncleanable_partitions",
    MetricKind.GAUGE,
    "Partitions that are not cleaned until a restart; the log has the reason.",
    kafka="uncleanable-partitions-count",
)
_UNCLEANABLE_BYTES: Final = Family(
    "rollcall_cleaner_uncleanable_bytes",
    MetricKind.GAUGE,
    "Dirty bytes of these partitions.",
    kafka="uncleanable-bytes",
)
_KEPT_FOR_PIPELINE: Final = Family(
    "rollcall_cleaner_kept_for_pipeline_bytes",
    MetricKind.GAUGE,
    "Bytes of __consumer_offsets that are not cleaned because the pipeline has not read them yet.",
)
_PIPELINE_OVERTAKEN: Final = Family(
    "rollcall_cleaner_pipeline_overtaken_total",
    MetricKind.COUNTER,
    "Logs cleaned past the pipeline's position, because a limit of rollcall.pipeline.keep.* was "
    "reached.",
)


def collect(daemon: Daemon) -> Portions:
    stats = daemon.log_cleaner.stats
    yield _RUNS.sample(stats.runs)
    yield _ABORTED.sample(stats.aborted)
    yield _READ.sample(stats.bytes_read)
    yield _WRITTEN.sample(stats.bytes_written)
    yield _SECONDS.sample(stats.seconds)
    yield _LAST_SECONDS.sample(stats.last_pass_seconds)
    yield _UTILIZATION.sample(stats.last_utilization)
    yield _RECOPY.sample(stats.last_recopy_ratio)
    yield _DIRTY.sample(stats.max_dirty_ratio)
    yield _DELAY.sample(stats.max_delay_ms / 1000)
    if stats.last_run_ms is not None:
        yield _SINCE.sample((daemon.clock.now().mono_ms - stats.last_run_ms) / 1000)
    yield _UNCLEANABLE.sample(len(daemon.log_cleaner.uncleanable))
    yield _UNCLEANABLE_BYTES.sample(stats.uncleanable_bytes)
    yield _KEPT_FOR_PIPELINE.sample(stats.kept_for_pipeline_bytes)
    yield _PIPELINE_OVERTAKEN.sample(stats.pipeline_overtaken)
