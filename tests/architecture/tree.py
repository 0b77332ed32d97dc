"""Tracked files: those that git tracks or, in an unpacked archive, all."""

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(
    sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests")
)
_NOT_OURS = {".venv", ".git", ".cache", "build", "dist", "__pycache__", "rollcall-data"}


@cache
def tracked_files() -> tuple[Path, ...]:
    """Relative to ROOT, in order; files that are new and not ignored count as tracked."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        names = [Path(name) for name in listed.stdout.split("\0") if name]
    else:
        names = [
            Path(folder, name).relative_to(ROOT)
            for folder, folders, files in os.walk(ROOT)
            for name in files
            if not _prune(folders)
        ]
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


def _prune(folders: list[str]) -> None:
    folders[:] = [folder for folder in folders if folder not in _NOT_OURS]


def python_files(*, tests: bool) -> list[Path]:
    """The Python files of the product, or those of the tests and benchmarks."""
    return [
        path
        for path in tracked_files()
        if path.suffix == ".py" and (path.parts[0] in PACKAGES) != tests
    ]
