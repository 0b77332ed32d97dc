"""Log cleaner: are compacted logs kept small?

Kafka's counterparts: the beans kafka.log:type=LogCleaner and type=LogCleanerManager, by whose names
each of these is called in docs/metrics.md.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions

RUNS: Final = Family("rollcall_cleaner_runs_total", Kind.COUNTER, "Logs cleaned.")
ABORTED: Final = Family(
    "rollcall_cleaner_aborted_total",
    Kind.COUNTER,
    "Passes that were not completed: their topic was deleted, or they will be retried.",
)
READ: Final = Family(
    "rollcall_cleaner_read_bytes_total",
    Kind.COUNTER,
    "Bytes read by passes, for the map of newest offsets and for the copy.",
)
WRITTEN: Final = Family(
    "rollcall_cleaner_written_bytes_total", Kind.COUNTER, "Bytes written by passes."
)
SECONDS: Final = Family(
    "rollcall_cleaner_seconds_total",
    Kind.COUNTER,
    "Time spent on passes, including the swap of segments.",
)
LAST_SECONDS: Final = Family(
    "rollcall_cleaner_last_pass_seconds",
    Kind.GAUGE,
    "Duration of the last pass.",
    kafka="max-clean-time-secs",
)
UTILIZATION: Final = Family(
    "rollcall_cleaner_buffer_utilization_ratio",
    Kind.GAUGE,
    "Used share of the last pass' offset map (log.cleaner.dedupe.buffer.size).",
    kafka="max-buffer-utilization-percent",
)
RECOPY: Final = Family(
    "rollcall_cleaner_recopy_ratio",
    Kind.GAUGE,
    "Bytes written by the last pass, as a share of the bytes it read.",
    kafka="cleaner-recopy-percent",
)
DIRTY: Final = Family(
    "rollcall_cleaner_max_dirty_ratio",
    Kind.GAUGE,
    "Dirty ratio of the dirtiest log.",
    kafka="max-dirty-percent",
)
DELAY: Final = Family(
    "rollcall_cleaner_max_compaction_delay_seconds",
    Kind.GAUGE,
    "Time by which the oldest uncompacted record exceeds max.compaction.lag.ms.",
    kafka="max-compaction-delay-secs",
)
SINCE: Final = Family(
    "rollcall_cleaner_since_last_run_seconds",
    Kind.GAUGE,
    "Time since the cleaner last looked for logs to clean.",
    kafka="time-since-last-run-ms",
)
UNCLEANABLE: Final = Family(
    "rollcall_cleaner_uncleanable_partitions",
    Kind.GAUGE,
    "Partitions that are not cleaned until a restart; the log has the reason.",
    kafka="uncleanable-partitions-count",
)
UNCLEANABLE_BYTES: Final = Family(
    "rollcall_cleaner_uncleanable_bytes",
    Kind.GAUGE,
    "Dirty bytes of these partitions.",
    kafka="uncleanable-bytes",
)
KEPT_FOR_PIPELINE: Final = Family(
    "rollcall_cleaner_kept_for_pipeline_bytes",
    Kind.GAUGE,
    "Bytes of __consumer_offsets that are not cleaned because the pipeline has not read them yet.",
)
PIPELINE_OVERTAKEN: Final = Family(
    "rollcall_cleaner_pipeline_overtaken_total",
    Kind.COUNTER,
    "Logs cleaned past the pipeline's position, because a limit of rollcall.pipeline.keep.* was "
    "reached.",
)


def collect(daemon: Daemon) -> Portions:
    numbers = daemon.cleaning.numbers
    yield RUNS.one(numbers.runs)
    yield ABORTED.one(numbers.aborted)
    yield READ.one(numbers.bytes_read)
    yield WRITTEN.one(numbers.bytes_written)
    yield SECONDS.one(numbers.seconds)
    yield LAST_SECONDS.one(numbers.last_pass_seconds)
    yield UTILIZATION.one(numbers.last_utilization)
    yield RECOPY.one(numbers.last_recopy_ratio)
    yield DIRTY.one(numbers.max_dirty_ratio)
    yield DELAY.one(numbers.max_delay_ms / 1000)
    if numbers.last_look_ms is not None:
        yield SINCE.one((daemon.clock.now().mono_ms - numbers.last_look_ms) / 1000)
    yield UNCLEANABLE.one(len(daemon.cleaning.uncleanable))
    yield UNCLEANABLE_BYTES.one(numbers.uncleanable_bytes)
    yield KEPT_FOR_PIPELINE.one(numbers.kept_for_pipeline_bytes)
    yield PIPELINE_OVERTAKEN.one(numbers.pipeline_overtaken)
