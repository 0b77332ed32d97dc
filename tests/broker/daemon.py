"""The real daemon as a process: started on free ports, killed, and started again.

    daemon.bootstrap    host:port for clients; the same after each start
    daemon.kill()       SIGKILL, as a power switch would; daemon.start() brings it back
    daemon.stop()       SIGTERM; its exit code
    daemon.log()        what it wrote to stderr, all starts together

The fixtures `daemon` and `start_daemon` are in tests/conftest.py.
"""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 90.0

TEST_SETTINGS: Final[Mapping[str, str]] = {"group.initial.rebalance.delay.ms": "0"}
"""Kafka's three seconds would be most of a test's time."""

LOOP_WAITED: Final = "on the event loop's thread"
"""What storage/loop_guard.py says of disk work where clients wait for it."""

_READY: Final = re.compile(r"rollcall ready: clients (\S+)( admin (\S+))? data (.+)")


class Daemon:
    """`rollcall serve` with its data below `folder`."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] = TEST_SETTINGS,
        *,
        prefix: Sequence[str] = (),
    ) -> None:
        self.data_dir = folder / "data"
        self.settings = dict(settings)
        self.listen: str | None = "127.0.0.1:0"  # None: the settings say where
        self.admin_listen = "127.0.0.1:0"
        self.arguments: list[str] = []
        self.environment = {"ROLLCALL_STRICT_FILES": "1"}
        self._prefix = prefix  # a command that runs the daemon in its own place
        self.bootstrap = ""
        self.admin = ""
        self._stderr = folder / "daemon.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: list[socket.socket] = []

    @property
    def host(self) -> str:
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "the daemon was never started"
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def command(self) -> list[str]:
        command = [
            str(Path(sys.executable).with_name("rollcall")), "serve",
            "--data-dir", str(self.data_dir), "--admin", self.admin_listen,
        ]  # fmt: skip
        if self.listen is not None:
            command += ["--listen", self.listen]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        return command + self.arguments

    def start(self) -> "Daemon":
        """Start it, or start it again; returns once it is ready."""
        assert not self.running, "the daemon runs already"
        with self._stderr.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*self._prefix, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **self.environment},
                cwd=Path(__file__).parents[2],
            )
        clients, admin = self._wait_until_ready()
        self.bootstrap = clients.split(",")[0]
        self.admin = admin
        # A client knows the address by now: the next start has to be found there.
        if self.listen is not None:
            self.listen = self.bootstrap
        self.admin_listen = admin or self.admin_listen
        return self

    def kill(self) -> None:
        self.process.kill()
        self._reap()

    def pause(self) -> None:
        """SIGSTOP: it lives, and hears nobody."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        self.process.terminate()
        return self._reap()

    def wait(self) -> int:
        """For its end, of which it was told or which it makes itself; its exit code."""
        return self._reap()

    def close(self) -> None:
        """Whatever a test has left behind."""
        if self.running:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self._reap()
            except subprocess.TimeoutExpired:
                self.kill()
        while self._kept:
            self._kept.pop().close()
        waited = [line for line in self.log().splitlines() if LOOP_WAITED in line]
        assert not waited, waited

    def log(self) -> str:
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    def get(self, path: str) -> tuple[int, str]:
        """(status, body) of a page of the admin port."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _wait_until_ready(self) -> tuple[str, str]:
        assert self.process.stdout is not None
        output = self.process.stdout
        deadline = time.monotonic() + START_TIMEOUT_S
        read = b""
        while time.monotonic() < deadline:
            if not select.select([output], [], [], 0.1)[0]:
                continue
            piece = os.read(output.fileno(), 4_096)
            read += piece
            if match := _READY.search(read.decode(errors="replace")):
                return match[1], match[3] or ""
            if not piece:
                break
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        raise AssertionError(
            f"the daemon did not start (exit code {self.process.poll()}): {self.log()[-2_000:]}"
        )

    def _reap(self) -> int:
        exit_code = self.process.wait(STOP_TIMEOUT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        if not self._kept:
            self._keep_ports()
        return exit_code

    def _keep_ports(self) -> None:
        """Until the next start nobody else may be given them, as another test's daemon could be.

        Bound and not listening, a socket refuses clients and does not stand in the daemon's way.
        """
        for address in filter(None, (self.bootstrap, self.admin)):
            host, _, port = address.rpartition(":")
            kept = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._kept.append(kept)
            with contextlib.suppress(OSError):  # not an address of this machine's
                kept.bind((host.strip("[]"), int(port)))
