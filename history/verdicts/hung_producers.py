"""Hung producers: whose open transaction keeps read_committed consumers from going on?

A consumer with isolation.level=read_committed reads up to the last stable offset of a partition:
the first record of the oldest transaction that is open there. A producer that neither commits nor
aborts stops it for as long as its transaction may last. A transaction that only the partition
knows, and not its coordinator, is never ended by anybody (KIP-664: hanging).
Pure, as the detectors of groups.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from history.verdicts.model import VERDICT_NAMES_MAX, Verdict, VerdictKind
from seams.text import duration, first_of, instant

_PREPARED: Final = ("PrepareCommit", "PrepareAbort")
_NO_MARKER: Final = (
    "The marker is written again until the partition takes it. Look for the partition in the "
    "daemon's log: its disk may have failed, or it may have refused the marker."
)


class BlockedPartition(NamedTuple):
    """A partition whose last stable offset is the first record of this producer's transaction."""

    topic: str
    partition: int
    last_stable_offset: int
    high_watermark: int
    producer_id: int
    producer_epoch: int
    since_ms: int
    """Since when the last stable offset has not moved, as far as was observed."""


class KnownTransaction(NamedTuple):
    """What the transaction coordinator knows of a transaction that is not completed."""

    transactional_id: str
    state: str
    started_at_ms: int
    timeout_ms: int
    client_id: str = ""
    client_host: str = ""

    @property
    def timeout_at_ms(self) -> int:
        return self.started_at_ms + self.timeout_ms


def hung_producers(
    blocked: Iterable[BlockedPartition],
    transactions: Mapping[int, KnownTransaction],
    limit_ms: int,
    now_ms: int,
) -> list[Verdict]:
    """A verdict for each producer whose transaction has stopped a partition for this long.

    `transactions` are those that are not completed, by producer id.
    """
    by_producer: dict[int, list[BlockedPartition]] = {}
    for each in blocked:
        if now_ms - each.since_ms >= limit_ms:
            by_producer.setdefault(each.producer_id, []).append(each)
    return [
        _verdict(sorted(partitions), transactions.get(producer_id), now_ms)
        for producer_id, partitions in sorted(by_producer.items())
    ]


def _verdict(
    partitions: list[BlockedPartition], known: KnownTransaction | None, now_ms: int
) -> Verdict:
    first = partitions[0]
    since_ms = min(each.since_ms for each in partitions)
    waiting = sum(each.high_watermark - each.last_stable_offset for each in partitions)
    names = [f"{each.topic}-{each.partition}" for each in partitions[:VERDICT_NAMES_MAX]]
    stopped = (
        f"the last stable offset of {first_of(names, VERDICT_NAMES_MAX, len(partitions))} "
        f"has not moved for {duration(now_ms - since_ms)}: {waiting} records wait for consumers "
        "with read_committed"
    )
    whose, remedy = _unknown(first) if known is None else _known(first, known, now_ms)
    return Verdict(
        "",
        VerdictKind.HUNG_PRODUCER,
        f"producer {first.producer_id}" if known is None else known.transactional_id,
        f"{whose}, and {stopped}",
        remedy,
        {
            "transactional_id": None if known is None else known.transactional_id,
            "producer_id": first.producer_id,
            "producer_epoch": first.producer_epoch,
            "state": None if known is None else known.state,
            "is_hanging": known is None,
            "client_id": None if known is None else known.client_id or None,
            "host": None if known is None else known.client_host or None,
            "started_at_ms": None if known is None else known.started_at_ms,
            "timeout_at_ms": None if known is None else known.timeout_at_ms,
            "stopped_since_ms": since_ms,
            "waiting_records": waiting,
            "partitions": [
                {
                    "partition": f"{each.topic}-{each.partition}",
                    "last_stable_offset": each.last_stable_offset,
                    "high_watermark": each.high_watermark,
                }
                for each in partitions[:VERDICT_NAMES_MAX]
            ],
            "partitions_total": len(partitions),
        },
    )


def _known(first: BlockedPartition, known: KnownTransaction, now_ms: int) -> tuple[str, str]:
    client = known.client_id
    if known.client_host:
        client = f"{client or 'a client'} at {known.client_host.lstrip('/')}"
    whose = f"The transaction of {known.transactional_id} (producer {first.producer_id}"
    whose += f", {client})" if client else ")"
    if known.state in _PREPARED:
        return f"{whose} is {known.state}, but a partition has not taken its marker", _NO_MARKER
    left_ms = known.timeout_at_ms - now_ms
    ends = f"in {duration(left_ms)}, {instant(known.timeout_at_ms)}" if left_ms > 0 else "now"
    remedy = (
        "Check the producer: it may wait for something between two sends, or it has died. The "
        f"transaction times out {ends} (transaction.timeout.ms); a shorter timeout would end it "
        "sooner. A new producer with the same transactional.id aborts it at once."
    )
    return f"{whose} has been open since {instant(known.started_at_ms)}", remedy


def _unknown(first: BlockedPartition) -> tuple[str, str]:
    whose = f"Producer {first.producer_id} has a transaction that its coordinator does not know"
    remedy = (
        "Nobody will end it. Abort it: kafka-transactions.sh abort --topic "
        f"{first.topic} --partition {first.partition} --start-offset {first.last_stable_offset}"
    )
    return whose, remedy
