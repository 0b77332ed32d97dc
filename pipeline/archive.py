"""Archive for spark-submit: the program's packages as a zip, and the script that runs the jobs.

Spark puts a `--py-files` zip on the path of driver and workers, so the packages are at its root. An
installed Rollcall has them inside the package `rollcall`, where a worker does not find them.
"""

import zipfile
from pathlib import Path
from typing import Final

import rollcall
from rollcall.program import program_path

ARCHIVE: Final = "rollcall.zip"
SCRIPT: Final = "submit.py"
_LEFT_OUT: Final = frozenset({"__pycache__", "_program"})


def write_archive(folder: Path) -> tuple[Path, Path]:
    """Write the zip and the script into `folder`; their paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    program = Path(program_path())
    packages = {path.parent for path in program.glob("*/__init__.py")}
    packages.discard(program / "tests")  # of a checkout
    archive = folder / ARCHIVE
    partial = archive.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
        for package in sorted(packages | {Path(rollcall.__file__).parent}):
            for source in sorted(package.rglob("*")):
                name = source.relative_to(package.parent)
                if source.is_file() and not _LEFT_OUT.intersection(name.parts):
                    file.write(source, name)
    partial.replace(archive)
    script = folder / SCRIPT
    script.write_text((program / "pipeline" / SCRIPT).read_text())
    return archive, script
