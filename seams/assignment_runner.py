"""Assignment runner: computes a large target assignment while the event loop serves clients.

The daemon's is a thread (broker/loop/assignment_thread.py). Without one, and in tests that do not
ask for it, every assignment is made in its turn.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from seams.now import Now

T = TypeVar("T")


class AssignmentRunner(Protocol):
    def submit(self, work: Callable[[], T], done: Callable[[T | Exception, Now], None]) -> None:
        """Run `work` off the loop, then `done` on it with the result or what was raised."""
