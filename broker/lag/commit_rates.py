"""Who commits how often? Counted for each client, on the road of every commit: two look-ups each.

Between two rounds of the sampler all commits of a group's member are one entry: their number, and
the last of them, by which their size is judged. Bounded; what is over the bound is not counted.
"""

from typing import Final

from coordinator.offsets.events import OffsetsCommitted
from history.verdicts.model import CommitRate

CLIENTS_MAX: Final = 50_000

RECORD_BYTES: Final = 52
"""Of one committed partition in the log besides its names and metadata: key, value, framing."""

BATCH_BYTES: Final = 61


class CommitMeter:
    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._last: dict[tuple[str, str], OffsetsCommitted] = {}
        self._since_ms = 0
        self._rates: dict[str, list[CommitRate]] = {}

    def __call__(self, event: OffsetsCommitted) -> None:
        key = (event.group_id, event.member_id)
        count = self._counts.get(key)
        if count is not None:
            self._counts[key] = count + 1
        elif len(self._counts) < CLIENTS_MAX:
            self._counts[key] = 1
            self._last[key] = event

    def rates_of(self, group_id: str) -> list[CommitRate]:
        """Of the last whole interval; only those that are worth a look."""
        return self._rates.get(group_id, [])

    @property
    def busy(self) -> int:
        """Groups with a client that is worth a look."""
        return len(self._rates)

    def turn_over(self, now_ms: int, least_per_second: float) -> None:
        """An interval is over: keep the rates of who committed so often, and count anew."""
        elapsed_ms = now_ms - self._since_ms
        counts, last = self._counts, self._last
        self._counts, self._last, self._since_ms = {}, {}, now_ms
        self._rates = {}
        if not 0 < elapsed_ms < now_ms:
            return  # the first interval has no beginning
        for key, count in counts.items():
            rate = count * 1000 / elapsed_ms
            if rate >= least_per_second:
                self._rates.setdefault(key[0], []).append(_rate(last[key], rate))


def _rate(event: OffsetsCommitted, rate: float) -> CommitRate:
    partitions = size = 0
    for topic, commits in event.offsets:
        for commit in commits.values():
            partitions += 1
            size += RECORD_BYTES + len(event.group_id) + len(topic) + len(commit.metadata)
    return CommitRate(
        event.member_id or event.client_id,
        rate,
        partitions,
        rate * (size + BATCH_BYTES),
        event.client_id,
        event.client_host,
    )
