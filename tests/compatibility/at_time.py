"""Wall clock: runs the `rollcall` command as if it were started at another time.

    python -P tests/compatibility/at_time.py MS serve --data-dir ...

MS is the time in milliseconds since the Unix epoch. PYTHONPATH says whose code runs. Without this,
everything in a fixture would expire as the fixture gets older: offsets, producers, segments. The
monotonic clock is unchanged.
"""

import sys
import time
from pathlib import Path

_AHEAD_NS = time.time_ns() - int(sys.argv.pop(1)) * 1_000_000
_real_time_ns = time.time_ns


def _time_ns() -> int:
    return _real_time_ns() - _AHEAD_NS


def _time() -> float:
    return _time_ns() / 1e9


# Before the first import of the program: it takes these functions by name.
time.time_ns = _time_ns
time.time = _time

import rollcall  # noqa: E402

if (Path(rollcall.__path__[0]) / "__main__.py").is_file():
    from rollcall.__main__ import main
else:  # 284470a has no such module; an editable install would lend it today's
    from cli.main import main

sys.argv[0] = "rollcall"
main()
