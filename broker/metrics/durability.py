"""Journal: are acknowledged records on the disk, and how long does a flush take?

The journal's thread counts, the event loop reads: each number has one writer.
Kafka's counterpart: none for the journal; LogFlushRateAndTimeMs comes nearest.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions

QUEUE_BYTES: Final = Family(
    "rollcall_journal_queue_bytes",
    Kind.GAUGE,
    "Bytes of records that wait for the disk.",
    kafka="batch-buffer-cache-size-bytes (what comes nearest)",
)
QUEUE_LIMIT: Final = Family(
    "rollcall_journal_queue_limit_bytes",
    Kind.GAUGE,
    "Queue size at which commits are refused (rollcall.journal.queue.max.bytes).",
)
FLUSHES: Final = Family(
    "rollcall_journal_flushes_total",
    Kind.COUNTER,
    "Flushes: groups of records written and synced together.",
    kafka="batch-flush-rate",
)
BYTES: Final = Family(
    "rollcall_journal_stored_bytes_total", Kind.COUNTER, "Bytes of record batches stored."
)
FLUSH_SECONDS: Final = Family(
    "rollcall_journal_flush_seconds",
    Kind.HISTOGRAM,
    "Time to write and sync one flush.",
    kafka="batch-flush-time-ms; LogFlushRateAndTimeMs",
)
FLUSH_PARTITIONS: Final = Family(
    "rollcall_journal_flush_partitions",
    Kind.HISTOGRAM,
    "Partitions of the offsets topic that shared one flush.",
)
CHECKPOINTS: Final = Family(
    "rollcall_journal_checkpoints_total",
    Kind.COUNTER,
    "Checkpoints: the segments were synced, and the journal file can be reused.",
)
CHECKPOINT_SECONDS: Final = Family(
    "rollcall_journal_checkpoint_seconds_total",
    Kind.COUNTER,
    "Time spent on checkpoints, in their own thread.",
)
CHECKPOINT_WAIT: Final = Family(
    "rollcall_journal_checkpoint_wait_seconds_total",
    Kind.COUNTER,
    "Time that commits waited for a checkpoint because both journal files were full.",
)
FAILURES: Final = Family(
    "rollcall_journal_failures_total",
    Kind.COUNTER,
    "Failed writes and fsyncs; the first one closes the journal.",
)
SYNCED: Final = Family(
    "rollcall_journal_synced",
    Kind.GAUGE,
    "1 if offsets are acknowledged after fsync, 0 if after the write to the page cache "
    "(rollcall.flush).",
)
FLUSH_AGE: Final = Family(
    "rollcall_journal_flush_age_seconds",
    Kind.GAUGE,
    "Duration so far of the running flush; 0 without one (see rollcall.flush.stalled.ms).",
)
FULL: Final = Family(
    "rollcall_journal_full",
    Kind.GAUGE,
    "1 while nothing can be written because disk space, file descriptors or memory are used up. "
    "The journal reopens by itself.",
)
FAILED: Final = Family(
    "rollcall_journal_failed",
    Kind.GAUGE,
    "1 after a write or an fsync failed. Nothing more is written; the process ends and must be "
    "restarted.",
    kafka="OfflineLogDirectoryCount",
)


def collect(daemon: Daemon) -> Portions:
    journal, bridge = daemon.journal, daemon.bridge
    yield QUEUE_BYTES.one(journal.queued_bytes)
    yield QUEUE_LIMIT.one(daemon.config.rollcall_journal_queue_max_bytes)
    yield FLUSHES.one(bridge.flushes)
    yield BYTES.one(journal.stored_bytes)
    yield FLUSH_SECONDS.histograms({(): bridge.flush_seconds})
    yield FLUSH_PARTITIONS.histograms({(): bridge.flush_partitions})
    yield CHECKPOINTS.one(journal.checkpointer.checkpoints)
    yield CHECKPOINT_SECONDS.one(journal.checkpointer.seconds)
    yield CHECKPOINT_WAIT.one(journal.checkpointer.wait_seconds)
    yield FAILURES.one(daemon.observer.counters.journal_failures)
    yield SYNCED.one(daemon.config.rollcall_flush == "commit")
    yield FLUSH_AGE.one(journal.flush_age_s)
    yield FULL.one(journal.is_full)
    yield FAILED.one(daemon.health.journal_failed is not None and not journal.is_full)
