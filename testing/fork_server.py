"""Fork server: one process per test run that has the daemon imported, and forks each daemon.

Importing the daemon takes most of a start (0.3 s of CPU); a fork has it already (ADR 0054). The
server reads requests from a socket that it has inherited from the test run, one JSON object a line.
With a request to start comes the daemon's end of its control channel, as a file descriptor:

    {"start": FOLDER, "properties": {NAME: VALUE}}   -> {"pid": PID}
    {"stop": PID, "folder": FOLDER}                  -> {"stopped": PID}; the folder is removed

Nothing stays behind. The server ends when the socket does, which is also how a killed test run
looks; then it kills its daemons and removes their folders. If it is killed itself, the kernel kills
them (PR_SET_PDEATHSIG), and the next test run removes the folders: that of a live run is locked.
"""

import ctypes
import fcntl
import gc
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from broker.main import run_daemon
from config.keys import Config
from config.sources import given, load_config
from config.written import ConfigError, Setting
from console.start import open_console
from rollcall.testing.fork_server import FOLDER_PREFIX
from testing.control import Control

LEFT_OVER_S: Final = 60.0
"""A folder that is younger may belong to a run that has not locked it yet."""

PARENT_CHECK_S: Final = 1.0
"""Between two looks whether the test run is still there: a child of it may hold the socket."""

DAEMON_LOG: Final = "daemon.log"

_LINE_MAX: Final = 1 << 20
_PR_SET_PDEATHSIG: Final = 1


def main(descriptor: int, folder: Path, parent: int) -> None:
    """Serve until the socket ends. `folder` holds the folders of all daemons of this run."""
    with socket.socket(fileno=descriptor) as requests:
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = _ForkServer(requests, folder, parent)
        try:
            server.serve()
        finally:
            server.kill_all()
            shutil.rmtree(folder, ignore_errors=True)
            remove_left_over(Path(tempfile.gettempdir()))


def remove_left_over(parent: Path) -> None:
    """Remove the folders of runs that were killed together with their fork server."""
    for folder in parent.glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):
            found = folder.stat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < LEFT_OVER_S:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


class _ForkServer:
    def __init__(self, requests: socket.socket, folder: Path, parent: int) -> None:
        self._requests = requests
        self._folder = folder
        self._parent = parent
        self._pids: set[int] = set()

    def serve(self) -> None:
        gc.freeze()  # what is imported stays, and its pages stay shared
        self._requests.settimeout(PARENT_CHECK_S)
        while (asked := self._next_request()) is not None:
            request, descriptors = asked
            if "start" in request:
                self._start(request, descriptors[0])
            else:
                self._stop(request)

    def kill_all(self) -> None:
        for pid in tuple(self._pids):
            self._kill(pid)

    def _next_request(self) -> tuple[dict[str, object], list[int]] | None:
        received, descriptors = b"", list[int]()
        while not received.endswith(b"\n"):
            try:
                piece, found, _, _ = socket.recv_fds(self._requests, _LINE_MAX, 1)
            except TimeoutError:
                if os.getppid() != self._parent:
                    return None
                if self._pids:
                    import_module("console.app")  # nothing else to do: later daemons have it
                continue
            except OSError:
                return None
            if not piece:
                return None
            received += piece
            descriptors += found
        return json.loads(received), descriptors

    def _start(self, request: Mapping[str, object], descriptor: int) -> None:
        folder, properties = request["start"], request["properties"]
        assert isinstance(folder, str)
        assert isinstance(properties, dict)
        server_pid = os.getpid()
        pid = os.fork()
        if not pid:
            self._requests.close()
            _run(Path(folder), properties, socket.socket(fileno=descriptor), server_pid)
        os.close(descriptor)
        self._pids.add(pid)
        self._answer({"id": request["id"], "pid": pid})

    def _stop(self, request: Mapping[str, object]) -> None:
        pid, folder = request["stop"], request["folder"]
        assert isinstance(pid, int)
        assert isinstance(folder, str)
        if pid in self._pids:
            self._kill(pid)
        self._answer({"id": request["id"], "stopped": pid})
        if Path(folder).parent == self._folder:
            shutil.rmtree(folder, ignore_errors=True)

    def _kill(self, pid: int) -> None:
        """Nobody needs its data any more, so it is not stopped but killed. It is our child."""
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self._pids.discard(pid)

    def _answer(self, answer: Mapping[str, object]) -> None:
        with suppress(OSError):  # the test run is gone: the next read says so
            self._requests.sendall(json.dumps(answer).encode() + b"\n")


def _run(
    folder: Path, properties: Mapping[str, str], channel: socket.socket, server_pid: int
) -> NoReturn:
    """The daemon, in the forked process. Its exit code is that of `rollcall serve`."""
    exit_code = 1
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != server_pid:
                os._exit(exit_code)
        log = os.open(folder / DAEMON_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        gc.unfreeze()
        gc.disable()  # as `rollcall serve`: Daemon.load turns it on again
        try:
            config = _config(folder, properties)
        except ConfigError as refused:
            print(f"rollcall: {refused}", file=sys.stderr, flush=True)
            exit_code = 2
        else:
            control = Control(channel)
            exit_code = run_daemon(config, open_console, announce=control.start)
    except BaseException:  # noqa: BLE001 - the log is where it can be read; nothing is above
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(exit_code)


def _config(folder: Path, properties: Mapping[str, str]) -> Config:
    """From the properties alone: the environment of the tests is not the daemon's."""
    settings: list[Setting] = [
        given("log.dirs", [str(folder / "data")], "rollcall_factory"),
        *(given(name, value, "rollcall_factory") for name, value in properties.items()),
    ]
    return load_config(command_line=settings)
