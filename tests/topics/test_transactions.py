"""Transactions in the data plane: what is appended, what a read_committed consumer reads."""

import pytest

from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.names import ErrorCode, TopicName
from storage.api import TopicPartition, UnendedTransaction
from storage.batch.record_batch import read_header
from tests.topics.batches import batch, offsets_of
from tests.topics.held_io import HeldIo
from tests.topics.plane import Plane
from tests.topics.transactions import ADDS, TV1, VERIFIES, Transactions
from topics.settings import TopicSettings


@pytest.fixture
def transactions(plane: Plane) -> Transactions:
    plane.given("a")
    return Transactions(plane)


def aborted_in(transactions: Transactions, offset: int = 0) -> list[tuple[int, int]]:
    data = transactions.read(offset)
    assert data.aborted_transactions is not None
    return [(each.producer_id, each.first_offset) for each in data.aborted_transactions]


# The last stable offset


def test_an_open_transaction_holds_the_last_stable_offset(transactions: Transactions) -> None:
    transactions.plain(b"before")
    transactions.given(b"open")
    transactions.plain(b"behind")
    data = transactions.read()
    assert (data.last_stable_offset, data.high_watermark) == (1, 3)
    assert offsets_of(data.records or b"") == [0]
    assert data.aborted_transactions == ()
    uncommitted = transactions.read(committed=False)
    assert (uncommitted.last_stable_offset, uncommitted.aborted_transactions) == (1, None)
    assert offsets_of(uncommitted.records or b"") == [0, 1, 2]
    for offset in (1, 2, 3):
        waiting = transactions.read(offset)
        assert (waiting.error_code, waiting.records) == (ErrorCode.NONE, b"")
    assert transactions.read(4).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_commit_makes_the_records_visible(transactions: Transactions) -> None:
    transactions.given(b"a", b"b")
    assert transactions.end(commit=True) is ErrorCode.NONE
    data = transactions.read()
    assert (data.last_stable_offset, data.high_watermark) == (3, 3)
    assert transactions.seen() == [b"a", b"b"]
    assert aborted_in(transactions) == []


def test_an_abort_lists_the_transaction(transactions: Transactions) -> None:
    transactions.given(b"a")
    transactions.plain(b"plain")
    assert transactions.end(commit=False) is ErrorCode.NONE
    assert aborted_in(transactions) == [(7, 0)]
    assert transactions.seen() == [b"plain"]
    assert aborted_in(transactions, 3) == []
    # read_uncommitted has it all, the marker too
    assert offsets_of(transactions.read(committed=False).records or b"") == [0, 1, 2]


def test_the_oldest_open_transaction_counts(transactions: Transactions) -> None:
    for producer in (1, 2, 3):
        transactions.given(b"%d" % producer, producer=producer)
    assert transactions.end(commit=True, producer=2) is ErrorCode.NONE
    assert transactions.read().last_stable_offset == 0
    assert transactions.end(commit=False, producer=1) is ErrorCode.NONE
    assert transactions.read().last_stable_offset == 2
    (aborted,) = transactions.plane.log("a").aborted
    assert aborted == (1, 0, 4, 2)  # the last stable offset: where the third began
    assert transactions.end(commit=False, producer=3) is ErrorCode.NONE
    assert transactions.read().last_stable_offset == 6
    assert transactions.seen() == [b"2"]


def test_the_last_stable_offset_is_not_below_the_log_start(transactions: Transactions) -> None:
    transactions.given(b"a")
    transactions.given(b"b", sequence=1)
    transactions.plane.log("a").delete_before(1)
    assert transactions.read(1).last_stable_offset == 1


