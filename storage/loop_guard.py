"""Loop guard: keeps the event loop's thread from waiting for the disk.

After a start the event loop's thread opens, writes, syncs, renames and removes no files: a slow
disk would block every client. `RealDisk` asks here before each such operation. In tests an
operation on that thread raises AssertionError; in production it is counted and done. Reading an
open file, and asking whether a file exists, is allowed.
"""

from threading import get_ident

_NO_THREAD = 0


class LoopGuard:
    """Allows everything before `begin`."""

    __slots__ = ("_thread_id", "is_strict", "operations")

    def __init__(self, *, is_strict: bool = False) -> None:
        self.is_strict = is_strict
        self.operations = 0  # on that thread so far
        self._thread_id = _NO_THREAD

    def begin(self) -> None:
        """From here on the calling thread must not wait for the disk."""
        self._thread_id = get_ident()

    def end(self) -> None:
        self._thread_id = _NO_THREAD

    def check(self, operation: str, path: str) -> None:
        if get_ident() != self._thread_id:
            return
        self.operations += 1
        if self.is_strict:
            raise AssertionError(f"{operation} {path} on the event loop's thread")


NO_GUARD = LoopGuard()
"""Of a process without an event loop."""
