"""Fetch: which batches a consumer gets, and how many of them, without waiting."""

from uuid import UUID

import pytest

from protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from protocol.names import OFFSETS_TOPIC, ZERO_TOPIC_ID, ErrorCode, TopicId, TopicName
from storage.api import Corrupt, TopicPartition
from tests.topics.batches import offsets_of, values_of
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import MEBIBYTE, Plane
from topics.events import PartitionFailed, RecordsFetched
from topics.settings import TopicSettings

NOBODYS_ID = UUID(int=99)


def ask(
    plane: Plane, *asked: FetchTopic, version: int = 12, max_bytes: int = 50 * MEBIBYTE
) -> FetchResponse:
    request = FetchRequest(max_bytes=max_bytes, min_bytes=1, topics=asked)
    return plane.ask(request, version, FetchResponse)


def of(
    name: str, *partitions: int, offset: int = 0, topic_id: TopicId = ZERO_TOPIC_ID
) -> FetchTopic:
    asked = [
        FetchPartition(index, fetch_offset=offset, partition_max_bytes=MEBIBYTE)
        for index in partitions
    ]
    return FetchTopic(TopicName(name), topic_id, asked)


def fetched(answer: FetchResponse) -> list[tuple[int, ErrorCode, list[int]]]:
    return [
        (data.partition_index, data.error_code, offsets_of(data.records or b""))
        for topic in answer.responses
        for data in topic.partitions
    ]


def test_batches_come_from_the_offset_on(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 4)
    data = plane.fetch("a", 2)
    assert values_of(data.records or b"") == [b"v2", b"v3"]
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (4, 4, 0)
    assert data.preferred_read_replica == -1


def test_an_offset_within_a_batch_brings_that_batch(plane: Plane) -> None:
    plane.given("a")
    plane.produce("a", plane.batch(b"x", b"y", b"z"))
    assert offsets_of(plane.fetch("a", 2).records or b"") == [0]


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_that_names_topics_is_served(plane: Plane, version: int) -> None:
    plane.given("a")
    plane.given_records("a", 1)
    assert values_of(plane.fetch("a", version=version).records or b"") == [b"v0"]


@pytest.mark.parametrize("version", range(13, 19))
def test_since_version_13_a_topic_is_called_by_its_id(plane: Plane, version: int) -> None:
    plane.given("a")
    plane.given_records("a", 1)
    topics = (of("", 0, topic_id=plane.topic_id("a")), of("", 0, topic_id=NOBODYS_ID))
    answer = ask(plane, *topics, version=version)
    assert fetched(answer) == [(0, ErrorCode.NONE, [0]), (0, ErrorCode.UNKNOWN_TOPIC_ID, [])]
    assert [t.topic_id for t in answer.responses] == [plane.topic_id("a"), NOBODYS_ID]


def test_at_the_end_of_the_log_there_is_nothing_and_beyond_it_an_error(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 2)
    assert (plane.fetch("a", 2).error_code, plane.fetch("a", 2).records) == (ErrorCode.NONE, b"")
    for offset in (3, -1):
        data = plane.fetch("a", offset)
        assert data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1,) * 3
        assert data.records == b""


def test_what_retention_took_is_out_of_range(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 3)
    plane.log("a").delete_before(2)
    assert plane.fetch("a", 1).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert plane.fetch("a", 2).log_start_offset == 2


def test_without_transactions_none_was_aborted(plane: Plane) -> None:
    plane.given("a")
    assert plane.fetch("a", isolation_level=0).aborted_transactions is None
    assert plane.fetch("a", isolation_level=1).aborted_transactions == ()


# Limits


def test_the_first_batch_comes_whole_whatever_the_limits(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 3)
    for limits in (
        {"partition_max_bytes": 1},
        {"partition_max_bytes": 0},
        {"partition_max_bytes": -1},
        {"max_bytes": 1},
        {"max_bytes": 0},
    ):
        assert offsets_of(plane.fetch("a", 1, **limits).records or b"") == [1]


