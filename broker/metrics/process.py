"""Process: memory, CPU and file descriptors, as Linux' /proc has them.

The names and the values are those of every Prometheus library's process collector. Theirs lists
all descriptors in one call, which takes 7 ms with 8,000 connections; here they are counted in
slices. Where there is no /proc there are no samples.
"""

import os
import resource
from collections.abc import Generator
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from broker.metrics.family import Family, MetricKind, Portions

_VIRTUAL: Final = Family(
    "process_virtual_memory_bytes", MetricKind.GAUGE, "Virtual memory size in bytes."
)
_RESIDENT: Final = Family(
    "process_resident_memory_bytes", MetricKind.GAUGE, "Resident memory size in bytes."
)
_START: Final = Family(
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

_PROC: Final = Path("/proc")
_LISTED_AT_ONCE: Final = 1_000
"""Descriptors in a slice: about a millisecond, which is what one call of the kernel returns."""

_UTIME: Final = 11  # fields of /proc/PID/stat behind the name in brackets, see proc_pid_stat(5)
_STIME: Final = 12
_STARTTIME: Final = 19
_VSIZE: Final = 20
_RSS: Final = 21


class _Stat(NamedTuple):
    """Of /proc/self/stat, in bytes and seconds; `started_s` since the system's start."""

    virtual: int
    resident: int
    started_s: float
    cpu_s: float


def collect() -> Portions:
    try:
        stat, booted_s = _read_stat(), _booted_s()
    except OSError:
        return
    yield _VIRTUAL.sample(float(stat.virtual))
    yield _RESIDENT.sample(float(stat.resident))
    yield _START.sample(booted_s + stat.started_s)
    yield _CPU.sample(stat.cpu_s)
    try:
        open_fds = yield from _count_descriptors()
    except OSError:  # there is none left to list them with
        return
    yield _OPEN_FDS.sample(float(open_fds))
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield _MAX_FDS.sample(inf if limit == resource.RLIM_INFINITY else float(limit))


def _read_stat() -> _Stat:
    fields = (_PROC / "self" / "stat").read_bytes().rpartition(b")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return _Stat(
        int(fields[_VSIZE]),
        int(fields[_RSS]) * resource.getpagesize(),
        int(fields[_STARTTIME]) / ticks,
        (int(fields[_UTIME]) + int(fields[_STIME])) / ticks,
    )


def _booted_s() -> float:
    """When the system was started, Unix epoch."""
    with (_PROC / "stat").open("rb") as lines:
        return next(float(line.split()[1]) for line in lines if line.startswith(b"btime "))


def _count_descriptors() -> Generator[None, None, int]:
    """How many are open, with that of the listing; in slices."""
    counted = 0
    with os.scandir(_PROC / "self" / "fd") as descriptors:
        for _ in descriptors:
            counted += 1
            if counted % _LISTED_AT_ONCE == 0:
                yield
    return counted
