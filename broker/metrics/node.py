"""Process: version, start time, readiness, delay of the event loop.

The loop is one, so whatever holds it up holds up every client: `event_loop_lag` says that it
happened, `long_turn` which kind of work it was, `gc_pause` whether it was the collector of garbage.
Memory, CPU and descriptors have the names that every Prometheus library gives them.
Kafka's counterpart: `request-handler-avg-idle-percent`, and the JVM's own.
"""

import gc
from typing import Final

from prometheus_client import ProcessCollector

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions
from rollcall import __version__

BUILD: Final = Family("rollcall_build_info", Kind.INFO, "Version of the daemon.", ("version",))
START_TIME: Final = Family(
    "rollcall_start_time_seconds", Kind.GAUGE, "Start time of the daemon, in Unix time."
)
UPTIME: Final = Family("rollcall_uptime_seconds", Kind.GAUGE, "Time since the start of the daemon.")
READY: Final = Family(
    "rollcall_ready",
    Kind.GAUGE,
    "1 if the daemon is ready for clients (/readyz).",
    kafka="BrokerState is 3",
)
LAG: Final = Family(
    "rollcall_event_loop_lag_seconds",
    Kind.HISTOGRAM,
    "Delay of the event loop, measured twice a second.",
    kafka="RequestHandlerAvgIdlePercent, NetworkProcessorAvgIdlePercent",
)
LAG_MAX: Final = Family(
    "rollcall_event_loop_lag_max_seconds",
    Kind.GAUGE,
    "The longest delay of the event loop since the start.",
)
STALLS: Final = Family(
    "rollcall_event_loop_stalls_total",
    Kind.COUNTER,
    "Times that the process did not run for more than a second.",
)
STALL_SECONDS: Final = Family(
    "rollcall_event_loop_stall_seconds_total",
    Kind.COUNTER,
    "Time for which the process did not run; sessions were extended by it.",
)
LONG_TURNS: Final = Family(
    "rollcall_long_turns_total",
    Kind.COUNTER,
    "Turns that blocked the event loop for more than 5 ms, by kind of work.",
    ("kind",),
)
LONGEST_TURN: Final = Family(
    "rollcall_longest_turn_seconds",
    Kind.GAUGE,
    "The longest turn in the last one to two minutes, by kind of work.",
    ("kind",),
    kafka="event-processing-time-ms-max",
)
LOOP_FILES: Final = Family(
    "rollcall_loop_file_operations_total",
    Kind.COUNTER,
    "File operations on the event loop's thread, during which clients wait; each is a bug in "
    "Rollcall.",
)
FAILURES: Final = Family(
    "rollcall_internal_failures_total", Kind.COUNTER, "Unexpected errors outside requests."
)
LINES_LOST: Final = Family(
    "rollcall_log_lines_lost_total", Kind.COUNTER, "Log lines that could not be written to stderr."
)
GC_RUNS: Final = Family(
    "python_gc_collections_total", Kind.COUNTER, "Runs of the garbage collector.", ("generation",)
)
GC_PAUSES: Final = Family(
    "rollcall_gc_pause_seconds", Kind.HISTOGRAM, "Pauses of the process by the garbage collector."
)
VIRTUAL: Final = Family("process_virtual_memory_bytes", Kind.GAUGE, "Virtual memory size in bytes.")
RESIDENT: Final = Family(
    "process_resident_memory_bytes", Kind.GAUGE, "Resident memory size in bytes."
)
PROCESS_START: Final = Family(
    "process_start_time_seconds",
    Kind.GAUGE,
    "Start time of the process since unix epoch in seconds.",
)
CPU: Final = Family(
    "process_cpu_seconds_total", Kind.COUNTER, "Total user and system CPU time spent in seconds."
)
OPEN_FDS: Final = Family("process_open_fds", Kind.GAUGE, "Number of open file descriptors.")
MAX_FDS: Final = Family("process_max_fds", Kind.GAUGE, "Maximum number of open file descriptors.")

_PROCESS: Final = {
    family.name.removesuffix("_total"): family
    for family in (VIRTUAL, RESIDENT, PROCESS_START, CPU, OPEN_FDS, MAX_FDS)
}
_process = ProcessCollector(registry=None)


def collect(daemon: Daemon, started_s: float) -> Portions:
    yield BUILD.rows([((__version__,), 1)])
    yield START_TIME.one(started_s)
    yield UPTIME.one(daemon.clock.now().wall_ms / 1000 - started_s)
    yield READY.one(daemon.health.ready)
    yield from _loop(daemon)
    yield from _collections(daemon)
    for metric in _process.collect():
        family = _PROCESS.get(metric.name)
        if family is not None:
            yield family.one(metric.samples[0].value)


def _loop(daemon: Daemon) -> Portions:
    ticker, counters, stalls = daemon.ticker, daemon.observer.counters, daemon.ticker.stalls
    yield LAG.histograms({(): ticker.lags})
    yield LAG_MAX.one(ticker.lag_seconds_max)
    yield STALLS.one(counters.stalls)
    yield STALL_SECONDS.one(counters.stalled_ms / 1000)
    yield LONG_TURNS.each(stalls.long)
    yield LONGEST_TURN.each(stalls.longest())
    yield LOOP_FILES.one(daemon.guard.operations)
    yield FAILURES.one(counters.parts_failed)
    yield LINES_LOST.one(daemon.observer.lines_lost)


def _collections(daemon: Daemon) -> Portions:
    yield GC_RUNS.each(
        {str(number): stats["collections"] for number, stats in enumerate(gc.get_stats())}
    )
    yield GC_PAUSES.histograms({(): daemon.ticker.stalls.gc_pauses})
