"""Audit file: JSON lines that a thread appends to `rollcall.audit.log`.

A disk that is slow or full delays no request: beyond a bound lines are dropped and counted. A
failure is reported once until writing works again. A file that was moved away or deleted is made
again, so log rotation needs no signal (SIGHUP stops the daemon).
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import Final

QUEUED_LINES_MAX: Final = 10_000
"""Lines that wait for the thread; one is at most some 2 kB."""

WRITTEN_AT_ONCE_MAX: Final = 500

_OPEN_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
"""O_NONBLOCK: a named pipe that has no reader is an error, and blocks nothing."""


class AuditFile:
    """`write` belongs to the loop's thread. `lost`: lines that are nowhere."""

    def __init__(self, path: str, report: Callable[[str | None], None]) -> None:
        """`report`, called in the thread: why nothing can be written, or None: it works again."""
        self.lost = 0
        self._path = path
        self._report = report
        self._queue: Queue[bytes | None] = Queue(QUEUED_LINES_MAX)
        self._handle: int | None = None
        self._has_failed = False
        self._is_torn = False  # the last line has no end
        self._thread = Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue one line without its end; never blocks."""
        try:
            self._queue.put_nowait(line)
        except Full:
            self.lost += 1

    def close(self, timeout_s: float) -> None:
        """Write what is queued; a disk that hangs is not waited for any longer."""
        with suppress(Full):
            self._queue.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        is_open = True
        while is_open:
            lines = [self._queue.get()]
            with suppress(Empty):
                while len(lines) < WRITTEN_AT_ONCE_MAX:
                    lines.append(self._queue.get_nowait())
            is_open = None not in lines
            wanted = [line for line in lines if line is not None]
            if wanted:
                self.append(wanted)
        self._close_handle()

    def append(self, lines: list[bytes]) -> None:
        """In the thread: write these lines, or count them."""
        data = b"".join(line + b"\n" for line in lines)
        try:
            handle = self._opened()
            if self._is_torn:
                data = b"\n" + data
            while data:
                written = os.write(handle, data)
                self._is_torn = written < len(data)
                data = data[written:]
        except OSError as failure:
            self.lost += data.count(b"\n")
            self._close_handle()
            if not self._has_failed:
                self._has_failed = True
                self._report(str(failure))
            return
        if self._has_failed:
            self._has_failed = False
            self._report(None)

    def _opened(self) -> int:
        """The file that is at the path now."""
        if self._handle is not None:
            own = os.fstat(self._handle)
            with suppress(FileNotFoundError):
                there = Path(self._path).stat()
                if (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino):
                    return self._handle
            self._close_handle()
            self._is_torn = False
        self._handle = os.open(self._path, _OPEN_FLAGS, 0o600)
        return self._handle

    def _close_handle(self) -> None:
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)
            self._handle = None
