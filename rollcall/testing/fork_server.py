"""Fork server: the test run's end; it is started with the first daemon, and forks each of them.

`ForkServer.start` returns a new daemon for its caller alone; `close` ends all of them. The plugin
has one for each test run (each process of pytest-xdist). docs/pytest.md; ADR 0054.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rollcall.testing.channel import Channel, ChannelClosed
from rollcall.testing.daemon import Rollcall
from rollcall.testing.errors import DaemonDied, WrongQuestion

PropertyValue = str | int | float | bool | list[str] | tuple[str, ...]

FOLDER_PREFIX: Final = "rollcall-test-"
START_TIMEOUT_S: Final = 60.0
"""For a machine with much else to do: a start takes a third of a second."""

SERVER_END_WITHIN_S: Final = 30.0
"""How long the server may take to remove the folders; then it is killed."""

TEST_PROPERTIES: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "rollcall.admin.listener": "127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "rollcall.flush": "os",
    "rollcall.forgive.slow.member": "false",
}
"""What a daemon of a test has unless the test sets it. docs/pytest.md says why."""

_RESERVED: Final = ("log.dir", "log.dirs")


class ForkServer:
    """Nothing runs before the first `start`."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(
        self,
        mapping: Mapping[str, PropertyValue] | None = None,
        /,
        **properties: PropertyValue,
    ) -> Rollcall:
        """A daemon with these properties; names have dots, or underscores for them.

        Raises WrongQuestion for a property that the daemon refuses, DaemonDied.
        """
        written = {**TEST_PROPERTIES, **as_properties({**(mapping or {}), **properties})}
        channel, base = self._serving()
        self._started += 1
        folder = base / f"daemon-{self._started}"
        folder.mkdir()
        end, its = socket.socketpair()
        try:
            answer = channel.ask({"start": str(folder), "properties": written}, [its.fileno()])
        except ChannelClosed:
            end.close()
            raise DaemonDied(self._last_words()) from None
        finally:
            its.close()
        pid = answer["pid"]
        assert isinstance(pid, int)
        control = Channel(end)
        control.set_timeout(START_TIMEOUT_S)
        try:
            ready = control.receive()
        except (ChannelClosed, TimeoutError) as failed:
            control.close()
            log = _log_of(folder)
            self._stop(pid, folder)
            refused = [line for line in log.splitlines() if line.startswith("rollcall: ")]
            if refused:
                raise WrongQuestion(refused[-1]) from None
            late = f"not ready after {START_TIMEOUT_S:g} s"
            reason = late if isinstance(failed, TimeoutError) else "it ended"
            raise DaemonDied(f"the daemon did not start ({reason}): {log[-2_000:]}") from None
        addresses = ready["answer"]
        assert isinstance(addresses, dict)
        return Rollcall(
            pid=pid,
            bootstrap=addresses["bootstrap"],
            admin=addresses["admin"],
            folder=folder,
            channel=control,
            stop=lambda: self._stop(pid, folder),
        )

    def close(self) -> None:
        """End all daemons, and the server; returns when their folders are gone."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(SERVER_END_WITHIN_S)
            except subprocess.TimeoutExpired:  # it is stopped, or its disk hangs
                self._process.kill()  # its daemons die with it
                self._process.wait()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # if the server was killed
            self._folder = None

    def _stop(self, pid: int, folder: Path) -> None:
        if self._channel is not None:
            with suppress(ChannelClosed):
                self._channel.ask({"stop": pid, "folder": str(folder)})

    def _serving(self) -> tuple[Channel, Path]:
        if self._channel is None or self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
            end, its = socket.socketpair()
            with its, (self._folder / "fork-server.log").open("wb") as log:
                self._process = subprocess.Popen(
                    [
                        sys.executable, "-P", "-m", "rollcall.testing",
                        str(its.fileno()), str(self._folder), str(os.getpid()),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=_environment(),
                    pass_fds=[its.fileno()],
                    start_new_session=True,  # Ctrl-C reaches the tests; they still need the daemon
                )  # fmt: skip
            self._channel = Channel(end)
            self._channel.set_timeout(START_TIMEOUT_S)
        return self._channel, self._folder

    def _last_words(self) -> str:
        log = "" if self._folder is None else _read(self._folder / "fork-server.log")
        return f"the fork server of rollcall.testing has ended: {log[-2_000:] or 'it says nothing'}"


def as_properties(given: Mapping[str, PropertyValue]) -> dict[str, str]:
    """Names with dots, values as a properties file has them. Raises WrongQuestion."""
    written: dict[str, str] = {}
    for name, value in given.items():
        dotted = name.replace("_", ".")
        if dotted in _RESERVED:
            raise WrongQuestion(f"{dotted}: a daemon of a test has a data directory of its own")
        if dotted in written:
            raise WrongQuestion(f"{dotted} is given twice")
        match value:
            case bool():
                written[dotted] = str(value).lower()
            case list() | tuple():
                written[dotted] = ",".join(map(str, value))
            case _:
                written[dotted] = str(value)
    return written


def _environment() -> dict[str, str]:
    """This process's, and where `rollcall` is, however the tests have found it."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path}


def _log_of(folder: Path) -> str:
    return _read(folder / "daemon.log")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
