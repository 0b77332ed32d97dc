"""Wheel layout: the program's packages go into `rollcall/_program`, so one name is installed.

In the repository they stand beside `rollcall/`, and an editable install runs them from there. A
wheel has them inside: `rollcall/program.py` finds both. With `ROLLCALL_COMPILE=1` (or 2: -O2) it
also has the compiled modules, in `rollcall/_compiled`, and is a wheel for this Python and platform;
`make wheels` builds both kinds. Everything else is in pyproject.toml.
"""

import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
NOT_INSTALLED = {"rollcall", "tests"}  # the first is a package of its own
IS_COMPILED = os.environ.get("ROLLCALL_COMPILE", "0") != "0"


def program_files() -> list[Path]:
    """The files of every package of the program, relative to the repository."""
    packages = sorted(path.parent for path in ROOT.glob("*/__init__.py"))
    return [
        path.relative_to(ROOT)
        for package in packages
        if package.name not in NOT_INSTALLED
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


class BuildProgram(build_py):
    """build_py that also copies the program."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        rmtree(self._target(Path()), ignore_errors=True)  # an earlier build's, of older sources
        for path in program_files():
            target = self._target(path)
            self.mkpath(str(target.parent))
            self.copy_file(str(ROOT / path), str(target))
        rmtree(self._compiled, ignore_errors=True)
        if IS_COMPILED:
            command = [sys.executable, "-m", "native.compile", "--wheel", self._compiled.absolute()]
            subprocess.run(command, cwd=ROOT, check=True)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002
        outputs: list[str] = super().get_outputs(include_bytecode)
        if not self.editable_mode:
            outputs += [str(self._target(path)) for path in program_files()]
            outputs += [str(path) for path in self._compiled.glob("*")]
        return outputs

    @property
    def _compiled(self) -> Path:
        return Path(self.build_lib, "rollcall", "_compiled")

    def _target(self, path: Path) -> Path:
        return Path(self.build_lib, "rollcall", "_program", path)


class Wheel(Distribution):
    """A distribution for one Python and platform, if it has compiled modules."""

    def has_ext_modules(self) -> bool:
        return IS_COMPILED


setup(cmdclass={"build_py": BuildProgram}, distclass=Wheel)
