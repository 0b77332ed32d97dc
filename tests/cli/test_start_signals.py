"""A signal during the start: at any moment it ends the process, quietly and with exit code 0.

The moments are those at which the interpreter reports an import (-X importtime) or the daemon of a
step: where an exception out of a signal handler would be lost, or shown as a traceback.
START_SIGNALS moments (30), `make long-signals` more.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

ROLLCALL: Final = Path(sys.executable).with_name("rollcall")
MOMENTS: Final = int(os.environ.get("START_SIGNALS", "30"))
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ENTRY: Final = b" cli.main"
"""The import after which our handlers stand; before it the signals do what they always do."""


class Start:
    """`rollcall serve`, watched line by line."""

    def __init__(self, data: Path) -> None:
        self.said: list[bytes] = []  # since the entry point
        command = [sys.executable, "-X", "importtime", ROLLCALL, "serve"]
        command += ["--data-dir", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert self.process.stderr is not None
        self._lines = iter(self.process.stderr)
        for line in self._lines:
            if line.rstrip().endswith(ENTRY):
                break

    def go_on(self, moments: int) -> None:
        """For so many lines, or until it serves."""
        for line in self._lines:
            self.said.append(line)
            if len(self.said) >= moments or b"Startup complete" in line:
                return

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.said += self._lines  # up to the end of the stream, and so of the process
        return self.process.wait(60)

    def log(self) -> list[bytes]:
        return [line for line in self.said if not line.startswith(b"import time:")]


def test_a_signal_at_any_moment_of_the_start_ends_it_quietly(tmp_path: Path) -> None:
    data = tmp_path / "data"
    whole = Start(data)
    whole.go_on(sys.maxsize)
    assert whole.end(signal.SIGTERM) == 0
    count = len(whole.said)
    assert count > 100

    for attempt in range(MOMENTS):
        moment, number = 1 + attempt * count // MOMENTS, SIGNALS[attempt % len(SIGNALS)]
        start = Start(data)
        start.go_on(moment)
        exit_code = start.end(number)
        log = b"".join(start.log())
        assert exit_code == 0, (moment, number, log)
        for unwanted in (b"Traceback", b"Exception ignored", b"Error"):
            assert unwanted not in log, (moment, number, log)
