"""Loop guard: which thread must not wait for the disk, and did it do so all the same?

After a start the event loop's thread opens, writes, syncs, renames and removes no files: a slow
disk would hold up every client. `RealDisk` asks here before each such operation. In tests one that
is met on that thread is an AssertionError; in production it is counted and done. To read a file
that is open, and to ask whether one exists, is allowed.
"""

from threading import get_ident

_NO_THREAD = 0


class LoopGuard:
    """Forbids nothing before `begin`."""

    __slots__ = ("_thread", "is_strict", "operations")

    def __init__(self, *, is_strict: bool = False) -> None:
        self.is_strict = is_strict
        self.operations = 0  # met on that thread so far
        self._thread = _NO_THREAD

    def begin(self) -> None:
        """From here on the calling thread is not to wait for the disk."""
        self._thread = get_ident()

    def end(self) -> None:
        self._thread = _NO_THREAD

    def check(self, operation: str, path: str) -> None:
        if get_ident() != self._thread:
            return
        self.operations += 1
        if self.is_strict:
            raise AssertionError(f"{operation} {path} on the event loop's thread")


NO_GUARD = LoopGuard()
"""Of a process without an event loop."""
