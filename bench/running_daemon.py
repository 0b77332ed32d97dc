"""Running daemon: a `rollcall serve` of its own process for the time of a measurement."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

ROLLCALL: Final = str(Path(sys.executable).with_name("rollcall"))
_READY: Final = re.compile(r"ready: clients 127\.0\.0\.1:(\d+)(?: admin 127\.0\.0\.1:(\d+))?")
_STOP_WITHIN_S: Final = 60


class RunningDaemon(NamedTuple):
    """Its process, and the ports that it chose. `admin_port` is 0 without an admin listener."""

    process: "subprocess.Popen[str]"
    port: int
    admin_port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def running_daemon(
    settings: Mapping[str, object],
    *,
    data_dir: Path | None = None,
    errors: Path | None = None,
    admin: bool = True,
) -> Iterator[RunningDaemon]:
    """Yields when it is ready, stops it in the end.

    `data_dir`: a new temporary one without it. `errors`: a file that its log is added to. Raises
    SystemExit if the daemon does not get ready.
    """
    where = tempfile.TemporaryDirectory() if data_dir is None else nullcontext(str(data_dir))
    with where as folder, (errors or Path(os.devnull)).open("a") as log:
        command = [ROLLCALL, "serve", "--data-dir", folder, "--listen", "127.0.0.1:0"]
        command += ["--admin", "127.0.0.1:0"] if admin else ["--set", "rollcall.admin.listener="]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            yield when_ready(process)
        finally:
            process.terminate()
            process.wait(_STOP_WITHIN_S)


def when_ready(process: "subprocess.Popen[str]") -> RunningDaemon:
    assert process.stdout is not None
    for line in process.stdout:
        if found := _READY.search(line):
            return RunningDaemon(process, int(found[1]), int(found[2] or 0))
    raise SystemExit("the daemon did not get ready")
