"""Loading and snapshots: how far is a load, and what shortens the next one?

How long the partitions took to load is told in groups.py, beside their states.
Kafka's counterpart: none; it has no snapshots of `__consumer_offsets`.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions

READ_BYTES: Final = Family(
    "rollcall_load_read_bytes",
    Kind.GAUGE,
    "Bytes of logs that the running load has read; 0 without one.",
)
TO_READ_BYTES: Final = Family(
    "rollcall_load_to_read_bytes",
    Kind.GAUGE,
    "Bytes of logs that the running load has to read in total; 0 without one.",
)
LEFT_SECONDS: Final = Family(
    "rollcall_load_left_seconds",
    Kind.GAUGE,
    "Estimated time until the running load is complete; 0 without one.",
)
TAKEN: Final = Family(
    "rollcall_snapshots_taken_total",
    Kind.COUNTER,
    "Snapshots taken of partitions of the offsets topic.",
)
FAILED: Final = Family(
    "rollcall_snapshots_failed_total",
    Kind.COUNTER,
    "Snapshots that could not be taken; the next start reads more of the log.",
)
IGNORED: Final = Family(
    "rollcall_snapshots_ignored_total",
    Kind.COUNTER,
    "Snapshots that a load could not use.",
)
SECONDS: Final = Family(
    "rollcall_snapshot_seconds_total", Kind.COUNTER, "Time spent on snapshots, off the event loop."
)
BYTES: Final = Family(
    "rollcall_snapshot_bytes_total", Kind.COUNTER, "Bytes of the snapshots taken."
)


def collect(daemon: Daemon) -> Portions:
    counters, report = daemon.observer.counters, daemon.ownership.progress
    yield READ_BYTES.one(0 if report is None else report.bytes)
    yield TO_READ_BYTES.one(0 if report is None else report.bytes_total)
    yield LEFT_SECONDS.one(0 if report is None else (report.left_ms or 0) / 1000)
    yield TAKEN.one(counters.snapshots_taken)
    yield FAILED.one(counters.snapshots_failed)
    yield IGNORED.one(counters.snapshots_ignored)
    yield SECONDS.one(counters.snapshots_ms / 1000)
    yield BYTES.one(counters.snapshot_bytes)
