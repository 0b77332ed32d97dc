"""Transactions: records count from their commit marker on, and never if aborted or still open."""

from collections.abc import Sequence

import pytest

from storage.api import Record
from storage.batch.record_batch import BadRecords, encode_batch
from storage.log.transactions import CommittedRecords
from tests.transfer.given import marker, transactional


def plain(records: Sequence[Record], base_offset: int) -> bytes:
    return encode_batch(records, base_offset, 1)


def keyed(key: str, value: str | None) -> Record:
    return Record(key.encode(), None if value is None else value.encode())


def taken(log: CommittedRecords, batch: bytes) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in log.take(batch)]


def test_a_plain_record_counts_at_once() -> None:
    assert taken(CommittedRecords(), plain([keyed("k", "1")], 0)) == [(b"k", b"1")]


def test_a_transaction_counts_from_its_commit_on() -> None:
    log = CommittedRecords()
    assert taken(log, transactional([keyed("a", "1"), keyed("b", "2")], 0, 7)) == []
    assert taken(log, transactional([keyed("a", "3")], 2, 7)) == []
    assert [held.record.offset for held in log.withheld] == [1, 2]
    assert taken(log, marker(3, 7, commits=True)) == [(b"b", b"2"), (b"a", b"3")]
    assert list(log.withheld) == []
    assert (log.committed, log.committed_records) == (1, 2)


def test_an_aborted_transaction_never_counts() -> None:
    log = CommittedRecords()
    log.take(transactional([keyed("a", "1")], 0, 7))
    assert taken(log, marker(1, 7, commits=False)) == []
    assert (log.aborted, log.aborted_records, log.committed) == (1, 1, 0)
    # The producer's next transaction stands for itself.
    log.take(transactional([keyed("a", "2")], 2, 7))
    assert taken(log, marker(3, 7, commits=True)) == [(b"a", b"2")]


def test_an_open_transaction_is_withheld() -> None:
    log = CommittedRecords()
    log.take(transactional([keyed("a", "1")], 0, 7))
    assert [(held.producer_id, held.record.key) for held in log.withheld] == [(7, b"a")]


def test_producers_do_not_end_each_others_transactions() -> None:
    log = CommittedRecords()
    log.take(transactional([keyed("a", "1")], 0, 7))
    log.take(transactional([keyed("b", "2")], 1, 8))
    assert taken(log, marker(2, 8, commits=True)) == [(b"b", b"2")]
    assert taken(log, marker(3, 7, commits=False)) == []


@pytest.mark.parametrize("value", ["new", None])
def test_a_later_plain_record_wins_over_an_earlier_one_that_commits_after_it(
    value: str | None,
) -> None:
    log = CommittedRecords()
    log.take(transactional([keyed("a", "old"), keyed("b", "2")], 0, 7))
    log.take(plain([keyed("a", value)], 2))
    assert taken(log, marker(3, 7, commits=True)) == [(b"b", b"2")]


def test_of_two_transactions_the_later_record_wins_not_the_later_marker() -> None:
    log = CommittedRecords()
    log.take(transactional([keyed("a", "first")], 0, 7))
    log.take(transactional([keyed("a", "second")], 1, 8))
    assert taken(log, marker(2, 8, commits=True)) == [(b"a", b"second")]
    assert taken(log, marker(3, 7, commits=True)) == []


def test_an_earlier_record_that_commits_first_leaves_the_later_one_alone() -> None:
    log = CommittedRecords()
    log.take(transactional([keyed("a", "first")], 0, 7))
    log.take(transactional([keyed("a", "second")], 1, 8))
    assert taken(log, marker(2, 7, commits=True)) == [(b"a", b"first")]
    assert taken(log, marker(3, 8, commits=True)) == [(b"a", b"second")]


def test_a_marker_without_records_says_nothing() -> None:
    log = CommittedRecords()
    assert taken(log, marker(0, 7, commits=True)) == []
    assert (log.committed, log.aborted) == (0, 0)


def test_a_batch_that_lies_is_refused() -> None:
    batch = bytearray(plain([keyed("k", "1")], 0))
    batch[61] = 0x7F
    with pytest.raises(BadRecords):
        CommittedRecords().take(bytes(batch))
