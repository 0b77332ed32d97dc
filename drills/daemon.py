"""Drilled daemon: `rollcall serve` on a data directory of its own, killed and started again.

Faults go through the file that `rollcall.drill.faults` names (storage/drill_faults.py); the daemon
reads it, so a fault begins and ends while the daemon runs.
"""

import re
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from drills.events import OF_DAEMON, EventLog, Kind, wait_for
from drills.processes import CannotStart, Child
from storage.drill_faults import NO_FAULTS, DrillFaults

START_WITHIN_S: Final = 60.0
_READY: Final = re.compile(r"rollcall ready: clients (\S+)")
PROPERTIES: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "rollcall.checkpoint.idle.ms": "200",
}
"""What a drill sets unless its scenario does."""


class DrilledDaemon:
    def __init__(
        self,
        folder: Path,
        log: Path,
        events: EventLog,
        properties: Sequence[tuple[str, str]],
        program: str | None = None,
    ) -> None:
        """`program`: another `rollcall` command than this installation's."""
        self._events = events
        self._log = log
        self._data_dir = folder / "data"
        self._faults_file = folder / "faults.json"
        self._faults = NO_FAULTS
        self._properties = {**PROPERTIES, **dict(properties)}
        self._program = [program] if program else [sys.executable, "-P", "-m", "rollcall"]
        self._address = ("127.0.0.1", 0)
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._child: Child | None = None
        self._kept: socket.socket | None = None
        self.set_faults(NO_FAULTS)

    @property
    def address(self) -> tuple[str, int]:
        return self._address

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def set_faults(self, faults: DrillFaults) -> None:
        self._faults = faults
        new = self._faults_file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(faults))
        new.replace(self._faults_file)

    @property
    def faults(self) -> DrillFaults:
        return self._faults

    def start(self, *, may_die: bool = False) -> bool:
        """Returns when it is ready, or, if it may, when it has died. Raises CannotStart."""
        host, port = self._address
        command = [*self._program, "serve", "--data-dir", str(self._data_dir)]
        command += ["--listen", f"{host}:{port}", "--admin", "127.0.0.1:0"]
        for name, value in self._properties.items():
            command += ["--set", f"{name}={value}"]
        command += ["--set", f"rollcall.drill.faults={self._faults_file}"]
        self._ready.clear()
        self._ended.clear()
        self._events.note(OF_DAEMON, Kind.STARTED)
        self._child = Child(command, self._log, self._hear, self._end)
        is_ready = self._wait_ready()
        if not is_ready and not (may_die and self._ended.is_set()):
            self.close()
            raise CannotStart(f"the daemon does not start: {self._last_line()}")
        return is_ready

    def _wait_ready(self) -> bool:
        wait_for(lambda: self._ready.is_set() or self._ended.is_set(), START_WITHIN_S)
        return self._ready.is_set()

    def kill(self) -> None:
        assert self._child is not None
        self._child.kill()
        self.wait_ended(START_WITHIN_S)

    def wait_ended(self, timeout_s: float) -> bool:
        """Whether it has ended within this time; its port is kept until the next start."""
        if not self._ended.wait(timeout_s):
            return False
        self._keep_port()
        return True

    def stall(self) -> None:
        assert self._child is not None
        self._child.stall()
        self._events.note(OF_DAEMON, Kind.STALLED)

    def resume(self) -> None:
        assert self._child is not None
        self._child.resume()
        self._events.note(OF_DAEMON, Kind.RESUMED)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
        if self._kept is not None:
            self._kept.close()

    def _hear(self, line: str) -> None:
        found = _READY.search(line)
        if found is not None:
            host, _, port = found[1].split(",")[0].rpartition(":")
            self._address = (host, int(port))
            self._events.note(OF_DAEMON, Kind.READY)
            self._ready.set()

    def _end(self) -> None:
        self._events.note(OF_DAEMON, Kind.KILLED)
        self._ended.set()

    def _keep_port(self) -> None:
        """Bound and not listening, a socket keeps the port for the daemon and refuses clients."""
        if self._kept is None:
            self._kept = socket.socket()
            self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                self._kept.bind(self._address)

    def _last_line(self) -> str:
        lines = self._log.read_text("utf-8", "replace").split("\n") if self._log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")
