"""I/O executor: runs disk work off the event loop, in order, and hands each result back on it.

The data plane decides on the loop's thread and gives what opens, writes, syncs, renames or removes
files to an executor. Work of one executor runs one after the other, in the order of `submit`; its
`done` runs on the loop's thread, in the same order. So whatever must not be interleaved goes to one
executor. `broker/loop/io_thread.py` is the daemon's; `InlineIo` serves tests and the simulator.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

T = TypeVar("T")


class IoExecutor(Protocol):
    """A queue of disk work with one worker."""

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Run `work` off the loop, then `done` on it with the result or what was raised."""

    def pause(self) -> None:
        """For long work without waits: let the loop's thread have its turn."""


class InlineIo:
    """Runs the work at once, in the caller's thread."""

    __slots__ = ()

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        result: T | Exception
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - `done` decides what becomes of it
            result = error
        done(result)

    def pause(self) -> None:
        """Nobody else waits."""


INLINE: Final = InlineIo()
