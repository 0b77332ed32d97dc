"""DescribeProducers and WriteTxnMarkers: what kafka-transactions asks of partitions."""

from collections.abc import Sequence

import pytest

from protocol.messages.describe_producers import (
    DescribedProducer,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, ProducerId, TopicName
from storage.api import TopicPartition
from tests.topics.batches import batch
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import Plane
from tests.topics.transactions import TV1, Transactions


@pytest.fixture
def transactions(plane: Plane) -> Transactions:
    plane.given("a")
    return Transactions(plane)


def described(plane: Plane, name: str, *indexes: int) -> list[tuple[ErrorCode, str | None]]:
    request = DescribeProducersRequest((DescribeProducersTopic(TopicName(name), indexes or (0,)),))
    response = plane.ask(request, 0, DescribeProducersResponse)
    (topic,) = response.topics
    assert topic.name == name
    assert [part.partition_index for part in topic.partitions] == list(indexes or (0,))
    return [(part.error_code, part.error_message) for part in topic.partitions]


def producers(plane: Plane, name: str = "a") -> Sequence[DescribedProducer]:
    request = DescribeProducersRequest((DescribeProducersTopic(TopicName(name), (0,)),))
    (partition,) = plane.ask(request, 0, DescribeProducersResponse).topics[0].partitions
    assert partition.error_code is ErrorCode.NONE
    return partition.active_producers


@pytest.mark.parametrize("restarted", [False, True])
def test_every_producer_with_a_state_is_described(
    transactions: Transactions, restarted: bool
) -> None:
    plane = transactions.plane
    now_ms = plane.now.wall_ms
    transactions.given(b"a", b"b", producer=1)
    transactions.given(b"c", producer=2)
    transactions.end(commit=True, producer=2, coordinator_epoch=4)
    idempotent = batch(b"d", producer_id=3, producer_epoch=5, sequence=6, timestamp=now_ms)
    plane.produce("a", idempotent)
    if restarted:
        transactions.restart()
    assert list(producers(plane)) == [
        DescribedProducer(ProducerId(1), 0, 1, now_ms, -1, 0),
        DescribedProducer(ProducerId(2), 1, -1, now_ms, 4, -1),
        DescribedProducer(ProducerId(3), 5, 6, now_ms, -1, -1),
    ]


def test_what_cannot_be_described(plane: Plane) -> None:
    plane.given("a", 2)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    words = "This server does not host this topic-partition."
    assert described(plane, "b", 0, 1) == [(unknown, words)] * 2
    assert described(plane, "a", 1, 2) == [(ErrorCode.NONE, None), (unknown, None)]
    invalid = described(plane, "a b")
    assert invalid[0][0] is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "invalid" in (invalid[0][1] or "")


def test_producers_of_the_offsets_topic_are_asked_of_their_coordinator(plane: Plane) -> None:
    assert described(plane, OFFSETS_TOPIC)[0][0] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    key = TopicPartition(OFFSETS_TOPIC, 0)
    plane.data.attach(MemoryLog(key, plane.topic_id(OFFSETS_TOPIC), journaled=True))
    assert described(plane, OFFSETS_TOPIC)[0][0] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    known = [DescribedProducer(ProducerId(9), 1, 0, 1, 2, 3)]
    plane.data.transaction_admin.producers_of = {key: known}.get
    assert list(producers(plane, OFFSETS_TOPIC)) == known


def write(
    plane: Plane, *markers: WritableTxnMarker, version: int = 1
) -> list[list[tuple[str, int, ErrorCode]]]:
    response = plane.ask(WriteTxnMarkersRequest(markers), version, WriteTxnMarkersResponse)
    assert [each.producer_id for each in response.markers] == [
        marker.producer_id for marker in markers
    ]
    return [
        [
            (topic.name, partition.partition_index, partition.error_code)
            for topic in each.topics
            for partition in topic.partitions
        ]
        for each in response.markers
    ]


def marker(producer: int, epoch: int, *names: str, version: int = 0) -> WritableTxnMarker:
    topics = [WritableTxnMarkerTopic(TopicName(name), (0,)) for name in names]
    return WritableTxnMarker(
        ProducerId(producer), epoch, topics=topics, transaction_version=version
    )


def test_a_hanging_transaction_is_aborted(transactions: Transactions) -> None:
    plane = transactions.plane
    transactions.given(b"a")
    (hanging,) = producers(plane)
    assert hanging.current_txn_start_offset == 0
    assert write(plane, marker(hanging.producer_id, hanging.producer_epoch, "a")) == [
        [("a", 0, ErrorCode.NONE)]
    ]
    assert producers(plane)[0].current_txn_start_offset == -1
    data = transactions.read()
    assert data.last_stable_offset == 2
    assert [each.first_offset for each in data.aborted_transactions or ()] == [0]


def test_each_partition_of_each_marker_is_answered(transactions: Transactions) -> None:
    plane = transactions.plane
    transactions.end(commit=True, producer=7, epoch=3, version=TV1)
    refused = ErrorCode.INVALID_PRODUCER_EPOCH
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = (marker(8, 0, "a", "b"), marker(7, 2, "a"), marker(7, 3, "a"))
    assert write(plane, *asked) == [
        [("a", 0, ErrorCode.NONE), ("b", 0, unknown)],
        [("a", 0, refused)],
        [("a", 0, ErrorCode.NONE)],
    ]
    assert write(plane) == []


def test_version_2_has_the_rules_of_its_transactions(transactions: Transactions) -> None:
    plane = transactions.plane
    transactions.given(b"a", epoch=3)
    strict = marker(7, 3, "a", version=2)
    refused = [[("a", 0, ErrorCode.INVALID_PRODUCER_EPOCH)]]
    assert write(plane, strict, version=2) == refused
    assert write(plane, marker(7, 3, "a")) == [[("a", 0, ErrorCode.NONE)]]


def test_a_log_with_a_writer_of_its_own_gets_no_marker_here(plane: Plane) -> None:
    key = TopicPartition(OFFSETS_TOPIC, 0)
    log = MemoryLog(key, plane.topic_id(OFFSETS_TOPIC), journaled=True)
    plane.data.attach(log)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert write(plane, marker(7, 3, OFFSETS_TOPIC)) == [[(OFFSETS_TOPIC, 0, unknown)]]
    assert log.stored == []


@pytest.mark.parametrize(
    ("producer", "epoch", "error_code"),
    [
        (-1, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (7, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (7, -32_768, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_marker_needs_a_producer(
    transactions: Transactions, producer: int, epoch: int, error_code: ErrorCode
) -> None:
    assert write(transactions.plane, marker(producer, epoch, "a")) == [[("a", 0, error_code)]]
    assert transactions.read().high_watermark == 0
