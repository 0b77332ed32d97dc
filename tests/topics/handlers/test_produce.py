"""Produce: which records are accepted, at which offsets, and when the producer is answered."""

from uuid import UUID

import pytest

from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, TopicName
from storage.api import LogClosed, SyncFailed, TopicPartition
from storage.batch.record_batch import TRANSACTIONAL_FLAG, read_header
from tests.topics.batches import batch, damaged, offsets_of, values_of
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import WALL_MS, Plane
from topics.events import PartitionFailed, ProduceRefused, RecordsAppended


@pytest.mark.parametrize("acks", [1, -1])
def test_records_are_appended_in_order_and_their_offsets_returned(plane: Plane, acks: int) -> None:
    plane.given("a")
    first = plane.produce("a", plane.batch(b"x", b"y"), acks=acks)
    second = plane.produce("a", plane.batch(b"z"), acks=acks)
    assert (first.base_offset, second.base_offset) == (0, 2)
    assert (first.log_append_time_ms, first.log_start_offset) == (-1, 0)
    assert values_of(plane.fetch("a").records or b"") == [b"x", b"y", b"z"]


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_that_names_topics_is_served(plane: Plane, version: int) -> None:
    plane.given("a")
    assert plane.produce("a", version=version).error_code is ErrorCode.NONE


def test_since_version_13_a_topic_is_called_by_its_id(plane: Plane) -> None:
    plane.given("a")
    result = plane.produce("", version=13, topic_id=plane.topic_id("a"))
    assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 0)
    result = plane.produce("", version=13, topic_id=UUID(int=99))
    assert result.error_code is ErrorCode.UNKNOWN_TOPIC_ID


def test_appended_records_are_observed(plane: Plane) -> None:
    plane.given("a")
    records = plane.batch(b"x", b"y")
    plane.produce("a", records)
    assert plane.events_of(RecordsAppended) == [
        RecordsAppended(TopicPartition("a", 0), 2, len(records))
    ]


def test_partitions_of_one_request_are_answered_each_for_itself(plane: Plane) -> None:
    plane.given("a", 2)
    data = [PartitionProduceData(index, plane.batch()) for index in (0, 1, 2)]
    request = ProduceRequest(
        None, 1, 1_000, (TopicProduceData(TopicName("a"), partition_data=data),)
    )
    answer = plane.ask(request, 9, ProduceResponse)
    assert [(r.index, r.error_code) for r in answer.responses[0].partition_responses] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_topic_or_a_partition_that_is_not_there_is_unknown(plane: Plane) -> None:
    plane.given("a")
    for name, partition in (("b", 0), ("a", 1), ("a", -1)):
        result = plane.produce(name, partition=partition)
        assert result.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (result.base_offset, result.log_start_offset) == (-1, -1)


def test_producing_makes_no_topic(plane: Plane) -> None:
    plane.produce("b")
    assert plane.data.registry.by_name(TopicName("b")) is None


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_invalid_acks_are_refused(plane: Plane, acks: int) -> None:
    plane.given("a")
    assert plane.produce("a", acks=acks).error_code is ErrorCode.INVALID_REQUIRED_ACKS
    assert plane.log("a").stored == []
    # What is wrong with the partition is said first.
    result = plane.produce("b", acks=acks)
    assert result.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_with_acks_0_records_are_taken_in_silence(plane: Plane) -> None:
    plane.given("a")
    token = plane.send_records("a", plane.batch(), acks=0)
    assert plane.answers[token] is None
    assert plane.fetch("a").high_watermark == 1
    assert plane.closed_connections == []


def test_with_acks_0_a_refusal_closes_the_connection(plane: Plane) -> None:
    token = plane.send_records("b", plane.batch(), acks=0)
    assert plane.closed_connections == [token]
    assert not plane.answered(token)


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, "__transaction_state"])
def test_clients_do_not_write_to_internal_topics(plane: Plane, name: str) -> None:
    if name != OFFSETS_TOPIC:
        plane.given(name, 50)
    plane.data.attach(MemoryLog(TopicPartition(name, 0), plane.topic_id(name)))
    result = plane.produce(name)
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (result.base_offset, result.log_start_offset) == (-1, -1)


def test_a_topic_may_have_its_records_bear_the_time_of_the_append(plane: Plane) -> None:
    plane.given("a", message_timestamp_type="LogAppendTime")
    result = plane.produce("a", batch(b"x", timestamp=5))
    assert result.log_append_time_ms == WALL_MS
    stored = plane.log("a").stored[0]
    assert read_header(stored).log_append_time
    assert read_header(stored).max_timestamp == WALL_MS
    assert values_of(stored) == [b"x"]


def test_refused_batches_are_observed_with_a_reason(plane: Plane) -> None:
    plane.given("a")
    plane.produce("a", b"")
    (event,) = plane.events_of(ProduceRefused)
    assert event.topic_partition == TopicPartition("a", 0)
    assert event.error_code is ErrorCode.INVALID_RECORD
    assert event.reason == "no record batch"


# Transactions, which are not served


def test_a_transactional_batch_is_answered_as_by_a_broker_that_knows_no_such_transaction(
    plane: Plane,
) -> None:
    plane.given("a")
    transactional = damaged(batch(), attributes=TRANSACTIONAL_FLAG, producer_id=5, producer_epoch=0)
    result = plane.produce("a", transactional, transactional_id="t")
    assert result.error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    result = plane.produce("a", transactional)
    assert result.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert plane.log("a").stored == []


# Durability


def test_by_default_nothing_is_flushed_before_the_answer(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 3)
    assert plane.log("a").flushes == 0


def test_flush_messages_is_honoured_before_the_answer(plane: Plane) -> None:
    plane.given("a", flush_messages="3")
    plane.produce("a", plane.batch(b"x", b"y"))
    assert plane.log("a").flushes == 0
    plane.produce("a", plane.batch(b"z"))
    assert plane.log("a").flushes == 1
    plane.produce("a", plane.batch(b"x", b"y"))
    assert plane.log("a").flushes == 1


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), LogClosed()])
def test_an_append_that_fails_is_answered_with_a_storage_error_and_may_be_tried_again(
    plane: Plane, fault: Exception
) -> None:
    plane.given("a")
    plane.log("a").fail_next = fault
    assert plane.produce("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    (event,) = plane.events_of(PartitionFailed)
    assert not event.offline
    assert plane.produce("a").error_code is ErrorCode.NONE


def test_a_flush_that_fails_takes_the_partition_off_line_for_good(plane: Plane) -> None:
    plane.given("a", 2, flush_messages="2")
    plane.given_records("a", 1)
    waiting = plane.park_fetch("a", 1, min_bytes=1_000)
    log = plane.log("a")
    log.flush = _failing_flush  # type: ignore[method-assign]

    assert plane.produce("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR

    (event,) = plane.events_of(PartitionFailed)
    assert event.offline
    del log.flush
    assert plane.produce("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.fetch("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert plane.produce("a", partition=1).error_code is ErrorCode.NONE
    plane.advance(500)
    assert plane.fetched(waiting).error_code is ErrorCode.KAFKA_STORAGE_ERROR


def _failing_flush() -> None:
    raise SyncFailed(5, "Input/output error")


def test_stored_batches_bear_the_logs_offsets_and_a_checksum_that_holds(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 3)
    records = plane.fetch("a").records
    assert records is not None
    assert offsets_of(records) == [0, 1, 2]
    assert values_of(records) == [b"v0", b"v1", b"v2"]
