"""AddPartitionsToTxn and AddOffsetsToTxn: every check in its order, by version."""

import pytest

from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, ProducerId, TopicName
from seams.java_hash import partition_of
from storage.api import TopicPartition
from tests.transactions.world import World, at
from transactions.events import TransactionBegun, TransactionPartitionsAdded
from transactions.settings import TransactionSettings

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED_BY_VERSION = [
    (0, ErrorCode.INVALID_PRODUCER_EPOCH),
    (1, ErrorCode.INVALID_PRODUCER_EPOCH),
    (2, ErrorCode.PRODUCER_FENCED),
    (3, ErrorCode.PRODUCER_FENCED),
]


def test_one_bad_partition_keeps_all_from_being_added(world: World) -> None:
    world.init()
    assert world.add_each(1_000, 0, at("orders"), at("nothing"), at("orders", 9)) == {
        at("orders"): ErrorCode.OPERATION_NOT_ATTEMPTED,
        at("nothing"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        at("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert world.add_each(1_000, 0, at(OFFSETS_TOPIC), at("orders")) == {
        at(OFFSETS_TOPIC): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        at("orders"): ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
    assert world.state == "Empty"


def test_topics_are_checked_before_the_coordinator() -> None:
    world = World(partition_count=0)
    assert world.add(1_000, 0, at("nothing")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.add(1_000, 0, at("orders")) is ErrorCode.NOT_COORDINATOR


def test_empty_id_is_invalid(world: World) -> None:
    assert world.add(1_000, 0, transactional_id="") is ErrorCode.INVALID_REQUEST
    assert world.add_offsets(1_000, 0, transactional_id="") is ErrorCode.INVALID_REQUEST


def test_unknown_id_and_other_producer(world: World) -> None:
    assert world.add(1_000, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.add_offsets(1_000, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    world.init()
    assert world.add(999, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.add_offsets(999, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(("v", "error_code"), FENCED_BY_VERSION)
@pytest.mark.parametrize("epoch", [0, 2])
def test_other_epoch_is_fenced(world: World, epoch: int, v: int, error_code: ErrorCode) -> None:
    world.init()
    world.init()
    assert world.add(1_000, epoch, v=v) is error_code
    assert world.add_offsets(1_000, epoch, v=v) is error_code


def test_first_partition_begins_the_transaction(world: World) -> None:
    world.init()
    world.advance(5_000)
    began_ms = world.now.wall_ms
    assert world.add(1_000, 0, at("orders")) is NONE
    world.advance(1_000)
    assert world.add(1_000, 0, at("orders", 1)) is NONE
    assert world.state == "Ongoing"
    assert world.metadata.started_at_ms == began_ms
    assert world.metadata.last_update_at_ms == began_ms + 1_000
    assert world.metadata.partitions == {at("orders"), at("orders", 1)}
    (begun,) = world.happened(TransactionBegun)
    (added,) = world.happened(TransactionPartitionsAdded)
    assert isinstance(begun, TransactionBegun)
    assert isinstance(added, TransactionPartitionsAdded)
    assert (begun.partitions, added.partitions) == ({at("orders")}, {at("orders", 1)})


def test_partitions_that_are_there_need_no_record(world: World) -> None:
    world.init()
    world.add(1_000, 0, at("orders"), at("orders", 1))
    records = len(world.log.records)
    assert world.add(1_000, 0, at("orders", 1)) is NONE
    assert len(world.log.records) == records


def test_no_topics_open_a_transaction_without_partitions(world: World) -> None:
    world.init()
    assert world.add_each(1_000, 0) == {}
    assert world.state == "Ongoing"
    assert world.end(1_000, 0, v=4) == (NONE, -1, -1)
    assert world.state == "CompleteCommit"
    assert world.partitions.markers == []


def test_pending_and_prepared_are_busy(world: World) -> None:
    world.init()
    world.add(1_000, 0)
    world.partitions.hold()
    world.send(world.end_request(1_000, 0, commit=False))
    assert world.state == "PrepareAbort"
    assert world.add(1_000, 0) is BUSY  # whatever its epoch
    assert world.add(1_000, 1) is BUSY
    assert world.add_offsets(1_000, 1) is BUSY


def test_client_transaction_version_is_that_of_the_last_add(world: World) -> None:
    world.init()
    world.add(1_000, 0, at("orders"))
    assert world.metadata.client_transaction_version == 0
    world.produced(1_000, 0, at("orders", 1))
    assert world.metadata.client_transaction_version == 2
    world.add_offsets(1_000, 0)
    assert world.metadata.client_transaction_version == 0


@pytest.mark.parametrize("group_id", ["", "group", "g\u00fc"])
def test_offsets_partition_of_a_group(world: World, group_id: str) -> None:
    world.init()
    assert world.add_offsets(1_000, 0, group_id) is NONE
    assert world.metadata.partitions == {at(OFFSETS_TOPIC, partition_of(group_id, 50))}


def test_record_that_would_be_too_large() -> None:
    world = World(TransactionSettings(max_batch_bytes=400))
    world.topics.counts["orders"] = 200
    world.init()
    many = [at("orders", n) for n in range(100)]
    assert world.add(1_000, 0, *many) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.state == "Empty"
    assert world.add(1_000, 0, *many[:10]) is NONE
    assert world.end(1_000, 0)[0] is NONE


# ------------------------------------------------------------ v4 and v5: what brokers send


def from_broker(
    world: World, *asked: tuple[str, int, int, bool, tuple[TopicPartition, ...]]
) -> list[dict[TopicPartition, ErrorCode]]:
    transactions = [
        AddPartitionsToTxnTransaction(
            name,
            ProducerId(producer_id),
            epoch,
            verify_only,
            [AddPartitionsToTxnTopic(TopicName(p.topic), [p.partition]) for p in partitions],
        )
        for name, producer_id, epoch, verify_only, partitions in asked
    ]
    response = world.ask(AddPartitionsToTxnRequest(transactions=transactions), 4)
    assert isinstance(response, AddPartitionsToTxnResponse)
    assert response.error_code is NONE
    return [
        {
            at(topic.name, result.partition_index): result.partition_error_code
            for topic in results.topic_results
            for result in topic.results_by_partition
        }
        for results in response.results_by_transaction
    ]


def test_request_of_a_broker(world: World) -> None:
    world.init("a")
    world.init("b")
    orders = (at("orders"),)
    found = from_broker(
        world,
        ("a", 1_000, 0, False, orders),
        ("a", 1_000, 0, True, (at("orders"), at("orders", 1))),
        ("b", 1_001, 5, False, orders),
        ("b", 1_001, 5, True, orders),
        ("b", 1_000, 0, True, orders),
        ("c", 1_000, 0, True, orders),
        ("b", 1_001, 0, False, (at("nothing"), at("orders"))),
    )
    assert found == [
        {at("orders"): NONE},
        {
            at("orders"): ErrorCode.TRANSACTION_ABORTABLE,
            at("orders", 1): ErrorCode.TRANSACTION_ABORTABLE,
        },
        {at("orders"): ErrorCode.PRODUCER_FENCED},
        {at("orders"): ErrorCode.PRODUCER_FENCED},
        {at("orders"): ErrorCode.INVALID_PRODUCER_ID_MAPPING},
        {at("orders"): ErrorCode.INVALID_PRODUCER_ID_MAPPING},
        {
            at("nothing"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            at("orders"): ErrorCode.OPERATION_NOT_ATTEMPTED,
        },
    ]
    (found_again,) = from_broker(world, ("a", 1_000, 0, True, (at("orders"), at("orders", 1))))
    assert found_again == {at("orders"): NONE, at("orders", 1): ErrorCode.TRANSACTION_ABORTABLE}


def test_empty_request_of_a_broker_is_answered(world: World) -> None:
    assert from_broker(world) == []
