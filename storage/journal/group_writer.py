"""Group writer: the usual flush in C, in the flusher's thread but without the interpreter.

A flush in Python takes the interpreter lock after each write and sync, and the event loop waits for
the flusher in turn. In the compiled build the loop prepares the usual flush and posts it, and the
flusher's thread, which rests in `wait`, carries it out (group_writer.c). Then it reports to the
loop through a descriptor. `journal.py` decides what is usual; the rest is flushed in Python, by the
same thread, as everything is on a disk that is not the real one.
"""

import os
from collections.abc import Sequence
from typing import Final, Protocol

from storage.api import SyncFailed
from storage.disk import File, RealFile

try:
    from rollcall_group_writer import GroupWriter as _GroupWriter
except ImportError:
    _GroupWriter = None

Write = tuple[int, bytes, int]
"""(descriptor, content, position)"""

SYNC: Final = -1
"""In place of the index of a write: the sync failed."""


class GroupWriter(Protocol):
    """What group_writer.c has. Only the flusher's thread calls `wait`."""

    def wait(self, timeout_s: float, /) -> bool:
        """Rest, and write what is posted; False if the time is over. Negative: no limit."""

    def wake(self) -> None:
        """End `wait`, or the next one, after the flush that it carries out."""

    def forget_wake(self) -> None: ...

    def claim(self) -> bool:
        """True: the thread rests, and does not return from `wait` before `post` or `release`."""

    def release(self) -> None: ...

    def post(self, writes: Sequence[Write], is_synced: bool, /) -> None:  # noqa: FBT001
        """Write all in this order, the first one synced. Needs a claim, and ends it."""

    def collect(self) -> tuple[float, int, int] | None:
        """Once, when it is done: seconds of writing and syncing the first one, errno or 0, and the
        index of the write that failed."""


def group_writer(report: int) -> GroupWriter | None:
    """One that reports by writing to this descriptor; None in pure Python."""
    return None if _GroupWriter is None else _GroupWriter(report)


def descriptor(file: File | None) -> int:
    """Of a file on the real disk; -1: only Python can write to this one."""
    # Not a subclass of it: who makes one wants to see each write.
    return file.fd if type(file) is RealFile else -1


def write_failure(error: int, failed_at: int, path: str, size: int) -> OSError:
    """What the flush in Python would have raised."""
    words = os.strerror(error)
    if failed_at == SYNC:
        return SyncFailed(error, f"fsync failed: {words}")
    return OSError(error, f"{words} (writing {size} bytes)", path)
