"""Commit rates: commits per second of each client, for the commit_storm verdict.

Called for every commit, so it costs two lookups. Between two rounds of the sampler, all commits of
one member are one entry: their number, and what the second of them weighed; one commit in an
interval makes no storm. The commits themselves are not kept: ten thousand would take megabytes, and
10 ms of the event loop to free.
Bounded: clients beyond the limit are not counted.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator.offsets.events import OffsetsCommitted
from history.verdicts.model import CommitRate

CLIENTS_MAX: Final = 50_000
"""Clients counted in one interval."""

CLIENTS_PER_STEP: Final = 500
"""Clients whose rates are computed before others may run: less than half a millisecond."""

RECORD_BYTES: Final = 52
"""Of one committed partition in the log, without its names and metadata: key, value, framing."""

COMMIT_BATCH_BYTES: Final = 61


class _CommitSize(NamedTuple):
    """What one commit of a client weighs, as the estimate for all in the interval."""

    client_id: str
    client_host: str
    partitions: int
    size: int  # bytes in the log


class CommitMeter:
    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._sizes: dict[tuple[str, str], _CommitSize] = {}
        self._since_ms = 0
        self._rates: dict[str, list[CommitRate]] = {}

    def __call__(self, event: OffsetsCommitted) -> None:
        key = (event.group_id, event.member_id)
        count = self._counts.get(key)
        if count is not None:
            self._counts[key] = count + 1
            if count == 1:
                self._sizes[key] = _size_of(event)
        elif len(self._counts) < CLIENTS_MAX:
            self._counts[key] = 1

    def rates_of(self, group_id: str) -> list[CommitRate]:
        """Of the last whole interval; only those above the limit."""
        return self._rates.get(group_id, [])

    @property
    def busy(self) -> int:
        """Groups with a client above the limit."""
        return len(self._rates)

    def end_interval(self, now_ms: int, least_per_second: float) -> Iterator[None]:
        """Begin the next interval at once; then keep the rates of at least `least_per_second`.

        Others may run at each step: a step frees the counts of some clients as well.
        """
        elapsed_ms = now_ms - self._since_ms
        counts, sizes = self._counts, self._sizes
        self._counts, self._sizes, self._since_ms = {}, {}, now_ms
        rates: dict[str, list[CommitRate]] = {}
        is_first = not 0 < elapsed_ms < now_ms  # it has no start
        while counts:
            for _ in range(min(CLIENTS_PER_STEP, len(counts))):
                key, count = counts.popitem()
                committed = sizes.pop(key, None)
                if committed is None or is_first:
                    continue
                rate = count * 1000 / elapsed_ms
                if rate >= least_per_second:
                    group_id, member_id = key
                    client_id, client_host, partitions, size = committed
                    rates.setdefault(group_id, []).append(
                        CommitRate(
                            member_id or client_id,
                            rate,
                            partitions,
                            rate * size,
                            client_id,
                            client_host,
                        )
                    )
            yield None
        self._rates = rates


def _size_of(event: OffsetsCommitted) -> _CommitSize:
    partitions, size = 0, COMMIT_BATCH_BYTES
    for topic, commits in event.offsets:
        partitions += len(commits)
        size += len(commits) * (RECORD_BYTES + len(event.group_id) + len(topic))
        size += sum([len(commit.metadata) for commit in commits.values()])
    return _CommitSize(event.client_id, event.client_host, partitions, size)
