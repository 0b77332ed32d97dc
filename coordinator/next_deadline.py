"""When does time have to be looked at next? The nearest deadline of all shards, never too late.

Filing a deadline lowers the alarm; a tick sets it anew from what is left. A deadline that was
cancelled meanwhile rings in vain once, which is cheaper than to look for the next one at each turn.
"""


class Alarm:
    __slots__ = ("at_ms",)

    def __init__(self) -> None:
        self.at_ms: int | None = None

    def lower(self, deadline_ms: int) -> None:
        if self.at_ms is None or deadline_ms < self.at_ms:
            self.at_ms = deadline_ms
