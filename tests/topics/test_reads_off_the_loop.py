"""Reads beside the event loop: what is read at once, what in a thread, what in between."""

import pytest

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.names import ErrorCode, TopicName
from seams.reply_token import ReplyToken
from tests.topics.batches import offsets_of
from tests.topics.held_io import HeldIo
from tests.topics.plane import Plane
from topics.events import PartitionFailed
from topics.handlers.list_offsets import EARLIEST, LATEST

MEBIBYTE = 1 << 20


@pytest.fixture
def reader() -> HeldIo:
    return HeldIo()


@pytest.fixture
def plane(reader: HeldIo) -> Plane:
    """A topic of four records, of which two are in files that are not open."""
    plane = Plane(reader=reader)
    plane.given("a")
    plane.given_records("a", 4)
    plane.log("a").cold_before = 2
    return plane


def test_what_lies_in_an_open_file_is_read_at_once(plane: Plane, reader: HeldIo) -> None:
    assert offsets_of(plane.fetch("a", 2).records or b"") == [2, 3]
    assert plane.fetch("a", 4).records == b""
    assert reader.waiting == 0


def test_what_does_not_is_read_in_the_thread(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 1)
    assert not plane.answered(token)
    reader.run()
    assert offsets_of(plane.fetched(token).records or b"") == [1, 2, 3]


def test_one_cold_partition_takes_its_request_to_the_thread_in_its_order(
    plane: Plane, reader: HeldIo
) -> None:
    plane.given("b")
    plane.given_records("b", 1)
    asked = FetchPartition(0, fetch_offset=0, partition_max_bytes=MEBIBYTE)
    topics = [FetchTopic(TopicName(name), partitions=(asked,)) for name in ("b", "a")]
    token = plane.send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics), 12)
    assert not plane.answered(token)
    reader.run()
    response = plane.answers[token]
    assert [topic.topic for topic in response.responses] == ["b", "a"]  # type: ignore[union-attr]


def test_an_offset_out_of_range_needs_no_file(plane: Plane, reader: HeldIo) -> None:
    assert plane.fetch("a", 9).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert reader.waiting == 0


def test_what_is_appended_during_the_read_ends_the_wait(plane: Plane, reader: HeldIo) -> None:
    size = plane.log("a").size_bytes
    token = plane.park_fetch("a", 0, min_bytes=size + 1)
    hand_back = reader.work()  # has read the four
    plane.given_records("a", 1)
    hand_back()
    reader.run()  # once more, for there is enough now
    assert offsets_of(plane.fetched(token).records or b"") == [0, 1, 2, 3, 4]


def test_too_little_is_waited_on_after_the_read(plane: Plane, reader: HeldIo) -> None:
    size = plane.log("a").size_bytes
    token = plane.park_fetch("a", 0, min_bytes=size + 1, max_wait_ms=500)
    reader.run()
    assert plane.data.delayed_fetches == 1
    plane.advance(500)
    reader.run()
    assert offsets_of(plane.fetched(token).records or b"") == [0, 1, 2, 3]


def test_the_time_in_the_thread_counts_as_waiting(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 0, min_bytes=MEBIBYTE, max_wait_ms=500)
    plane.advance(499)
    reader.run()
    assert not plane.answered(token)
    plane.advance(1)
    reader.run()
    assert plane.answered(token)


def test_a_client_that_left_during_the_read_gets_nothing(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 0, min_bytes=MEBIBYTE)
    plane.data.disconnected(token, plane.now)
    reader.run()
    assert not plane.answered(token)
    assert plane.data.delayed_fetches == 0


def test_a_topic_deleted_during_the_read_is_unknown(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 0)
    log = plane.log("a")
    _delete(plane)
    log.fail_next = FileNotFoundError(2, "a-0")
    reader.run()
    assert plane.fetched(token).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert plane.events_of(PartitionFailed) == []


