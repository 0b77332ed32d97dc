"""Wheels check: each wheel in dist/ gives a daemon, in an empty environment of its own Python.

    make long-wheels        # builds the wheels first; needs a package index for the dependencies

A compiled wheel has to run compiled, and the pure one on every Python. Ends at the first fault,
with exit code 1.
"""

import sys
import tempfile
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.packaging.release_check import install, run, say, try_daemon

SHOW_TAG = "import sys; print(sys.implementation.cache_tag.replace('cpython-', 'cp'))"


def main() -> None:
    pythons = {run(python, "-c", SHOW_TAG).strip(): Path(python) for python in sys.argv[1:]}
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    compiled = {tag: [each for each in wheels if f"-{tag}-" in each.name] for tag in pythons}
    (pure,) = (each for each in wheels if each.name.endswith("-none-any.whl"))
    for tag, python in sorted(pythons.items()):
        (own,) = compiled[tag]
        try_wheel(own, python, "compiled")
        try_wheel(pure, python, "pure Python")


def try_wheel(wheel: Path, python: Path, build: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = install(wheel, Path(folder, "environment"), python)
        say("wheel", wheel.name)
        said = try_daemon(environment, Path(folder))
        assert f"({build}" in said, said


if __name__ == "__main__":
    main()
