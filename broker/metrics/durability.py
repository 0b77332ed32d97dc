"""Journal: what is on the disk, what waits for it, and how long a flush takes.

The journal's thread counts, the event loop reads: each number has one writer.
Kafka's counterpart: none for the journal; LogFlushRateAndTimeMs comes nearest.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions

_QUEUE_BYTES: Final = Family(
    "rollcall_journal_queue_bytes",
    MetricKind.GAUGE,
    "Bytes of records that wait for the disk.",
    kafka="batch-buffer-cache-size-bytes (what comes nearest)",
)
_QUEUE_LIMIT: Final = Family(
    "rollcall_journal_queue_limit_bytes",
    MetricKind.GAUGE,
    "Queue size at which commits are refused (rollcall.journal.queue.max.bytes).",
)
_FLUSHES: Final = Family(
    "rollcall_journal_flushes_total",
    MetricKind.COUNTER,
    "Flushes: groups of records written and synced together.",
    kafka="batch-flush-rate",
)
_BYTES: Final = Family(
    "rollcall_journal_stored_bytes_total", MetricKind.COUNTER, "Bytes of record batches stored."
)
_FLUSH_SECONDS: Final = Family(
    "rollcall_journal_flush_seconds",
    MetricKind.HISTOGRAM,
    "Time to write and sync one flush.",
    kafka="batch-flush-time-ms; LogFlushRateAndTimeMs",
)
_FLUSH_PARTITIONS: Final = Family(
    "rollcall_journal_flush_partitions",
    MetricKind.HISTOGRAM,
    "Partitions of the offsets topic that shared one flush.",
)
_CHECKPOINTS: Final = Family(
    "rollcall_journal_checkpoints_total",
    MetricKind.COUNTER,
    "Checkpoints: the segments were synced, and the journal file can be reused.",
)
_CHECKPOINT_SECONDS: Final = Family(
    "rollcall_journal_checkpoint_seconds_total",
    MetricKind.COUNTER,
    "Time spent on checkpoints, in their own thread.",
)
_CHECKPOINT_WAIT: Final = Family(
    "rollcall_journal_checkpoint_wait_seconds_total",
    MetricKind.COUNTER,
    "Time that commits waited for a checkpoint because both journal files were full.",
)
_FAILURES: Final = Family(
    "rollcall_journal_failures_total",
    MetricKind.COUNTER,
    "Failed writes and fsyncs; the first one closes the journal.",
)
_SYNCED: Final = Family(
    "rollcall_journal_synced",
    MetricKind.GAUGE,
    "1 if offsets are acknowledged after fsync, 0 if after the write to the page cache "
    "(rollcall.flush).",
)
_FLUSH_AGE: Final = Family(
    "rollcall_journal_flush_age_seconds",
    MetricKind.GAUGE,
    "Duration so far of the running flush; 0 without one (see rollcall.flush.stalled.ms).",
)
_FULL: Final = Family(
    "rollcall_journal_full",
    MetricKind.GAUGE,
    "1 while nothing can be written because disk space, file descriptors or memory are used up. "
    "The journal reopens by itself.",
)
_FAILED: Final = Family(
    "rollcall_journal_failed",
    MetricKind.GAUGE,
    "1 after a write or an fsync failed. Nothing more is written; the process ends and must be "
    "restarted.",
    kafka="OfflineLogDirectoryCount",
)


def collect(daemon: Daemon) -> Portions:
    journal, bridge = daemon.journal, daemon.bridge
    yield _QUEUE_BYTES.sample(journal.queued_bytes)
    yield _QUEUE_LIMIT.sample(daemon.config.rollcall_journal_queue_max_bytes)
    yield _FLUSHES.sample(bridge.flushes)
    yield _BYTES.sample(journal.stored_bytes)
    yield _FLUSH_SECONDS.histograms({(): bridge.flush_seconds})
    yield _FLUSH_PARTITIONS.histograms({(): bridge.flush_partitions})
    yield _CHECKPOINTS.sample(journal.checkpointer.checkpoints)
    yield _CHECKPOINT_SECONDS.sample(journal.checkpointer.seconds)
    yield _CHECKPOINT_WAIT.sample(journal.checkpointer.wait_seconds)
    yield _FAILURES.sample(daemon.observer.counters.journal_failures)
    yield _SYNCED.sample(daemon.config.rollcall_flush == "commit")
    yield _FLUSH_AGE.sample(journal.flush_age_s)
    yield _FULL.sample(journal.is_full)
    yield _FAILED.sample(daemon.health.journal_failed is not None and not journal.is_full)
