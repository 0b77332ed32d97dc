"""Suite: what `make test` runs, and on which build.

Everything runs on what `make install` made. If that is a compiled build, the tests in virtual time
run on the sources too, and so do those that patch internals (marked `pure`).

    python -m tests.suite [PROCESSES]
    python -m tests.suite --fast         # prints the folders of the tests in virtual time
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests import again

FAST = ("protocol", "purgatory", "coordinator", "storage", "topics", "transactions")
PATCHING = ("broker", "history", "simulator")
"""Where, beside FAST, tests are marked `pure`."""


def main() -> int:
    if sys.argv[1:] == ["--fast"]:
        print(*_folders(FAST))
        return 0
    processes = sys.argv[1] if len(sys.argv) > 1 else "2"
    passes = passes_of(is_compiled=_run(["tests.build"], {}) == 0)
    return max(_pass(words, processes, pure) for words, pure in passes)


def passes_of(*, is_compiled: bool) -> list[tuple[Sequence[str], str]]:
    """pytest's words, and ROLLCALL_PURE, of each pass."""
    if not is_compiled:
        return [((), "1")]
    return [
        (("-m", "not pure"), "0"),
        (_folders(FAST), "1"),
        (("-m", "pure", *_folders(PATCHING)), "1"),
    ]


def _folders(packages: Sequence[str]) -> Sequence[str]:
    return [f"tests/{name}" for name in packages]


def _pass(words: Sequence[str], processes: str, pure: str) -> int:
    again.LAST_FAILED.unlink(missing_ok=True)
    build = {"ROLLCALL_PURE": pure}
    print(f"ROLLCALL_PURE={pure} pytest {' '.join(words)}", flush=True)
    failed = _run(["pytest", "-n", processes, "--dist", "loadgroup", *words], build)
    return failed and _run(["tests.again"], build)


def _run(module: Sequence[str], settings: Mapping[str, str]) -> int:
    return subprocess.call([sys.executable, "-m", *module], env={**os.environ, **settings})


if __name__ == "__main__":
    sys.exit(main())
