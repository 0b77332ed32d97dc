"""Go programs of the tests: built once for their sources.

Go fetches the modules that a program's go.sum names. Where there is no Go, or the modules cannot be
had, `go_program` skips the test and says which of the two it was.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "go"
BUILD_TIMEOUT_S = 900  # a first build compiles the whole client, on a busy machine


def go_program(sources: Path) -> Path:
    """The program of a folder, or a skipped test that says what is missing."""
    program, reason = _build_once(sources)
    if program is None:
        pytest.skip(f"{sources.name} cannot be built here: {reason}")
    return program


def find_go() -> str | None:
    """The `go` of PATH, else of the place where Go's own archive is unpacked."""
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go")


@cache
def _build_once(sources: Path) -> tuple[Path | None, str]:
    go = find_go()
    if go is None:
        return None, "no Go in PATH"
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / f"{sources.name}-{_digest(sources)[:16]}"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at the same time
        if program.exists():
            return program, ""
        built = subprocess.run(
            [go, "build", "-trimpath", "-mod=readonly", "-o", program, "."],
            cwd=sources,
            env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    return (program, "") if built.returncode == 0 else (None, built.stderr.strip()[-500:])


def _digest(sources: Path) -> str:
    """Of what the program is made of."""
    content = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        content.update((sources / name).read_bytes())
    return content.hexdigest()
