"""Doctor: will the pipeline run here? Java, Python, package versions, memory.

Each finding is a line with a verdict and, if something is wrong, what to do first.
"""

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.java import NoJava, find_java

DRIVER_MEMORY_MIB: Final = 2_048
"""What a job over ten million commits is comfortable with."""

_PACKAGES: Final = {
    "pyspark": (4, 5),
    "duckdb": (1, 2),
    "sqlframe": (4, 5),
    "pyarrow": (18, None),
    "pandas": (2, 3),
    "numpy": (2, None),
}
"""The major versions that go together: from, and up to but not including."""

_OF_A_WORKER: Final = ("pyspark", "pyarrow", "numpy", "google_crc32c", "cramjam", "msgspec")
_ASK_A_WORKER: Final = (
    f"import sys, {', '.join(_OF_A_WORKER)}; print(*sys.version_info[:2], sep='.')"
)
_CGROUP: Final = Path("/sys/fs/cgroup")


class CheckStatus(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "wrong"


class Check(NamedTuple):
    status: CheckStatus
    what: str
    detail: str


def run_checks() -> Iterator[Check]:
    """Everything that a job needs, in the order in which a user would mend it."""
    yield Check(CheckStatus.OK, "Python", f"{sys.version.split()[0]} at {sys.executable}")
    yield from _packages()
    try:
        java = find_java()
    except NoJava as missing:
        yield Check(CheckStatus.FAILED, "Java", str(missing))
    else:
        yield Check(CheckStatus.OK, "Java", f"{java.version} from {java.found_in}, {java.home}")
        if java.passed_over:
            yield Check(CheckStatus.WARNING, "Java", java.passed_over)
    yield _connector()
    yield _worker()
    yield _memory()


def _connector() -> Check:
    """Only `kafka://`, `stream` and --acknowledge need it, so nothing is wrong without it."""
    what = "Kafka connector"
    try:
        from pipeline.session import (
            WHOLE_CONNECTOR,
            connector_text,
            names_jars,
            pyspark_version,
        )
    except ImportError:
        return Check(CheckStatus.WARNING, what, "unknown without pyspark")
    if names_jars({}):
        return Check(CheckStatus.OK, what, "configured jars")
    if pyspark_version() != WHOLE_CONNECTOR:
        detail = f"that of Spark {pyspark_version()} is not whole in Maven Central. "
        return Check(CheckStatus.WARNING, what, detail + connector_text())
    return Check(CheckStatus.OK, what, "Spark downloads it at the first use of kafka://")


def _worker() -> Check:
    """Spark's workers must have the same minor version of Python, and the packages too."""
    what, worker = "Python of the workers", os.environ.get("PYSPARK_PYTHON")
    if worker is None:
        return Check(CheckStatus.OK, what, "this one; PYSPARK_PYTHON is not set")
    try:
        asked = subprocess.run(
            [worker, "-c", _ASK_A_WORKER], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return Check(CheckStatus.FAILED, what, f"PYSPARK_PYTHON={worker} does not start: {fault}")
    if asked.returncode:
        detail = asked.stderr.strip().splitlines() or ["it ended"]
        return Check(CheckStatus.FAILED, what, f"PYSPARK_PYTHON={worker}: {detail[-1]}")
    ours, version = ".".join(map(str, sys.version_info[:2])), asked.stdout.strip()
    if version != ours:
        return Check(
            CheckStatus.FAILED, what, f"PYSPARK_PYTHON={worker} is {version}, this is {ours}"
        )
    return Check(CheckStatus.OK, what, f"{version} at {worker}, with the packages")


def _packages() -> Iterator[Check]:
    for name, (least, below) in _PACKAGES.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            detail = "is not installed: pip install 'rollcall-broker[pipeline]'"
            yield Check(CheckStatus.FAILED, name, detail)
            continue
        major = int(version.partition(".")[0])
        if major < least or (below is not None and major >= below):
            wanted = f"{least} or later" + (f", before {below}" if below is not None else "")
            yield Check(CheckStatus.FAILED, name, f"{version}; the pipeline needs {wanted}")
        else:
            yield Check(CheckStatus.OK, name, version)


def _memory() -> Check:
    there = [_available_mib(Path("/proc/meminfo")), _left_mib(_CGROUP)]
    available = min((mib for mib in there if mib is not None), default=None)
    if available is None:
        return Check(CheckStatus.OK, "memory", "unknown on this system")
    if available < DRIVER_MEMORY_MIB:
        detail = f"{available} MiB available; {DRIVER_MEMORY_MIB} MiB recommended"
        return Check(CheckStatus.WARNING, "memory", detail)
    return Check(CheckStatus.OK, "memory", f"{available} MiB available")


def _available_mib(meminfo: Path) -> int | None:
    if not meminfo.exists():
        return None
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return None


def _left_mib(cgroup: Path) -> int | None:
    """What a container may still take; None where nothing limits it."""
    try:
        most = (cgroup / "memory.max").read_text().strip()
        held = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    except OSError:
        return None
    # `anon` is what programs hold; of the rest most is the page cache, which gives way.
    return None if most == "max" else max(0, int(most) - int(held["anon"])) >> 20
