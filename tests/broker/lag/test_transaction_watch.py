"""Transaction watch: since when a last stable offset has not moved, and what becomes a verdict."""

from broker.lag.transaction_watch import OpenPartition, TransactionWatch
from broker.observe.events import ShellEvent, VerdictCleared, VerdictFound
from protocol.names import ProducerId, TransactionalId
from seams.now import Now
from storage.api import TopicPartition
from transactions.metadata import TransactionState
from transactions.transaction import OpenTransaction

LIMIT_MS = 1_000
KEY = TopicPartition("orders", 0)


class Watched:
    def __init__(self) -> None:
        self.partitions: list[OpenPartition] = []
        self.transactions: list[OpenTransaction] = []
        self.events: list[ShellEvent] = []
        self.watch = TransactionWatch(
            lambda: self.partitions, lambda: self.transactions, LIMIT_MS, self.events.append
        )

    def at(self, ms: int, *partitions: OpenPartition) -> list[str]:
        """A round at this time; whom the verdicts are on."""
        self.partitions = list(partitions)
        self.watch.inspect(Now(ms, ms))
        return [active.verdict.subject for active in self.watch.active()]


def opened(offset: int = 5, producer_id: int = 7) -> OpenPartition:
    return OpenPartition(KEY, offset, 9, ProducerId(producer_id), 0)


def ongoing(producer_id: int = 7) -> OpenTransaction:
    return OpenTransaction(
        TransactionalId("payments"),
        ProducerId(producer_id),
        0,
        TransactionState.ONGOING,
        0,
        60_000,
        frozenset({KEY}),
        "app",
        "/10.0.0.1",
    )


def test_an_offset_that_does_not_move_becomes_a_verdict_and_clears_when_it_does() -> None:
    watched = Watched()
    watched.transactions = [ongoing()]
    assert watched.at(0, opened()) == []
    assert watched.at(999, opened()) == []
    assert watched.at(1_000, opened()) == ["payments"]
    assert watched.at(2_000, opened()) == ["payments"]
    assert [type(event) for event in watched.events] == [VerdictFound]
    assert watched.at(3_000, opened(6)) == []  # the next transaction
    (_, cleared) = watched.events
    assert isinstance(cleared, VerdictCleared)
    assert cleared.lasted_ms == 2_000
    assert watched.watch.counts() == {"hung_producer": 0}


def test_a_transaction_that_no_coordinator_knows_is_named_by_its_producer() -> None:
    watched = Watched()
    watched.transactions = [ongoing(8)]
    watched.at(0, opened())
    assert watched.at(1_000, opened()) == ["producer 7"]
    assert watched.watch.counts() == {"hung_producer": 1}
    assert watched.at(1_100) == []
