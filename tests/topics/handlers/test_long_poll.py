"""A fetch that is willing to wait: what ends the wait, and that it ends once."""

import pytest

from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.names import OFFSETS_TOPIC, ErrorCode, TopicName
from storage.api import TopicPartition
from tests.topics.batches import offsets_of, values_of
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import MEBIBYTE, Plane
from topics.settings import TopicSettings


@pytest.fixture
def plane() -> Plane:
    plane = Plane()
    plane.given("a", 2)
    return plane


def test_an_append_ends_the_wait(plane: Plane) -> None:
    token = plane.park_fetch("a")
    plane.advance(100)
    assert not plane.answered(token)
    plane.produce("a", plane.batch(b"x"))
    data = plane.fetched(token)
    assert values_of(data.records or b"") == [b"x"]
    assert data.high_watermark == 1


def test_the_producer_is_answered_before_those_who_wait(plane: Plane) -> None:
    parked = plane.park_fetch("a")
    produced = plane.send_records("a", plane.batch())
    assert list(plane.answers)[-2:] == [produced, parked]


def test_time_ends_the_wait_to_the_millisecond(plane: Plane) -> None:
    token = plane.park_fetch("a", max_wait_ms=500)
    plane.advance(499)
    assert not plane.answered(token)
    plane.advance(1)
    data = plane.fetched(token)
    assert (data.error_code, data.records, data.high_watermark) == (ErrorCode.NONE, b"", 0)


def test_the_next_deadline_is_the_nearest(plane: Plane) -> None:
    plane.advance(0)
    plane.park_fetch("a", max_wait_ms=900)
    plane.park_fetch("a", max_wait_ms=300)
    assert plane.data.next_deadline_ms == plane.now.mono_ms + 300
    assert plane.data.delayed_fetches == 2


def test_a_fetch_that_waits_sets_the_timer(plane: Plane) -> None:
    calls: list[int] = []
    plane.data.watch_deadline(lambda: calls.append(plane.now.mono_ms))
    plane.park_fetch("a", max_wait_ms=900)
    assert calls == [plane.now.mono_ms]


def test_an_append_to_another_partition_does_not(plane: Plane) -> None:
    token = plane.park_fetch("a")
    plane.produce("a", partition=1)
    assert not plane.answered(token)


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(0, 1), (-1, 1), (500, 0), (500, -5)])
def test_who_does_not_want_to_wait_does_not(plane: Plane, max_wait_ms: int, min_bytes: int) -> None:
    assert plane.answered(plane.park_fetch("a", max_wait_ms=max_wait_ms, min_bytes=min_bytes))


def test_enough_bytes_at_hand_need_no_wait(plane: Plane) -> None:
    plane.given_records("a", 1)
    assert plane.answered(plane.park_fetch("a", min_bytes=1))


def test_bytes_are_counted_with_those_at_hand_until_there_are_enough(plane: Plane) -> None:
    plane.given_records("a", 1)
    size = len(plane.log("a").stored[0])
    token = plane.park_fetch("a", min_bytes=3 * size)
    plane.given_records("a", 1)
    assert not plane.answered(token)
    plane.given_records("a", 1)
    assert offsets_of(plane.fetched(token).records or b"") == [0, 1, 2]


def test_too_few_bytes_are_answered_when_the_time_is_up(plane: Plane) -> None:
    token = plane.park_fetch("a", min_bytes=1_000)
    plane.given_records("a", 2)
    plane.advance(500)
    assert offsets_of(plane.fetched(token).records or b"") == [0, 1]


def test_bytes_of_all_partitions_count_each_up_to_its_limit(plane: Plane) -> None:
    plane.given_records("a", 1, 0)
    size = len(plane.log("a").stored[0])
    asked = [FetchPartition(n, fetch_offset=1 - n, partition_max_bytes=2 * size) for n in (0, 1)]
    request = FetchRequest(
        max_wait_ms=500, min_bytes=3 * size, topics=(FetchTopic(TopicName("a"), partitions=asked),)
    )
    token = plane.send(request, 12)
    plane.given_records("a", 5, 0)  # only two of them count
    assert not plane.answered(token)
    plane.given_records("a", 1, 1)
    assert plane.answered(token)


def test_more_bytes_than_the_broker_gives_are_not_waited_for() -> None:
    plane = Plane(TopicSettings(fetch_max_bytes=1_024))
    plane.given("a")
    token = plane.park_fetch("a", min_bytes=50 * MEBIBYTE)
    plane.produce("a", plane.batch(b"x" * 2_000))
    assert plane.answered(token)


def test_an_error_in_one_partition_ends_the_wait_for_all(plane: Plane) -> None:
    asked = [FetchPartition(0, partition_max_bytes=1), FetchPartition(1, fetch_offset=9)]
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=(FetchTopic(TopicName("a"), partitions=asked),)
    )
    assert plane.answered(plane.send(request, 12))


def test_an_unknown_partition_does_not(plane: Plane) -> None:
    asked = [FetchPartition(0, partition_max_bytes=1), FetchPartition(9)]
    topics = (FetchTopic(TopicName("a"), partitions=asked),)
    token = plane.send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics), 12)
    assert not plane.answered(token)
    # Unless there is nothing else to wait for.
    topics = (FetchTopic(TopicName("a"), partitions=asked[1:]),)
    assert plane.answered(plane.send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics), 12))


def test_a_fetch_of_nothing_is_answered_with_nothing(plane: Plane) -> None:
    answer = plane.ask(FetchRequest(max_wait_ms=500, min_bytes=1), 12, FetchResponse)
    assert answer.responses == ()


