"""Transaction watch: which producers keep the last stable offset of a partition from moving?

Looks at every partition in the rounds that sample lag. It notes since when a partition that has
records to read has had the same first unstable offset; history/verdicts/hung_producers.py finds
the verdicts. Each new one and each cleared one is an event, as those on groups are. Nothing is
written to a history: the histories are those of groups.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from broker.lag.verdict_watch import ActiveVerdict
from broker.observe.events import ShellEvent, VerdictCleared, VerdictFound
from history.verdicts.hung_producers import BlockedPartition, KnownTransaction, hung_producers
from history.verdicts.model import VerdictKind
from protocol.names import ProducerId
from seams.now import Now
from storage.api import TopicPartition
from transactions.transaction import OpenTransaction

PARTITIONS_WATCHED_MAX: Final = 10_000
"""Partitions with an open transaction that are looked at in one round, about 1 µs each. The round
runs in one piece; a producer that stops one partition usually stops many."""


class OpenPartition(NamedTuple):
    """A partition with an open transaction: the oldest, and its producer."""

    topic_partition: TopicPartition
    first_unstable_offset: int
    high_watermark: int
    producer_id: ProducerId
    producer_epoch: int


class TransactionWatch:
    """On the event loop."""

    def __init__(
        self,
        open_partitions: Callable[[], Iterable[OpenPartition]],
        open_transactions: Callable[[], Iterable[OpenTransaction]],
        limit_ms: int,
        observe: Callable[[ShellEvent], None],
    ) -> None:
        self._open_partitions = open_partitions
        self._open_transactions = open_transactions
        self._limit_ms = limit_ms
        self._observe = observe
        self._stopped: dict[TopicPartition, tuple[int, int]] = {}  # offset, since when
        self._active: dict[str, ActiveVerdict] = {}  # by subject
        self.found = 0

    def active(self) -> Iterator[ActiveVerdict]:
        """The verdicts that hold; the oldest first."""
        return iter(sorted(self._active.values(), key=lambda active: active.since_ms))

    def inspect(self, now: Now) -> None:
        """Once in each of the sampler's rounds."""
        blocked = self._blocked(now.wall_ms)
        if not blocked and not self._active:
            return
        known = {
            int(each.producer_id): KnownTransaction(
                each.transactional_id,
                each.state.wire_name,
                each.started_at_ms,
                each.timeout_ms,
                each.client_id,
                each.client_host,
            )
            for each in self._open_transactions()
        }
        verdicts = hung_producers(blocked, known, self._limit_ms, now.wall_ms)
        before, self._active = self._active, {}
        for verdict in verdicts:
            held = before.pop(verdict.subject, None)
            since_ms = now.wall_ms if held is None else held.since_ms
            self._active[verdict.subject] = ActiveVerdict(verdict, since_ms)
            if held is None:
                self.found += 1
                self._observe(VerdictFound(verdict))
        for ended in before.values():
            self._observe(VerdictCleared(ended.verdict, now.wall_ms - ended.since_ms))

    def _blocked(self, now_ms: int) -> list[BlockedPartition]:
        before, self._stopped = self._stopped, {}
        blocked: list[BlockedPartition] = []
        for each in islice(self._open_partitions(), PARTITIONS_WATCHED_MAX):
            key, offset = each.topic_partition, each.first_unstable_offset
            known = before.get(key)
            since_ms = known[1] if known is not None and known[0] == offset else now_ms
            self._stopped[key] = offset, since_ms
            blocked.append(
                BlockedPartition(
                    key.topic,
                    key.partition,
                    offset,
                    each.high_watermark,
                    each.producer_id,
                    each.producer_epoch,
                    since_ms,
                )
            )
        return blocked

    def counts(self) -> dict[str, int]:
        """How many verdicts hold now, by kind."""
        return {VerdictKind.HUNG_PRODUCER.value: len(self._active)}
