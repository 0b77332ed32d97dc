"""Hung producers: whose open transaction stops read_committed consumers, and for how long yet."""

import json

from history.verdicts.hung_producers import BlockedPartition, KnownTransaction, hung_producers
from history.verdicts.model import Verdict, VerdictKind

LIMIT_MS = 120_000
BEGAN_MS = 1_790_000_000_000
NOW_MS = BEGAN_MS + 300_000
ONGOING = KnownTransaction("payments-1", "Ongoing", BEGAN_MS, 900_000, "app", "/10.0.0.1")


def blocked(
    partition: int = 0, producer_id: int = 14, since_ms: int = BEGAN_MS, topic: str = "orders"
) -> BlockedPartition:
    return BlockedPartition(topic, partition, 120, 3_120, producer_id, 3, since_ms)


def found(*partitions: BlockedPartition, known: KnownTransaction | None = ONGOING) -> list[Verdict]:
    transactions = {} if known is None else {14: known}
    return hung_producers(partitions, transactions, LIMIT_MS, NOW_MS)


def test_an_open_transaction_is_named_with_its_client_and_its_timeout() -> None:
    (verdict,) = found(blocked(), blocked(2))
    assert (verdict.kind, verdict.group_id) == (VerdictKind.HUNG_PRODUCER, "")
    assert verdict.subject == "payments-1"
    for words in ("payments-1", "app at 10.0.0.1", "orders-0, orders-2", "5 min", "6000 records"):
        assert words in verdict.summary
    assert "times out in 10 min" in verdict.remedy
    assert verdict.evidence["timeout_at_ms"] == BEGAN_MS + 900_000
    assert verdict.evidence["is_hanging"] is False
    assert json.dumps(dict(verdict.evidence))


def test_before_the_limit_it_is_a_transaction_like_any_other() -> None:
    assert found(blocked(since_ms=NOW_MS - LIMIT_MS + 1)) == []
    assert len(found(blocked(since_ms=NOW_MS - LIMIT_MS))) == 1


def test_what_the_coordinator_does_not_know_has_to_be_aborted_by_hand() -> None:
    (verdict,) = found(blocked(), known=None)
    assert verdict.subject == "producer 14"
    assert "--topic orders --partition 0 --start-offset 120" in verdict.remedy
    assert verdict.evidence["is_hanging"] is True
    assert verdict.evidence["transactional_id"] is None


def test_a_decided_transaction_waits_for_its_partition_and_not_for_its_producer() -> None:
    (verdict,) = found(blocked(), known=ONGOING._replace(state="PrepareCommit"))
    assert "has not taken its marker" in verdict.summary
    assert "transactional.id" not in verdict.remedy


def test_a_transaction_whose_time_is_up_ends_now() -> None:
    (verdict,) = found(blocked(), known=ONGOING._replace(timeout_ms=60_000))
    assert "times out now" in verdict.remedy


def test_each_producer_has_its_verdict_and_many_partitions_are_counted() -> None:
    many = [blocked(partition) for partition in range(30)]
    verdicts = found(*many, blocked(0, producer_id=15, topic="other"))
    assert [verdict.subject for verdict in verdicts] == ["payments-1", "producer 15"]
    assert "and 20 more" in verdicts[0].summary
    assert verdicts[0].evidence["partitions_total"] == 30
