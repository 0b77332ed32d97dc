"""Produce beside the event loop: what is decided here, what there, what may happen in between."""

import pytest

from protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from protocol.names import ErrorCode, TopicName
from seams.reply_token import ReplyToken
from storage.api import Corrupt, LogClosed
from tests.topics.batches import batch
from tests.topics.held_io import HeldIo
from tests.topics.plane import Plane
from topics.events import PartitionFailed
from topics.handlers.produce import CHECKED_RECORDS_MAX


@pytest.fixture
def appender() -> HeldIo:
    return HeldIo()


@pytest.fixture
def checker() -> HeldIo:
    return HeldIo()


@pytest.fixture
def plane(appender: HeldIo, checker: HeldIo) -> Plane:
    plane = Plane(appender=appender, checker=checker)
    plane.given("a")
    return plane


def test_nothing_touches_the_log_before_the_appender_does(plane: Plane, appender: HeldIo) -> None:
    plane.log("a").fail_next = OSError(5, "nobody may touch it")
    token = plane.send_records("a", plane.batch())
    assert plane.log("a").fail_next is not None
    assert not plane.answered(token)
    plane.log("a").fail_next = None

    appender.run()
    assert _answer(plane, token).base_offset == 0


def test_batches_are_appended_in_the_order_in_which_they_came(
    plane: Plane, appender: HeldIo
) -> None:
    tokens = [plane.send_records("a", plane.batch(b"%d" % n)) for n in range(5)]
    appender.run()
    assert [_answer(plane, token).base_offset for token in tokens] == [0, 1, 2, 3, 4]


def test_what_the_request_itself_forbids_needs_no_thread(plane: Plane, appender: HeldIo) -> None:
    token = plane.send_records("a", b"no batch")
    assert _answer(plane, token).error_code is ErrorCode.INVALID_RECORD
    assert appender.waiting == 0


@pytest.mark.parametrize("fault", [LogClosed("a-0: deleted"), FileNotFoundError(2, "a-0")])
def test_a_topic_deleted_while_its_batch_is_on_its_way_is_unknown(
    plane: Plane, appender: HeldIo, fault: Exception
) -> None:
    token = plane.send_records("a", plane.batch())
    log = plane.log("a")
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    plane.run(plane.data.registry.delete(topic))
    log.fail_next = fault

    appender.run()
    assert _answer(plane, token).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert plane.events_of(PartitionFailed) == []


def test_a_mistake_of_ours_fails_its_batch_and_no_other(plane: Plane, appender: HeldIo) -> None:
    tokens = [plane.send_records("a", plane.batch()) for _ in range(2)]
    plane.log("a").fail_next = ZeroDivisionError()
    appender.run()
    assert _answer(plane, tokens[0]).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert _answer(plane, tokens[1]).base_offset == 0


def test_a_batch_of_many_records_is_checked_in_the_checker(
    plane: Plane, appender: HeldIo, checker: HeldIo
) -> None:
    large = plane.send_records("a", plane.batch(*[b"v"] * (CHECKED_RECORDS_MAX + 1)))
    small = plane.send_records("a", plane.batch())
    appender.run()
    assert plane.answered(small)
    assert not plane.answered(large)

    checker.run()
    appender.run()
    assert _answer(plane, large).base_offset == 1


def test_producers_are_read_from_the_log_in_the_checker(
    plane: Plane, appender: HeldIo, checker: HeldIo
) -> None:
    _given_a_log_not_read_yet(plane, appender)
    idempotent = plane.send_records("a", _of_producer(plane, 1))
    other = plane.send_records("a", plane.batch())
    appender.run()
    assert plane.answered(other)
    assert not plane.answered(idempotent)

    checker.step()  # reads the log
    appender.run()
    assert _answer(plane, idempotent).base_offset == 2


def test_what_is_appended_while_the_log_is_read_is_not_forgotten(
    plane: Plane, appender: HeldIo, checker: HeldIo
) -> None:
    _given_a_log_not_read_yet(plane, appender)
    first = plane.send_records("a", _of_producer(plane, 1))
    again = plane.send_records("a", _of_producer(plane, 1))
    hand_back = [checker.work(), checker.work()]  # both have read the log as it was
    for callback in hand_back:
        callback()
        appender.run()
    assert _answer(plane, first).base_offset == 1
    assert _answer(plane, again).base_offset == 1
    assert plane.log("a").log_end_offset == 2


def test_a_log_that_cannot_be_read_is_a_storage_error_not_a_closed_connection(
    plane: Plane, appender: HeldIo, checker: HeldIo
) -> None:
    _given_a_log_not_read_yet(plane, appender)

    def damaged(from_offset: int) -> None:
        raise Corrupt("a-0", from_offset, "a checksum that does not hold")

    plane.log("a").batches = damaged  # type: ignore[method-assign, assignment] # a fault
    token = plane.send_records("a", _of_producer(plane, 1))
    checker.run()
    appender.run()
    assert _answer(plane, token).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    (event,) = plane.events_of(PartitionFailed)
    assert "a checksum that does not hold" in event.reason


def test_a_client_that_left_meanwhile_is_no_mistake(plane: Plane, appender: HeldIo) -> None:
    token = plane.send_records("a", plane.batch())
    plane.data.disconnected(token, plane.now)
    appender.run()
    assert plane.log("a").log_end_offset == 1


def _given_a_log_not_read_yet(plane: Plane, appender: HeldIo) -> None:
    """With a batch of the producer, and no snapshot: the daemon was killed."""
    plane.send_records("a", _of_producer(plane, 0))
    appender.run()
    plane.restart()


def _of_producer(plane: Plane, sequence: int) -> bytes:
    return batch(timestamp=plane.now.wall_ms, producer_id=7, producer_epoch=0, sequence=sequence)


def _answer(plane: Plane, token: ReplyToken) -> PartitionProduceResponse:
    response = plane.answers[token]
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0]
