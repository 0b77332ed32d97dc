"""Program path: where the packages of the command and the daemon are, and how they are found.

A wheel carries them in `rollcall/_program`, so that site-packages gains the name `rollcall` alone.
In a checkout they are beside this package. Their names are plain (`storage`, `cli`), so they are
put on the path only in a process of the program's own. Importing `rollcall` changes no path.
"""

import os
import sys

from rollcall.bytecode import use_bundle
from rollcall.compiled import use_compiled

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib costs a start


def program_path() -> str:
    """The folder that holds the program's packages."""
    installed = os.path.join(_HERE, "_program")  # noqa: PTH118
    return installed if os.path.isdir(installed) else os.path.dirname(_HERE)  # noqa: PTH112, PTH120


def use_program_path() -> None:
    """Let this process find the program's packages, whatever else its path has.

    What comes from the user (PYTHONPATH, the working directory of `python -m`, the script's folder)
    moves behind the standard library and site-packages: it is still found, but shadows nothing.
    """
    program = program_path()
    given = {os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)}  # noqa: PTH100
    if not sys.flags.safe_path:
        given.add(os.path.abspath(sys.path[0]))  # noqa: PTH100
    first: list[str] = []
    last: list[str] = []
    for path in sys.path:
        if os.path.abspath(path) != program:  # noqa: PTH100
            (last if os.path.abspath(path) in given else first).append(path)  # noqa: PTH100
    sys.path[:] = [program, *first, *last]
    use_bundle(program)
    use_compiled(program)  # in front of the bundle