def test_a_disk_error_in_the_thread_is_reported_once(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 0)
    plane.log("a").fail_next = OSError(5, "Input/output error")
    reader.run()
    assert plane.fetched(token).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(plane.events_of(PartitionFailed)) == 1


def test_retention_during_the_read_leaves_the_offset_out_of_range(
    plane: Plane, reader: HeldIo
) -> None:
    token = plane.park_fetch("a", 0)
    plane.log("a").delete_before(3)
    reader.run()
    assert plane.fetched(token).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_stop_does_not_park_what_is_being_read(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 0, min_bytes=MEBIBYTE, max_wait_ms=10_000)
    plane.data.answer_all()
    reader.run()
    assert offsets_of(plane.fetched(token).records or b"") == [0, 1, 2, 3]


def test_a_mistake_of_ours_does_not_leave_the_client_waiting(plane: Plane, reader: HeldIo) -> None:
    token = plane.park_fetch("a", 0)
    plane.log("a").fail_next = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        reader.run()
    assert plane.closed_connections == [token]


# ListOffsets, OffsetForLeaderEpoch


def test_the_end_of_a_log_is_returned_without_reading_it(plane: Plane, reader: HeldIo) -> None:
    token = _list_offsets(plane, LATEST)
    assert _offset(plane, token) == (ErrorCode.NONE, 4)
    assert reader.waiting == 0


@pytest.mark.parametrize(("timestamp", "offset"), [(EARLIEST, 0), (1, 0)])
def test_offsets_of_timestamps_are_read_in_the_thread(
    plane: Plane, reader: HeldIo, timestamp: int, offset: int
) -> None:
    token = _list_offsets(plane, timestamp)
    assert not plane.answered(token)
    reader.run()
    assert _offset(plane, token) == (ErrorCode.NONE, offset)


def test_a_topic_deleted_during_the_look_up_is_unknown(plane: Plane, reader: HeldIo) -> None:
    token = _list_offsets(plane, EARLIEST)
    partition = plane.data.registry.partition("a", 0)
    assert partition is not None
    partition.deleted = True  # at the worst of moments
    plane.log("a").fail_next = FileNotFoundError(2, "a-0")
    reader.run()
    assert _offset(plane, token)[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_end_of_an_epoch_is_read_in_the_thread(plane: Plane, reader: HeldIo) -> None:
    asked = OffsetForLeaderTopic(TopicName("a"), (OffsetForLeaderPartition(0, -1, 0),))
    token = plane.send(OffsetForLeaderEpochRequest(topics=(asked,)), 4)
    assert not plane.answered(token)
    reader.run()
    assert plane.answered(token)


def _delete(plane: Plane) -> None:
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    plane.run(plane.data.registry.delete(topic))


def _list_offsets(plane: Plane, timestamp: int) -> ReplyToken:
    asked = ListOffsetsTopic(TopicName("a"), (ListOffsetsPartition(0, timestamp=timestamp),))
    return plane.send(ListOffsetsRequest(-1, 0, (asked,)), 7)


def _offset(plane: Plane, token: ReplyToken) -> tuple[ErrorCode, int]:
    response = plane.answers[token]
    assert isinstance(response, ListOffsetsResponse)
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.offset


def test_what_the_thread_has_read_and_nobody_has_answered_takes_room(
    plane: Plane, reader: HeldIo
) -> None:
    size = len(plane.log("a").stored[0])
    plane.fetch_answer_max_bytes = 3 * size
    tokens = [plane.park_fetch("a", 0) for _ in range(3)]
    plane.data.disconnected(tokens[1], plane.now)
    for hand_back in [reader.work() for _ in tokens]:
        hand_back()
    counts = [
        len(offsets_of(plane.fetched(token).records or b"")) for token in (tokens[0], tokens[2])
    ]
    assert counts == [3, 1]
    # All of it is answered, or given up: the room is there again.
    token = plane.park_fetch("a", 0)
    reader.run()
    assert len(offsets_of(plane.fetched(token).records or b"")) == 3
