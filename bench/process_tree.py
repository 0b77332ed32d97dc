"""Process tree: peak memory by kind of process, and CPU time, of a process and its children.

Read from /proc. Memory is proportional (PSS): pages that forked workers share are counted once.
"""

import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_EVERY_S = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Used:
    """By kind: `java`, `workers` (the Pythons that Spark starts), `driver`; and `all`."""

    peak_mib: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    ticks: dict[int, tuple[str, int]] = field(default_factory=dict)

    def cpu_s(self) -> Mapping[str, float]:
        found: dict[str, float] = defaultdict(float)
        for kind, ticks in self.ticks.values():
            found[kind] += ticks / _TICKS
            found["all"] += ticks / _TICKS
        return found


def run_watched(command: Sequence[str], cwd: Path) -> tuple[str, Used]:
    """(output, usage). Prints the errors of a failed process and raises CalledProcessError."""
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        with watched(process.pid) as used:
            said, complained = process.communicate()
        if process.returncode:
            sys.stderr.write(complained[-4_000:])
            raise subprocess.CalledProcessError(process.returncode, command)
    return said, used


@contextmanager
def watched(root: int) -> Iterator[Used]:
    """Samples the process tree twice a second until the context ends."""
    used, left = Used(), threading.Event()

    def watch() -> None:
        while not left.wait(_EVERY_S):
            sample(root, used)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield used
    finally:
        left.set()
        thread.join()


def sample(root: int, used: Used) -> None:
    """Add the current usage."""
    now: dict[str, float] = defaultdict(float)
    for pid in _tree(root):
        try:
            kind, mib, ticks = _of(pid)
        except (OSError, StopIteration):
            continue  # it has ended
        now[kind] += mib
        now["all"] += mib
        used.ticks[pid] = kind, ticks
    for kind, mib in now.items():
        used.peak_mib[kind] = max(used.peak_mib[kind], mib)


def _tree(root: int) -> list[int]:
    children = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children[parent].append(int(stat.parent.name))
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def _of(pid: int) -> tuple[str, float, int]:
    """(kind, MiB, ticks of CPU)"""
    home = Path(f"/proc/{pid}")
    command = home.joinpath("cmdline").read_bytes()
    is_java = Path(os.fsdecode(command.split(b"\0")[0])).name == "java"
    kind = "java" if is_java else "workers" if b"pyspark.daemon" in command else "driver"
    rollup = home.joinpath("smaps_rollup").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    fields = home.joinpath("stat").read_text().rpartition(")")[2].split()
    return kind, kib / 1024, int(fields[11]) + int(fields[12])
