"""Next deadline: when a coordinator has to be ticked next, over all shards.

Scheduling a deadline lowers it, and tells the ticker if that made it earlier; a tick computes it
again from what is left. A cancelled deadline causes one tick that finds nothing to do, which is
cheaper than a search for the next one after every turn.
"""

from collections.abc import Callable


def unwatched() -> None:
    """In place of the ticker's callback while there is no ticker."""


class NextDeadline:
    __slots__ = ("at_ms", "on_earlier")

    def __init__(self) -> None:
        self.at_ms: int | None = None
        self.on_earlier: Callable[[], None] = unwatched

    def watch(self, on_earlier: Callable[[], None]) -> None:
        """`on_earlier` is called whenever the deadline becomes earlier."""
        self.on_earlier = on_earlier

    def lower(self, deadline_ms: int) -> None:
        if self.at_ms is None or deadline_ms < self.at_ms:
            self.at_ms = deadline_ms
            self.on_earlier()
