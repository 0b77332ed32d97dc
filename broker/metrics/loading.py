"""Loading and snapshots: the progress of a load, and what shortens the next one.

How long the partitions took to load is in groups.py, beside their states.
Kafka's counterpart: none; it has no snapshots of `__consumer_offsets`.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions

_READ_BYTES: Final = Family(
    "rollcall_load_read_bytes",
    MetricKind.GAUGE,
    "Bytes of logs that the running load has read; 0 without one.",
)
_TO_READ_BYTES: Final = Family(
    "rollcall_load_to_read_bytes",
    MetricKind.GAUGE,
    "Bytes of logs that the running load has to read in total; 0 without one.",
)
_LEFT_SECONDS: Final = Family(
    "rollcall_load_left_seconds",
    MetricKind.GAUGE,
    "Estimated time until the running load is complete; 0 without one.",
)
_TAKEN: Final = Family(
    "rollcall_snapshots_taken_total",
    MetricKind.COUNTER,
    "Snapshots taken of partitions of the offsets topic.",
)
_FAILED: Final = Family(
    "rollcall_snapshots_failed_total",
    MetricKind.COUNTER,
    "Snapshots that could not be taken; the next start reads more of the log.",
)
_IGNORED: Final = Family(
    "rollcall_snapshots_ignored_total",
    MetricKind.COUNTER,
    "Snapshots that a load could not use.",
)
_SECONDS: Final = Family(
    "rollcall_snapshot_seconds_total",
    MetricKind.COUNTER,
    "Time spent on snapshots, off the event loop.",
)
_BYTES: Final = Family(
    "rollcall_snapshot_bytes_total", MetricKind.COUNTER, "Bytes of the snapshots taken."
)


def collect(daemon: Daemon) -> Portions:
    counters, report = daemon.observer.counters, daemon.ownership.progress
    yield _READ_BYTES.sample(0 if report is None else report.bytes)
    yield _TO_READ_BYTES.sample(0 if report is None else report.bytes_total)
    yield _LEFT_SECONDS.sample(0 if report is None else (report.left_ms or 0) / 1000)
    yield _TAKEN.sample(counters.snapshots_taken)
    yield _FAILED.sample(counters.snapshots_failed)
    yield _IGNORED.sample(counters.snapshots_ignored)
    yield _SECONDS.sample(counters.snapshots_ms / 1000)
    yield _BYTES.sample(counters.snapshot_bytes)
