"""Fixtures and versions: where the fixtures are, and how the code of a version is run on them.

with unpacked("killed", tmp_path) as data_dir: ...
TODAY.daemon(folder, at_ms)             a daemon of this checkout
Version(checkout).daemon(folder, at_ms) a daemon of another checkout
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.broker.daemon import Daemon

HERE: Final = Path(__file__).parent
COMMIT: Final = "284470a"
FIXTURES: Final = HERE / f"written_by_{COMMIT}"
_AT_TIME: Final = HERE / "at_time.py"

SMALL_JOURNAL: Final[Mapping[str, str]] = {"rollcall.journal.bytes": "36700160"}
"""The smallest two files that one flush is sure to fit in."""

SETTINGS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    **SMALL_JOURNAL,
    "offsets.topic.num.partitions": "2",
    "log.cleaner.enable": "false",  # what a fixture has is read as it was written
    "rollcall.snapshot.bytes": "1073741824",
    "rollcall.lag.interval.ms": "200",  # as it was written: rates are over so many intervals
    "rollcall.log.format": "json",
    "rollcall.log.level": "debug",
}
"""Of a daemon that is asked what it finds in a fixture."""


class Version:
    """The code in one checkout."""

    def __init__(self, checkout: Path) -> None:
        self._environment = {
            "PYTHONPATH": str(checkout),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ROLLCALL_STRICT_FILES": "1",
        }

    def command(self, at_ms: int) -> list[str]:
        return [sys.executable, "-P", str(_AT_TIME), str(at_ms)]

    def daemon(
        self, folder: Path, at_ms: int, settings: Mapping[str, str] = SETTINGS
    ) -> "VersionDaemon":
        return VersionDaemon(folder, settings, self.command(at_ms), self._environment)

    def run(
        self, at_ms: int, *arguments: str | Path, timeout_s: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        """The `rollcall` command with these arguments."""
        return subprocess.run(
            [*self.command(at_ms), *map(str, arguments)],
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )


TODAY: Final = Version(HERE.parents[1])


class VersionDaemon(Daemon):
    """`rollcall serve` of a version, at a time."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        command: list[str],
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(folder, settings)
        self._command = command
        self.environment = dict(environment)

    def command(self) -> list[str]:
        return [*self._command, *super().command()[1:]]

    def lines(self) -> list[dict[str, object]]:
        """What it logged."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]


def archive_of(name: str) -> Path:
    return FIXTURES / f"{name}.tar.xz"


def pack(name: str, folder: Path) -> None:
    """Keep the content of a folder; of its owners only the modes and times of the files."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive_of(name), "w:xz", preset=9) as archive:
        archive.add(folder, ".", filter=anonymous)


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(archive_of(name)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def expected(name: str) -> dict[str, object]:
    content: dict[str, object] = json.loads((FIXTURES / f"{name}.json").read_text())
    return content


def cut_to(data_dir: Path, sizes: Mapping[str, int]) -> None:
    """As after a cut of power: of these files only so much had been synced."""
    for name, size in sizes.items():
        os.truncate(data_dir / name, size)