def test_a_partition_gives_no_more_than_its_limit(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 5)
    size = len(plane.log("a").stored[0])
    data = plane.fetch("a", partition_max_bytes=2 * size + size // 2)
    assert offsets_of(data.records or b"") == [0, 1]


def test_an_answer_is_filled_in_the_order_of_the_request(plane: Plane) -> None:
    plane.given("a", 3)
    for partition in range(3):
        plane.given_records("a", 3, partition)
    size = len(plane.log("a").stored[0])
    answer = ask(plane, of("a", 2, 0, 1), max_bytes=4 * size)
    assert fetched(answer) == [
        (2, ErrorCode.NONE, [0, 1, 2]),
        (0, ErrorCode.NONE, [0]),
        (1, ErrorCode.NONE, []),
    ]


def test_only_one_partition_may_go_beyond_the_limit(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 2, 0)
    plane.given_records("a", 2, 1)
    assert [offsets for _, _, offsets in fetched(ask(plane, of("a", 0, 1), max_bytes=1))] == [
        [0],
        [],
    ]


def test_an_empty_partition_leaves_the_first_batch_to_the_next(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 2, 1)
    assert [offsets for _, _, offsets in fetched(ask(plane, of("a", 0, 1), max_bytes=1))] == [
        [],
        [0],
    ]


def test_the_brokers_limit_holds_whatever_is_asked() -> None:
    plane = Plane(TopicSettings(fetch_max_bytes=1_024))
    plane.given("a")
    plane.given_records("a", 100)
    data = plane.fetch("a")
    assert 900 < len(data.records or b"") <= 1_024


# The order of the answer


def test_unknown_partitions_come_last(plane: Plane) -> None:
    plane.given("a", 2)
    answer = ask(plane, of("b", 0), of("a", 7, 1, 0))
    assert [(t.topic, [p.partition_index for p in t.partitions]) for t in answer.responses] == [
        ("a", [1, 0]),
        ("b", [0]),
        ("a", [7]),
    ]
    assert [code for _, code, _ in fetched(answer)] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_of_a_partition_that_is_asked_for_twice_the_later_question_counts(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 3)
    answer = ask(plane, of("a", 0), of("a", 1), of("a", 0, offset=2))
    assert fetched(answer) == [(0, ErrorCode.NONE, [2]), (1, ErrorCode.NONE, [])]


# Leader epochs


def test_another_leader_epoch_is_an_error(plane: Plane) -> None:
    plane.given("a")
    plane.log("a").leader_epoch = 3
    assert plane.fetch("a", current_leader_epoch=3).error_code is ErrorCode.NONE
    data = plane.fetch("a", current_leader_epoch=2)
    assert data.error_code is ErrorCode.FENCED_LEADER_EPOCH
    data = plane.fetch("a", current_leader_epoch=4)
    assert data.error_code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_since_version_16_a_fenced_client_gets_the_leader_and_its_address(plane: Plane) -> None:
    plane.given("a")
    plane.log("a").leader_epoch = 3
    asked = FetchPartition(0, 2, partition_max_bytes=MEBIBYTE)
    topic = FetchTopic(topic_id=plane.topic_id("a"), partitions=(asked,))
    answer = ask(plane, topic, version=16)
    assert answer.responses[0].partitions[0].current_leader == LeaderIdAndEpoch(1, 3)
    (endpoint,) = answer.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (1, "outside", 9092)
    assert ask(plane, topic, version=15).node_endpoints == ()


def test_a_consumer_that_read_beyond_the_end_of_its_epoch_gets_that_end(
    plane: Plane,
) -> None:
    plane.given("a")
    plane.given_records("a", 2)  # epoch 0 ends at offset 2
    plane.log("a").leader_epoch = 2
    plane.given_records("a", 2)
    fine = plane.fetch("a", 2, last_fetched_epoch=0)
    assert fine.diverging_epoch is None
    assert offsets_of(fine.records or b"") == [2, 3]
    for epoch in (0, 1):
        data = plane.fetch("a", 3, last_fetched_epoch=epoch)
        assert data.error_code is ErrorCode.NONE
        assert data.diverging_epoch == EpochEndOffset(0, 2)
        assert data.records == b""


def test_a_last_epoch_that_is_yet_to_come_is_out_of_range(plane: Plane) -> None:
    plane.given("a")
    data = plane.fetch("a", last_fetched_epoch=7)
    assert data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_partition_without_records_has_a_last_stable_offset(plane: Plane) -> None:
    """Its producers were never read from the log, and need not be."""
    plane.given("a", 2)
    data = plane.fetch("a", partition=1)
    assert (data.high_watermark, data.last_stable_offset) == (0, 0)


@pytest.mark.parametrize("epoch", [-1, -2, -(2**31)])
def test_every_negative_epoch_is_no_epoch(plane: Plane, epoch: int) -> None:
    plane.given("a")
    plane.log("a").leader_epoch = 3
    plane.given_records("a", 1)
    data = plane.fetch("a", current_leader_epoch=epoch, last_fetched_epoch=epoch)
    assert (data.error_code, data.diverging_epoch) == (ErrorCode.NONE, None)
    assert offsets_of(data.records or b"") == [0]


# What is not a consumer's fetch of a topic's records


@pytest.mark.parametrize("level", [2, -1])
@pytest.mark.parametrize("version", [4, 12])
def test_an_unknown_isolation_level_is_an_error_everywhere(
    plane: Plane, version: int, level: int
) -> None:
    plane.given("a", 2)
    request = FetchRequest(max_wait_ms=500, isolation_level=level, topics=(of("a", 1, 0),))
    answer = plane.ask(request, version, FetchResponse)
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_code is (error if version >= 7 else ErrorCode.NONE)
    assert answer.session_id == 0
    assert fetched(answer) == [(1, error, []), (0, error, [])]


@pytest.mark.parametrize(
    ("version", "request_fields"),
    [(12, {"replica_id": 3}), (15, {"replica_state": ReplicaState(3, 1)})],
)
def test_a_follower_is_refused(
    plane: Plane, version: int, request_fields: dict[str, object]
) -> None:
    plane.given("a")
    topic = of("a" if version < 13 else "", 0, topic_id=plane.topic_id("a"))
    request = FetchRequest(topics=(topic,), **request_fields)  # type: ignore[arg-type] # a test
    answer = plane.ask(request, version, FetchResponse)
    assert fetched(answer) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, [])]


