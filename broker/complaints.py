"""How often may one bad client be in the log? Once per cause, host and interval; the rest is
counted.

A client in a loop of malformed requests would otherwise fill the disk with one line each. The
table is bounded: when it is full the oldest entry goes, which costs at worst a line too many.
"""

from collections import OrderedDict
from typing import Final

from broker.events import ConnectionDropped, PeerFault

INTERVAL_MS: Final = 10_000
ENTRIES_MAX: Final = 1_024


class Complaints:
    """Decides which faults get a line; counts all of them by cause."""

    def __init__(self) -> None:
        self.counts: dict[PeerFault, int] = dict.fromkeys(PeerFault, 0)
        self._last: OrderedDict[tuple[PeerFault, str], tuple[int, int]] = OrderedDict()

    def about(
        self, fault: PeerFault, host: str, peer: str, detail: str, now_ms: int
    ) -> ConnectionDropped | None:
        """The event to tell, or None when this host was complained about just now."""
        self.counts[fault] += 1
        key = (fault, host)
        told_ms, suppressed = self._last.get(key, (now_ms - INTERVAL_MS, 0))
        if now_ms - told_ms < INTERVAL_MS:
            self._last[key] = (told_ms, suppressed + 1)
            return None
        self._last[key] = (now_ms, 0)
        self._last.move_to_end(key)
        if len(self._last) > ENTRIES_MAX:
            self._last.popitem(last=False)
        return ConnectionDropped(fault, peer, detail, suppressed)
