"""Spark's log: where what the JVM and its workers print goes, instead of the user's terminal.

Spark writes banners, warnings and, when it is stopped, stack traces to the standard error that its
JVM inherits. A JVM that we start gets a file instead. The file is removed at the end of the process
unless `keep` was called because of a failure that only Spark's own output explains.
"""

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STDERR = 2

_path: Path | None = None
_is_kept = False


@contextmanager
def stderr_to_log() -> Iterator[None]:
    """What starts inside keeps the file as its standard error; this process gets its own back."""
    global _path  # noqa: PLW0603  one JVM for each process
    descriptor, name = tempfile.mkstemp(prefix="rollcall-spark-", suffix=".log")
    if _path is None:
        atexit.register(_remove)
    _path = Path(name)
    sys.stderr.flush()
    own = os.dup(_STDERR)
    try:
        os.dup2(descriptor, _STDERR)
        yield
    finally:
        os.dup2(own, _STDERR)
        os.close(own)
        os.close(descriptor)


def keep() -> Path | None:
    """Leave the file to people; where it is, or None if no JVM was started here."""
    global _is_kept  # noqa: PLW0603
    _is_kept = True
    return _path


def _remove() -> None:
    if _path is not None and not _is_kept:
        _path.unlink(missing_ok=True)
