"""Process numbers: how much memory and CPU time, and how many descriptors the daemon uses.

Meaning and units are those of prometheus-client's `ProcessCollector`. That one lists all
descriptors at once, and 15,000 connections stop the event loop for 6 to 24 ms meanwhile. Since
Linux 6.2 the size of /proc/self/fd is their number; before, they are counted in pieces.
"""

import os
import resource
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")

COUNTED_AT_ONCE: Final = 1_000
"""Descriptors that are counted before the loop may serve others: about half a millisecond."""

_USER_TIME, _SYSTEM_TIME, _START_TIME, _VIRTUAL_BYTES, _RESIDENT_PAGES = 11, 12, 19, 20, 21
"""Positions after the name: utime, stime, starttime, vsize and rss of proc_pid_stat(5)."""

_BOOT_TIME: Final = b"btime "


class ProcessNumbers(NamedTuple):
    """Bytes, seconds, and Unix time in seconds."""

    virtual_bytes: int
    resident_bytes: int
    cpu_s: float
    started_s: float


def read_process_numbers(proc: Path = PROC) -> ProcessNumbers | None:
    """None where there is no /proc."""
    try:
        # The program's name ends with the last parenthesis, and may contain others and spaces.
        after_name = (proc / "self/stat").read_bytes().rpartition(b")")[2].split()
        boot_s = _boot_time_s(proc)
    except OSError:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessNumbers(
        int(after_name[_VIRTUAL_BYTES]),
        int(after_name[_RESIDENT_PAGES]) * resource.getpagesize(),
        (int(after_name[_USER_TIME]) + int(after_name[_SYSTEM_TIME])) / ticks,
        boot_s + int(after_name[_START_TIME]) / ticks,
    )


@cache
def _boot_time_s(proc: Path) -> int:
    for line in (proc / "stat").read_bytes().splitlines():
        if line.startswith(_BOOT_TIME):
            return int(line.removeprefix(_BOOT_TIME))
    return 0


def count_descriptors(proc: Path = PROC) -> Iterator[int | None]:
    """Their number, last; before it a None for each pause. Nothing where there is no /proc."""
    folder = proc / "self/fd"
    try:
        count = folder.stat().st_size
        if not count:
            with os.scandir(folder) as entries:
                while found := sum(1 for _ in islice(entries, COUNTED_AT_ONCE)):
                    count += found
                    yield None
            count -= 1  # that of the scan
    except OSError:
        return
    yield count
