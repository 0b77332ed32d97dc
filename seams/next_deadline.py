"""Next deadline: when the coordinator has to be ticked next, over all shards.

Scheduling a deadline lowers it; a tick computes it again from what is left. A cancelled deadline
causes one tick that finds nothing to do, which is cheaper than a search for the next one after
every turn.
"""


class NextDeadline:
    __slots__ = ("at_ms",)

    def __init__(self) -> None:
        self.at_ms: int | None = None

    def lower(self, deadline_ms: int) -> None:
        if self.at_ms is None or deadline_ms < self.at_ms:
            self.at_ms = deadline_ms
