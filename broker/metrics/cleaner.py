"""Are compacted logs kept small? The log cleaner in numbers.

Kafka's counterparts: the beans kafka.log:type=LogCleaner and type=LogCleanerManager, by whose names
each of these is called in docs/metrics.md.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions

RUNS: Final = Family("rollcall_cleaner_runs_total", Kind.COUNTER, "Logs that were cleaned.")
ABORTED: Final = Family(
    "rollcall_cleaner_aborted_total",
    Kind.COUNTER,
    "Passes that came to no end: their topic was deleted, or they may be tried again.",
)
READ: Final = Family(
    "rollcall_cleaner_read_bytes_total",
    Kind.COUNTER,
    "Bytes that passes have read, for the map of newest offsets and for the copy.",
)
WRITTEN: Final = Family(
    "rollcall_cleaner_written_bytes_total", Kind.COUNTER, "Bytes that passes have left."
)
SECONDS: Final = Family(
    "rollcall_cleaner_seconds_total", Kind.COUNTER, "Time that passes took, the swap included."
)
LAST_SECONDS: Final = Family(
    "rollcall_cleaner_last_pass_seconds",
    Kind.GAUGE,
    "Time that the last of them took.",
    kafka="max-clean-time-secs",
)
UTILIZATION: Final = Family(
    "rollcall_cleaner_buffer_utilization_ratio",
    Kind.GAUGE,
    "How full the last pass' map was (log.cleaner.dedupe.buffer.size).",
    kafka="max-buffer-utilization-percent",
)
RECOPY: Final = Family(
    "rollcall_cleaner_recopy_ratio",
    Kind.GAUGE,
    "What the last pass has left, of what it read.",
    kafka="cleaner-recopy-percent",
)
DIRTY: Final = Family(
    "rollcall_cleaner_max_dirty_ratio",
    Kind.GAUGE,
    "Dirty share of the log that needs cleaning most.",
    kafka="max-dirty-percent",
)
DELAY: Final = Family(
    "rollcall_cleaner_max_compaction_delay_seconds",
    Kind.GAUGE,
    "By how much a record is older than max.compaction.lag.ms and not compacted.",
    kafka="max-compaction-delay-secs",
)
SINCE: Final = Family(
    "rollcall_cleaner_since_last_run_seconds",
    Kind.GAUGE,
    "Time since logs to clean were last looked for.",
    kafka="time-since-last-run-ms",
)
UNCLEANABLE: Final = Family(
    "rollcall_cleaner_uncleanable_partitions",
    Kind.GAUGE,
    "Partitions that are not cleaned any more until a restart; the log says why.",
    kafka="uncleanable-partitions-count",
)
UNCLEANABLE_BYTES: Final = Family(
    "rollcall_cleaner_uncleanable_bytes",
    Kind.GAUGE,
    "Bytes of theirs that would be cleaned.",
    kafka="uncleanable-bytes",
)
KEPT_FOR_PIPELINE: Final = Family(
    "rollcall_cleaner_kept_for_pipeline_bytes",
    Kind.GAUGE,
    "Bytes of __consumer_offsets that are not cleaned because the pipeline has not read them.",
)
PIPELINE_OVERTAKEN: Final = Family(
    "rollcall_cleaner_pipeline_overtaken_total",
    Kind.COUNTER,
    "Logs that were cleaned beyond what the pipeline has read: rollcall.pipeline.keep.*.",
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
