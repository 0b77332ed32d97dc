"""Fault log: rate limit for log lines about clients, one per cause, host and interval.

A client in a loop of malformed requests, or of requests that hit a bug of ours, would
otherwise fill the disk with one line each. The others are counted. The table is bounded:
when it is full the oldest entry is dropped, which costs at worst one line too many.
"""

from collections import OrderedDict
from typing import Final

from broker.observe.events import ConnectionDropped, PartFailed, PeerFault, RequestFailed

INTERVAL_MS: Final = 10_000
ENTRIES_MAX: Final = 1_024


class FaultLog:
    """Decides which faults of clients, and which of ours that they met, get a line."""

    def __init__(self) -> None:
        self.counts: dict[PeerFault, int] = dict.fromkeys(PeerFault, 0)
        self._last: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    def peer_fault(
        self, fault: PeerFault, host: str, peer: str, detail: str, now_ms: int
    ) -> ConnectionDropped | None:
        """The event to log, or None if one of this fault and host was logged just now."""
        self.counts[fault] += 1
        suppressed = self._suppressed(fault, host, now_ms)
        return None if suppressed is None else ConnectionDropped(fault, peer, detail, suppressed)

    def request_failure(
        self, api_name: str, api_version: int, host: str, peer: str, error: Exception, now_ms: int
    ) -> RequestFailed | None:
        """The same for a request that failed by a bug of ours."""
        suppressed = self._suppressed(f"{api_name} {type(error).__name__}", host, now_ms)
        if suppressed is None:
            return None
        return RequestFailed(api_name, api_version, peer, error, suppressed)

    def part_failure(self, part: str, host: str, error: Exception, now_ms: int) -> PartFailed:
        """The same for what failed outside of any request; each is counted, not each is logged."""
        suppressed = self._suppressed(f"{part} {type(error).__name__}", host, now_ms)
        if suppressed is None:
            return PartFailed(part, error, is_logged=False)
        return PartFailed(part, error, suppressed)

    def _suppressed(self, cause: str, host: str, now_ms: int) -> int | None:
        """How many got no line since the last one; None while this one gets none either."""
        key = (cause, host)
        logged_ms, suppressed = self._last.get(key, (now_ms - INTERVAL_MS, 0))
        if now_ms - logged_ms < INTERVAL_MS:
            self._last[key] = (logged_ms, suppressed + 1)
            return None
        self._last[key] = (now_ms, 0)
        self._last.move_to_end(key)
        if len(self._last) > ENTRIES_MAX:
            self._last.popitem(last=False)
        return suppressed
