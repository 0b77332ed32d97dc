"""Processes: the drill's own children, and the only place that signals any process.

A signal goes through the `Popen` object of a child that this module started and has not reaped, so
a process id that the system gave to another process meanwhile is never signalled.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Final

from seams.operator_error import WrongInput

STOP_WITHIN_S: Final = 15.0


class CannotStart(WrongInput):
    """A program that the drill needs does not start."""


class Child:
    """One process; its lines go to `hear`, which a thread calls, and its errors to a file."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        hear: Callable[[str], None],
        ended: Callable[[], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Must be called in the main thread: the child dies with the thread that starts it.

        Raises CannotStart.
        """
        guarded = [sys.executable, "-P", "-m", "drills.guarded", str(os.getpid()), *command]
        path = os.pathsep.join(filter(None, sys.path))
        try:
            with log.open("ab") as errors:
                self._process = subprocess.Popen(
                    guarded,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, **(environment or {}), "PYTHONPATH": path},
                )
        except OSError as error:
            raise CannotStart(f"{command[0]}: {error.strerror}") from None
        self._hear = hear
        self._ended = ended
        self._is_stalled = False
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._hear(line.decode("utf-8", "replace"))
        self._process.wait()
        self._ended()

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def stall(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        self._is_stalled = True

    def resume(self) -> None:
        self._is_stalled = False
        self._process.send_signal(signal.SIGCONT)

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            return  # it has ended

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, timeout_s: float = STOP_WITHIN_S) -> int | None:
        """Its exit code, once all its lines were heard; None if it runs on after the time."""
        try:
            exit_code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(timeout_s)
        return exit_code

    def close(self) -> None:
        """End it, however it is."""
        if self.exit_code is None:
            if self._is_stalled:
                self.resume()
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and (pipe is self._process.stdin or not self._reader.is_alive()):
                try:
                    pipe.close()
                except OSError:
                    continue