def test_deleting_the_topic_ends_the_wait(plane: Plane) -> None:
    token = plane.park_fetch("a")
    request = DeleteTopicsRequest((DeleteTopicState(TopicName("a")),))
    plane.ask(request, 6, DeleteTopicsResponse)
    assert plane.fetched(token).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    plane.data._fetching.purgatory.check()


def test_a_client_that_left_is_forgotten(plane: Plane) -> None:
    token = plane.park_fetch("a")
    other = plane.park_fetch("a")
    plane.data.disconnected(token, plane.now)
    plane.produce("a")
    plane.advance(1_000)
    assert not plane.answered(token)
    assert plane.answered(other)
    assert plane.data.delayed_fetches == plane.data.watched_fetches == 0


def test_retention_in_between_does_not_end_the_wait_nor_hide_what_comes(plane: Plane) -> None:
    plane.given_records("a", 5)
    token = plane.park_fetch("a", 5)
    plane.log("a").delete_before(5)
    plane.data.advanced(TopicPartition("a", 1), plane.now)
    assert not plane.answered(token)
    plane.given_records("a", 1)
    assert offsets_of(plane.fetched(token).records or b"") == [5]


def test_records_of_the_offsets_topic_end_the_wait_once_they_are_readable(plane: Plane) -> None:
    topic_partition = TopicPartition(OFFSETS_TOPIC, 0)
    log = MemoryLog(topic_partition, plane.topic_id(OFFSETS_TOPIC), journaled=True)
    plane.data.attach(log)
    token = plane.park_fetch(OFFSETS_TOPIC)
    log.append(plane.batch(b"x"), 0)
    plane.data.advanced(topic_partition, plane.now)
    assert not plane.answered(token)
    log.high_watermark = 1
    plane.data.advanced(topic_partition, plane.now)
    assert offsets_of(plane.fetched(token).records or b"") == [0]


def test_when_the_daemon_stops_all_fetches_are_answered(plane: Plane) -> None:
    plane.given_records("a", 1)
    tokens = [plane.park_fetch("a", min_bytes=1_000, max_wait_ms=n) for n in (900, 100, 500)]
    plane.stop()
    for token in tokens:
        assert offsets_of(plane.fetched(token).records or b"") == [0]
    assert plane.data.delayed_fetches == 0


def test_many_who_wait_for_one_partition_are_all_answered_once(plane: Plane) -> None:
    tokens = [plane.park_fetch("a") for _ in range(100)]
    plane.produce("a")
    plane.advance(1_000)
    assert all(plane.answered(token) for token in tokens)


# Limits that are within a batch: Kafka sends a part of it, so what counts is the limit


def fetch_of(plane: Plane, max_bytes: int, partition_max_bytes: int, min_bytes: int) -> bool:
    """Whether a fetch from the first offset is answered at once."""
    asked = [FetchPartition(n, partition_max_bytes=partition_max_bytes) for n in (0, 1)]
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(FetchTopic(TopicName("a"), partitions=asked),),
    )
    return plane.answered(plane.send(request, 12))


def test_a_full_answer_is_not_waited_for(plane: Plane) -> None:
    plane.given_records("a", 3)
    limit = 2 * len(plane.log("a").stored[0]) + 20
    assert fetch_of(plane, limit, MEBIBYTE, min_bytes=limit)
    assert fetch_of(plane, limit, MEBIBYTE, min_bytes=MEBIBYTE)
    assert fetch_of(plane, MEBIBYTE, limit, min_bytes=limit)
    assert not fetch_of(plane, MEBIBYTE, limit, min_bytes=limit + 1)


def test_an_answer_that_has_everything_is_not_full(plane: Plane) -> None:
    plane.given_records("a", 2)
    limit = 2 * len(plane.log("a").stored[0]) + 20
    assert not fetch_of(plane, limit, MEBIBYTE, min_bytes=limit)
    assert not fetch_of(plane, MEBIBYTE, limit, min_bytes=limit)


def test_the_rest_of_a_limit_counts_in_the_next_partition(plane: Plane) -> None:
    plane.given_records("a", 1)
    plane.given_records("a", 1, 1)
    size = len(plane.log("a").stored[0])
    assert fetch_of(plane, size + 5, MEBIBYTE, min_bytes=size + 5)
    assert not fetch_of(plane, 2 * size + 5, MEBIBYTE, min_bytes=2 * size + 5)


# Bytes that the connections can take


@pytest.mark.parametrize("cold_before", [0, 10])
def test_an_answer_has_no_more_than_the_connections_can_take(
    plane: Plane, cold_before: int
) -> None:
    plane.given_records("a", 5)
    plane.log("a").cold_before = cold_before
    size = len(plane.log("a").stored[0])
    for room, count in ((3 * size, 3), (size, 1), (0, 1), (-size, 1)):
        plane.fetch_answer_max_bytes = room
        token = plane.park_fetch("a", min_bytes=4 * size)
        assert plane.answered(token)  # it need not wait for bytes that it would not get
        assert len(offsets_of(plane.fetched(token).records or b"")) == count


@pytest.mark.parametrize("room", [0, -5, 1])
def test_without_room_a_consumer_at_the_end_waits_as_ever(plane: Plane, room: int) -> None:
    plane.fetch_answer_max_bytes = room
    token = plane.park_fetch("a")
    assert not plane.answered(token)
    plane.produce("a", plane.batch(b"x"))
    assert values_of(plane.fetched(token).records or b"") == [b"x"]