def test_readers_never_see_a_batch_before_it_is_known_to_be_open(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The appender is another thread: a Fetch may come at any moment of an append."""
    log = transactions.plane.log("a")
    append = log.append
    seen: list[int] = []

    def observed(batches: bytes, now_ms: int) -> int:
        offset = append(batches, now_ms)
        seen.append(transactions.read().last_stable_offset)
        return offset

    monkeypatch.setattr(log, "append", observed)
    transactions.given(b"a")
    transactions.end(commit=False)
    assert seen == [0, 0]  # after the marker is in the log too, until it is listed as aborted
    assert transactions.read().last_stable_offset == 2


def test_a_failed_append_opens_nothing(transactions: Transactions) -> None:
    transactions.plain(b"before")
    transactions.plane.log("a").fail_next = OSError(28, "No space left on device")
    assert transactions.send(b"a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert transactions.read().last_stable_offset == 1


# Fetches that wait


def test_a_marker_wakes_a_fetch_and_open_data_does_not(transactions: Transactions) -> None:
    plane = transactions.plane
    token = plane.park_fetch("a", isolation_level=1)
    transactions.given(b"a")
    transactions.plain(b"behind")
    assert not plane.answered(token)
    transactions.end(commit=True)
    assert offsets_of(plane.fetched(token).records or b"") == [0, 1, 2]


def test_only_bytes_below_the_last_stable_offset_count(transactions: Transactions) -> None:
    plane = transactions.plane
    size = len(transactions.batch(b"a"))
    token = plane.park_fetch("a", isolation_level=1, min_bytes=2 * size)
    transactions.given(b"a", producer=1)
    transactions.given(b"b", producer=2)
    transactions.given(b"c", producer=2, sequence=1)
    transactions.end(commit=True, producer=1)  # stable now: the first batch alone
    assert not plane.answered(token)
    transactions.end(commit=True, producer=2)
    assert plane.answered(token)


def test_an_end_that_was_open_at_the_start_wakes_too(transactions: Transactions) -> None:
    transactions.given(b"a", producer=1)
    transactions.given(b"b", producer=2)
    transactions.restart()
    plane = transactions.plane
    token = plane.park_fetch("a", isolation_level=1)
    assert not plane.answered(token)
    transactions.end(commit=True, producer=1)
    assert offsets_of(plane.fetched(token).records or b"") == [0]


# ListOffsets


def listed(transactions: Transactions, timestamp: int, isolation_level: int = 1) -> tuple[int, int]:
    request = ListOffsetsRequest(
        -1,
        isolation_level,
        (ListOffsetsTopic(TopicName("a"), (ListOffsetsPartition(0, -1, timestamp),)),),
    )
    response = transactions.plane.ask(request, 7, ListOffsetsResponse)
    answer = response.topics[0].partitions[0]
    assert answer.error_code is ErrorCode.NONE
    return answer.timestamp, answer.offset


@pytest.mark.parametrize("restarted", [False, True])
def test_offsets_of_a_read_committed_consumer_end_at_the_last_stable_offset(
    transactions: Transactions, restarted: bool
) -> None:
    transactions.plain(b"before")
    transactions.given(b"a")
    if restarted:
        transactions.restart()
    assert listed(transactions, -1) == (-1, 1)
    assert listed(transactions, -1, isolation_level=0) == (-1, 2)
    assert listed(transactions, -2) == (-1, 0)
    now_ms = transactions.plane.now.wall_ms
    assert listed(transactions, now_ms) == (now_ms, 0)
    transactions.plane.log("a").delete_before(1)
    assert listed(transactions, now_ms) == (-1, -1)
    assert listed(transactions, -3) == (-1, -1)
    assert listed(transactions, now_ms, isolation_level=0) == (now_ms, 1)


# After a restart


@pytest.mark.parametrize("is_saved", [False, True], ids=["killed", "stopped"])
def test_open_transactions_survive_a_restart(transactions: Transactions, is_saved: bool) -> None:
    transactions.given(b"a", producer=1)
    transactions.end(commit=False, producer=1)
    transactions.given(b"b", producer=2)
    transactions.plain(b"behind")
    if is_saved:
        transactions.plane.stop()
    else:
        transactions.plane.log("a").aborted.clear()  # the index was not written
    transactions.restart()
    assert transactions.read().last_stable_offset == 2
    assert aborted_in(transactions) == [(1, 0)]
    answer = transactions.send(b"c", producer=2, sequence=1)
    assert answer.error_code is ErrorCode.NONE
    assert len(transactions.coordinator.asked) == 2, "its transaction is open, nothing is asked"
    transactions.end(commit=True, producer=2)
    assert transactions.seen() == [b"b", b"behind", b"c"]
    assert transactions.end(commit=True, producer=1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_log_is_read_before_the_first_fetch(plane: Plane, isolation_level: int) -> None:
    plane.given("a")
    transactions = Transactions(plane)
    transactions.given(b"a")
    checker = HeldIo()
    plane.executors["checker"] = checker
    transactions.restart()
    token = plane.park_fetch("a", isolation_level=isolation_level, max_wait_ms=0)
    assert not plane.answered(token)
    checker.run()
    data = plane.fetched(token)
    assert data.last_stable_offset == 0
    assert offsets_of(data.records or b"") == ([] if isolation_level else [0])


def test_a_log_that_cannot_be_read_is_an_error(transactions: Transactions) -> None:
    transactions.given(b"a")
    transactions.restart()
    plane = transactions.plane
    log = plane.log("a")

    def unreadable(_offset: int) -> object:
        raise OSError(5, "Input/output error")

    log.batches = unreadable  # type: ignore[method-assign, assignment]
    assert transactions.read().error_code is ErrorCode.KAFKA_STORAGE_ERROR
    uncommitted = transactions.read(committed=False)
    assert (uncommitted.error_code, uncommitted.last_stable_offset) == (ErrorCode.NONE, -1)
    assert transactions.end(commit=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert transactions.send(b"b", sequence=1).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    del log.batches  # type: ignore[method-assign]
    assert transactions.read().last_stable_offset == 0


def test_what_a_kafka_left_open_without_its_coordinator_is_aborted(
    transactions: Transactions,
) -> None:
    transactions.given(b"a", producer=1)
    transactions.plane.log("a").left_open = [UnendedTransaction(1, 0)]
    transactions.restart()
    data = transactions.read()
    assert (data.last_stable_offset, aborted_in(transactions)) == (2, [(1, 0)])
    marker = read_header(transactions.plane.log("a").stored[-1])
    assert (marker.is_control, marker.producer_epoch) == (True, 0)
    transactions.restart()
    assert transactions.read().last_stable_offset == 2, "it is done once"


# Markers


def test_a_marker_is_appended_where_the_producer_never_wrote(transactions: Transactions) -> None:
    assert transactions.end(commit=False) is ErrorCode.NONE
    data = transactions.read()
    assert (data.last_stable_offset, data.high_watermark) == (1, 1)
    assert transactions.plane.log("a").aborted == []
    header = read_header(transactions.plane.log("a").stored[0])
    assert (header.attributes, header.producer_epoch, header.base_sequence) == (0x30, 1, -1)


def test_the_bytes_of_a_marker(transactions: Transactions) -> None:
    transactions.end(commit=True, coordinator_epoch=5)
    stored = transactions.plane.log("a").stored[0]
    assert len(stored) == 78
    assert stored[61:] == bytes.fromhex("20 00 00 00 08 00000001 0c 0000 00000005 00")


def test_an_unknown_partition(transactions: Transactions) -> None:
    assert transactions.end(commit=True, name="b") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("epoch", "version", "coordinator_epoch", "expected"),
    [
        (1, 2, 3, ErrorCode.NONE),
        (0, 2, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (0, 0, 3, ErrorCode.NONE),
        (-1, 0, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, 2, 2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (0, 0, 2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (0, 2, 2, ErrorCode.INVALID_PRODUCER_EPOCH),  # both: the producer's first
    ],
)
def test_what_a_marker_must_have(
    transactions: Transactions,
    epoch: int,
    version: int,
    coordinator_epoch: int,
    expected: ErrorCode,
) -> None:
    transactions.end(commit=True, epoch=0, coordinator_epoch=3)
    transactions.given(b"a")
    answer = transactions.end(
        commit=True, epoch=epoch, version=version, coordinator_epoch=coordinator_epoch
    )
    assert answer is expected
    assert transactions.read().last_stable_offset == (3 if expected is ErrorCode.NONE else 1)


def test_a_repeated_marker_is_written_again(transactions: Transactions) -> None:
    transactions.given(b"a")
    transactions.end(commit=False)
    assert transactions.end(commit=False, coordinator_epoch=2) is ErrorCode.NONE
    assert aborted_in(transactions) == [(7, 0)]
    assert transactions.read().last_stable_offset == 3


# Sequence numbers


def test_after_a_marker_of_version_2_the_numbers_begin_again(transactions: Transactions) -> None:
    transactions.given(b"a", b"b")
    transactions.end(commit=True)
    assert transactions.send(b"c", sequence=2).error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    answer = transactions.send(b"c", epoch=1, sequence=2)
    assert answer.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert transactions.send(b"c", epoch=1).error_code is ErrorCode.NONE


def test_after_a_marker_of_version_1_the_numbers_go_on(transactions: Transactions) -> None:
    first = transactions.send(b"a", b"b", version=VERIFIES)
    transactions.end(commit=True, epoch=0, version=TV1)
    again = transactions.send(b"a", b"b", version=VERIFIES)
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, first.base_offset)
    late = transactions.send(b"d", sequence=3, version=VERIFIES)
    assert late.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_after_a_marker_of_version_1_the_next_number_is_taken(transactions: Transactions) -> None:
    transactions.send(b"a", b"b", version=VERIFIES)
    transactions.end(commit=True, epoch=0, version=TV1)
    assert transactions.send(b"c", sequence=2, version=VERIFIES).base_offset == 3


def test_a_plain_batch_inside_a_transaction_is_refused(transactions: Transactions) -> None:
    transactions.given(b"a")
    plain = batch(b"b", producer_id=7, producer_epoch=0, sequence=1)
    refused = transactions.plane.produce("a", plain)
    assert refused.error_code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("version", "accepted"), [(VERIFIES, True), (12, False)])
def test_an_unknown_producer_begins_with_0_in_version_2(
    transactions: Transactions, version: int, accepted: bool
) -> None:
    expected = ErrorCode.NONE if accepted else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert transactions.send(b"a", sequence=5, version=version).error_code is expected


def test_a_producer_with_an_open_transaction_does_not_expire(transactions: Transactions) -> None:
    transactions.given(b"a")
    transactions.plane.advance(TopicSettings().producer_id_expiration_ms * 2)
    assert transactions.read().last_stable_offset == 0
    transactions.end(commit=True)
    transactions.plane.advance(TopicSettings().producer_id_expiration_ms * 2)
    answer = transactions.send(b"b", sequence=5, version=VERIFIES)
    assert answer.error_code is ErrorCode.NONE, "nothing is known of it any more"


# Verification


@pytest.mark.parametrize("version", [3, 10, 11, 12])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, {}),
        (ErrorCode.INVALID_PRODUCER_EPOCH, {}),
        (ErrorCode.TRANSACTION_ABORTABLE, {3: 48, 10: 48}),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, {3: 19, 10: 19, 11: 19, 12: 19}),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, {3: 19, 10: 19, 11: 19, 12: 19}),
        (ErrorCode.NOT_COORDINATOR, {3: 19, 10: 19, 11: 19, 12: 19}),
        (ErrorCode.CONCURRENT_TRANSACTIONS, {3: 19, 10: 19, 11: 19}),
    ],
)
def test_what_the_coordinator_refuses(
    transactions: Transactions, version: int, answer: ErrorCode, expected: dict[int, int]
) -> None:
    transactions.coordinator.error_code = answer
    refused = transactions.send(b"a", version=version)
    assert refused.error_code == expected.get(version, answer)
    assert transactions.plane.log("a").stored == []
    (asked,) = transactions.coordinator.asked
    assert (asked.add, asked.wait) == (version >= 12, version >= 12)


def test_an_open_transaction_is_not_asked_again(transactions: Transactions) -> None:
    transactions.given(b"a")
    transactions.given(b"b", sequence=1)
    assert len(transactions.coordinator.asked) == 1


def test_a_batch_that_was_verified_is_not_appended_after_the_end(
    transactions: Transactions,
) -> None:
    """The transaction ends between the answer of the coordinator and the append."""
    plane = transactions.plane
    appender = HeldIo()
    plane.executors["appender"] = appender
    transactions.plane.stop()
    appender.is_held = False
    transactions.restart()
    transactions.read()
    transactions.coordinator.error_code = None
    token = plane.send_records("a", transactions.batch(b"a"), version=12, transactional_id="t")
    (asked,) = transactions.coordinator.asked
    transactions.end(commit=False)
    asked.answer()
    response = plane.answers[token]
    assert response is not None
    answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert answer.error_code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert transactions.read().last_stable_offset == 1


def test_a_late_batch_of_version_1_is_not_appended_after_the_end(
    transactions: Transactions,
) -> None:
    transactions.coordinator.error_code = None
    records = transactions.batch(b"a")
    token = transactions.plane.send_records("a", records, version=10, transactional_id="t")
    (asked,) = transactions.coordinator.asked
    transactions.end(commit=True, epoch=0, version=TV1)
    asked.answer()
    response = transactions.plane.answers[token]
    assert response is not None
    answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert answer.error_code is ErrorCode.INVALID_TXN_STATE
    assert transactions.read().last_stable_offset == 1


def test_the_next_transaction_may_be_asked_before_the_marker_of_the_last(
    transactions: Transactions,
) -> None:
    transactions.given(b"a")
    transactions.coordinator.error_code = None
    records = transactions.batch(b"b", epoch=1)
    token = transactions.plane.send_records("a", records, version=12, transactional_id="t")
    transactions.end(commit=True, epoch=1)
    transactions.coordinator.asked[-1].answer()
    response = transactions.plane.answers[token]
    assert response is not None
    answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert answer.error_code is ErrorCode.NONE
    assert transactions.read().last_stable_offset == 2


def test_a_batch_behind_one_that_was_not_verified_is_out_of_order(
    transactions: Transactions,
) -> None:
    transactions.coordinator.error_code = ErrorCode.CONCURRENT_TRANSACTIONS
    assert transactions.send(b"a", version=VERIFIES).error_code == 19
    transactions.coordinator.error_code = ErrorCode.NONE
    late = transactions.send(b"b", sequence=1, version=VERIFIES)
    assert late.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert transactions.send(b"a", version=VERIFIES).error_code is ErrorCode.NONE


def test_without_verification_only_adding_is_asked(plane: Plane) -> None:
    plane.restart(TopicSettings(transaction_partition_verification_enable=False))
    plane.given("a")
    transactions = Transactions(plane)
    assert transactions.send(b"a", version=VERIFIES).error_code is ErrorCode.NONE
    assert transactions.coordinator.asked == []
    assert transactions.send(b"b", producer=8).error_code is ErrorCode.NONE
    assert len(transactions.coordinator.asked) == 1


def test_a_transactional_batch_needs_a_transactional_id(transactions: Transactions) -> None:
    refused = transactions.plane.produce("a", transactions.batch(b"a"))
    assert refused.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_without_a_coordinator_no_transaction_begins(plane: Plane) -> None:
    plane.given("a")
    transactions = Transactions(plane)
    transactions.plane.restart()
    refused = transactions.send(b"a")
    assert refused.error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# Durability


@pytest.mark.parametrize("must_flush", [False, True])
def test_a_marker_is_as_durable_as_a_commit(plane: Plane, must_flush: bool) -> None:
    plane.restart(TopicSettings(flush="commit" if must_flush else "os"))
    plane.given("a")
    transactions = Transactions(plane)
    transactions.given(b"a")
    log, key = plane.log("a"), TopicPartition("a", 0)
    found: list[ErrorCode] = []
    plane.data.markers.sync([key], lambda errors: found.append(errors[key]))
    assert (found, log.flushes) == ([ErrorCode.NONE], int(must_flush))
    transactions.end(commit=True)
    assert log.flushes == 2 * must_flush


def test_a_partition_that_is_gone_counts_as_synced(plane: Plane) -> None:
    found: list[object] = []
    plane.data.markers.sync([TopicPartition("a", 0)], lambda errors: found.append(dict(errors)))
    plane.data.markers.sync([], found.append)
    assert found == [{("a", 0): ErrorCode.NONE}, {}]


# Odd values


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
@pytest.mark.parametrize("is_verified", [False, True])
def test_a_transactional_batch_without_a_producer_opens_nothing(
    plane: Plane, version: int, is_verified: bool
) -> None:
    """Kafka appends it, and knows no producer that would end it."""
    plane.restart(TopicSettings(transaction_partition_verification_enable=is_verified))
    plane.given("a")
    transactions = Transactions(plane)
    transactions.send(b"a", producer=-1, epoch=-1, sequence=-1, version=version)
    transactions.plain(b"behind")
    data = transactions.read()
    assert data.last_stable_offset == data.high_watermark
    partition = plane.data.registry.partition("a", 0)
    assert partition is not None
    assert partition.producers is not None
    assert partition.producers.verifications == {}


def test_a_negative_epoch_is_older_than_any(transactions: Transactions) -> None:
    assert transactions.send(b"a", epoch=-2).error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert transactions.read().high_watermark == 0
