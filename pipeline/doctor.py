"""Will the pipeline run here? Java, Python, the packages that fit each other, memory.

Each finding is a line with a verdict; the first thing that a person should do stands in it.
"""

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.java import NoJava, find_java

DRIVER_MEMORY_MIB: Final = 2_048
"""What a job over ten million commits is comfortable with."""

_PACKAGES: Final = {"pyspark": (4, 5), "pyarrow": (18, None), "pandas": (2, 3), "numpy": (2, None)}
"""The major versions that go together: from, and up to but not including."""


class Verdict(StrEnum):
    FINE = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class Finding(NamedTuple):
    verdict: Verdict
    what: str
    said: str


def examine() -> Iterator[Finding]:
    """Everything that a job needs, in the order in which a user would mend it."""
    yield Finding(Verdict.FINE, "Python", f"{sys.version.split()[0]} at {sys.executable}")
    yield from _packages()
    try:
        java = find_java()
    except NoJava as missing:
        yield Finding(Verdict.WRONG, "Java", str(missing))
    else:
        yield Finding(Verdict.FINE, "Java", f"{java.version} from {java.found_in}, {java.home}")
    worker = os.environ.get("PYSPARK_PYTHON")
    if worker is None:
        yield Finding(Verdict.FINE, "Python of the workers", "this one; PYSPARK_PYTHON is not set")
    else:
        verdict = Verdict.FINE if worker == sys.executable else Verdict.WARNING
        said = f"PYSPARK_PYTHON={worker}: it needs the same packages"
        yield Finding(verdict, "Python of the workers", said)
    yield _memory()


def _packages() -> Iterator[Finding]:
    for name, (least, below) in _PACKAGES.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            said = "is not installed: pip install 'rollcall-broker[pipeline]'"
            yield Finding(Verdict.WRONG, name, said)
            continue
        major = int(version.partition(".")[0])
        if major < least or (below is not None and major >= below):
            wanted = f"{least} or later" + (f", before {below}" if below is not None else "")
            yield Finding(Verdict.WRONG, name, f"{version}; the pipeline needs {wanted}")
        else:
            yield Finding(Verdict.FINE, name, version)


def _memory() -> Finding:
    available = _available_mib(Path("/proc/meminfo"))
    if available is None:
        return Finding(Verdict.FINE, "memory", "unknown on this system")
    if available < DRIVER_MEMORY_MIB:
        said = f"{available} MiB available; {DRIVER_MEMORY_MIB} MiB are comfortable"
        return Finding(Verdict.WARNING, "memory", said)
    return Finding(Verdict.FINE, "memory", f"{available} MiB available")


def _available_mib(meminfo: Path) -> int | None:
    if not meminfo.exists():
        return None
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return None