def attached_log(plane: Plane) -> MemoryLog:
    log = MemoryLog(TopicPartition(OFFSETS_TOPIC, 0), plane.topic_id(OFFSETS_TOPIC), journaled=True)
    plane.data.attach(log)
    return log


def test_the_offsets_topic_is_read_below_its_high_watermark_only(plane: Plane) -> None:
    log = attached_log(plane)
    for _ in range(3):
        log.append(plane.batch(b"x"), 0)
    log.high_watermark = 2
    data = plane.fetch(OFFSETS_TOPIC)
    assert offsets_of(data.records or b"") == [0, 1]
    assert data.high_watermark == 2
    # An offset between the two is not wrong, there is only nothing to read yet.
    for offset in (2, 3):
        data = plane.fetch(OFFSETS_TOPIC, offset)
        assert (data.error_code, data.records) == (ErrorCode.NONE, b"")


def test_a_partition_whose_log_the_coordinator_has_not_loaded_has_no_leader_yet(
    plane: Plane,
) -> None:
    assert plane.fetch(OFFSETS_TOPIC).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    "fault", [Corrupt("a-0", 5, "a checksum that does not hold"), OSError(5, "Input/output error")]
)
def test_a_disk_that_cannot_be_read_is_a_storage_error(plane: Plane, fault: Exception) -> None:
    plane.given("a")
    plane.given_records("a", 1)
    for version, error_code in (
        (12, ErrorCode.KAFKA_STORAGE_ERROR),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),  # older clients do not know the other
    ):
        plane.log("a").fail_next = fault
        assert plane.fetch("a", version=version).error_code is error_code
    assert len(plane.events_of(PartitionFailed)) == 2
    assert plane.fetch("a").error_code is ErrorCode.NONE


def test_read_records_are_observed(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 2)
    data: PartitionData = plane.fetch("a")
    assert plane.events_of(RecordsFetched) == [
        RecordsFetched(TopicPartition("a", 0), len(data.records or b""))
    ]
