"""Process: version, start time, readiness, delay of the event loop.

There is one event loop, so whatever blocks it blocks every client: `event_loop_lag` shows that it
happened, `long_turn` which kind of work it was, `gc_pause` whether it was the garbage collector.
Memory, CPU, descriptors and the interpreter have the names that every Prometheus library uses.
Kafka's counterpart: `request-handler-avg-idle-percent`, and the JVM's own.
"""

import gc
from typing import Final

from prometheus_client import PlatformCollector

from broker.daemon import Daemon
from broker.loop.process import descriptor_limit
from broker.metrics.family import Family, MetricKind, Portions
from broker.metrics.process_numbers import count_descriptors, read_process_numbers
from rollcall import __version__

_BUILD: Final = Family(
    "rollcall_build_info", MetricKind.INFO, "Version of the daemon.", ("version",)
)
_PYTHON: Final = Family(
    "python_info",
    MetricKind.INFO,
    "The interpreter that runs the daemon.",
    ("version", "implementation", "major", "minor", "patchlevel"),
)
_START_TIME: Final = Family(
    "rollcall_start_time_seconds", MetricKind.GAUGE, "Start time of the daemon, in Unix time."
)
_UPTIME: Final = Family(
    "rollcall_uptime_seconds", MetricKind.GAUGE, "Time since the start of the daemon."
)
_READY: Final = Family(
    "rollcall_ready",
    MetricKind.GAUGE,
    "1 if the daemon is ready for clients (/readyz).",
    kafka="BrokerState is 3",
)
_LAG: Final = Family(
    "rollcall_event_loop_lag_seconds",
    MetricKind.HISTOGRAM,
    "Delay of the event loop, measured twice a second.",
    kafka="RequestHandlerAvgIdlePercent, NetworkProcessorAvgIdlePercent",
)
_LAG_MAX: Final = Family(
    "rollcall_event_loop_lag_max_seconds",
    MetricKind.GAUGE,
    "The longest delay of the event loop since the start.",
)
_STALLS: Final = Family(
    "rollcall_event_loop_stalls_total",
    MetricKind.COUNTER,
    "Times that the process did not run for more than a second.",
)
_STALL_SECONDS: Final = Family(
    "rollcall_event_loop_stall_seconds_total",
    MetricKind.COUNTER,
    "Time for which the process did not run; sessions were extended by it.",
)
_LONG_TURNS: Final = Family(
    "rollcall_long_turns_total",
    MetricKind.COUNTER,
    "Turns that blocked the event loop for more than 5 ms, by kind of work.",
    ("kind",),
)
_LONGEST_TURN: Final = Family(
    "rollcall_longest_turn_seconds",
    MetricKind.GAUGE,
    "The longest turn in the last one to two minutes, by kind of work.",
    ("kind",),
    kafka="event-processing-time-ms-max",
)
_LOOP_FILES: Final = Family(
    "rollcall_loop_file_operations_total",
    MetricKind.COUNTER,
    "File operations on the event loop's thread, during which clients wait; each is a bug in "
    "Rollcall.",
)
_FAILURES: Final = Family(
    "rollcall_internal_failures_total", MetricKind.COUNTER, "Unexpected errors outside requests."
)
_LINES_LOST: Final = Family(
    "rollcall_log_lines_lost_total",
    MetricKind.COUNTER,
    "Log lines that could not be written to stderr.",
)
_GC_RUNS: Final = Family(
    "python_gc_collections_total",
    MetricKind.COUNTER,
    "Runs of the garbage collector.",
    ("generation",),
)
_GC_PAUSES: Final = Family(
    "rollcall_gc_pause_seconds",
    MetricKind.HISTOGRAM,
    "Pauses of the process by the garbage collector.",
)
_VIRTUAL: Final = Family(
    "process_virtual_memory_bytes", MetricKind.GAUGE, "Virtual memory size in bytes."
)
_RESIDENT: Final = Family(
    "process_resident_memory_bytes", MetricKind.GAUGE, "Resident memory size in bytes."
)
_PROCESS_START: Final = Family(
    "process_start_time_seconds",
    MetricKind.GAUGE,
    "Start time of the process since unix epoch in seconds.",
)
_CPU: Final = Family(
    "process_cpu_seconds_total",
    MetricKind.COUNTER,
    "Total user and system CPU time spent in seconds.",
)
_OPEN_FDS: Final = Family("process_open_fds", MetricKind.GAUGE, "Number of open file descriptors.")
_MAX_FDS: Final = Family(
    "process_max_fds", MetricKind.GAUGE, "Maximum number of open file descriptors."
)

_platform = PlatformCollector(registry=None)


def collect(daemon: Daemon, started_s: float) -> Portions:
    yield _BUILD.samples([((__version__,), 1)])
    for metric in _platform.collect():
        if metric.name == _PYTHON.name:
            labels = metric.samples[0].labels
            yield _PYTHON.samples([([labels[name] for name in _PYTHON.labels], 1)])
    yield _START_TIME.sample(started_s)
    yield _UPTIME.sample(daemon.clock.now().wall_ms / 1000 - started_s)
    yield _READY.sample(daemon.health.ready)
    yield from _loop(daemon)
    yield from _collections(daemon)
    yield from _process()


def _process() -> Portions:
    numbers = read_process_numbers()
    if numbers is None:
        return
    yield _VIRTUAL.sample(numbers.virtual_bytes)
    yield _RESIDENT.sample(numbers.resident_bytes)
    yield _PROCESS_START.sample(numbers.started_s)
    yield _CPU.sample(numbers.cpu_s)
    for count in count_descriptors():
        yield None if count is None else _OPEN_FDS.sample(count)
    yield _MAX_FDS.sample(descriptor_limit())


def _loop(daemon: Daemon) -> Portions:
    ticker, counters, stalls = daemon.ticker, daemon.observer.counters, daemon.ticker.stalls
    yield _LAG.histograms({(): ticker.lags})
    yield _LAG_MAX.sample(ticker.lag_seconds_max)
    yield _STALLS.sample(counters.stalls)
    yield _STALL_SECONDS.sample(counters.stalled_ms / 1000)
    yield _LONG_TURNS.by_label(stalls.long)
    yield _LONGEST_TURN.by_label(stalls.longest())
    yield _LOOP_FILES.sample(daemon.guard.operations)
    yield _FAILURES.sample(counters.parts_failed)
    yield _LINES_LOST.sample(daemon.observer.lines_lost)


def _collections(daemon: Daemon) -> Portions:
    yield _GC_RUNS.by_label(
        {str(number): stats["collections"] for number, stats in enumerate(gc.get_stats())}
    )
    yield _GC_PAUSES.histograms({(): daemon.ticker.stalls.gc_pauses})
