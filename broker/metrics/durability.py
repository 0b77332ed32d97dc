"""Is what we acknowledge on the disk, and how long does that take? The journal in numbers.

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
    "Where commits begin to be refused (rollcall.journal.queue.max.bytes).",
)
FLUSHES: Final = Family(
    "rollcall_journal_flushes_total",
    Kind.COUNTER,
    "Groups of records that were written and synced together.",
    kafka="batch-flush-rate",
)
BYTES: Final = Family(
    "rollcall_journal_stored_bytes_total", Kind.COUNTER, "Bytes of record batches that were stored."
)
FLUSH_SECONDS: Final = Family(
    "rollcall_journal_flush_seconds",
    Kind.HISTOGRAM,
    "Time that writing and syncing one such group took.",
    kafka="batch-flush-time-ms; LogFlushRateAndTimeMs",
)
FLUSH_PARTITIONS: Final = Family(
    "rollcall_journal_flush_partitions",
    Kind.HISTOGRAM,
    "Partitions of the offsets topic that shared one sync.",
)
CHECKPOINTS: Final = Family(
    "rollcall_journal_checkpoints_total",
    Kind.COUNTER,
    "Times that the segments were synced and the journal began anew.",
)
CHECKPOINT_SECONDS: Final = Family(
    "rollcall_journal_checkpoint_seconds_total",
    Kind.COUNTER,
    "Time that this took, in a thread of its own.",
)
CHECKPOINT_WAIT: Final = Family(
    "rollcall_journal_checkpoint_wait_seconds_total",
    Kind.COUNTER,
    "How much of it commits had to wait for, because both journal files were full.",
)
FAILURES: Final = Family(
    "rollcall_journal_failures_total",
    Kind.COUNTER,
    "Writes and fsyncs that failed; the first one closes the journal.",
)
SYNCED: Final = Family(
    "rollcall_journal_synced",
    Kind.GAUGE,
    "1 if an offset is acknowledged after fsync, 0 if after the page cache (rollcall.flush).",
)
FLUSH_AGE: Final = Family(
    "rollcall_journal_flush_age_seconds",
    Kind.GAUGE,
    "How long the flush that runs has taken so far; 0 while none runs (rollcall.flush.stalled.ms).",
)
FULL: Final = Family(
    "rollcall_journal_full",
    Kind.GAUGE,
    "1 while nothing is written for want of room on the disk, of file descriptors or of memory: "
    "the journal opens again by itself.",
)
FAILED: Final = Family(
    "rollcall_journal_failed",
    Kind.GAUGE,
    "1 once a write or an fsync has failed and nothing is written any more: the process ends, and "
    "has to be started again.",
    kafka="OfflineLogDirectoryCount",
)


def collect(daemon: Daemon) -> Portions:
    journal, relay = daemon.journal, daemon.relay
    yield QUEUE_BYTES.one(journal.queued_bytes)
    yield QUEUE_LIMIT.one(daemon.config.rollcall_journal_queue_max_bytes)
    yield FLUSHES.one(relay.flushes)
    yield BYTES.one(journal.stored_bytes)
    yield FLUSH_SECONDS.histograms({(): relay.flush_seconds})
    yield FLUSH_PARTITIONS.histograms({(): relay.flush_partitions})
    yield CHECKPOINTS.one(journal.checkpointer.checkpoints)
    yield CHECKPOINT_SECONDS.one(journal.checkpointer.seconds)
    yield CHECKPOINT_WAIT.one(journal.checkpointer.wait_seconds)
    yield FAILURES.one(daemon.observer.counters.journal_failures)
    yield SYNCED.one(daemon.config.rollcall_flush == "commit")
    yield FLUSH_AGE.one(journal.flush_age_s)
    yield FULL.one(journal.is_full)
    yield FAILED.one(daemon.health.journal_failed is not None and not journal.is_full)
