"""Verification and implicit adds: what Produce and TxnOffsetCommit hear (KIP-890)."""

import pytest

from protocol.names import ErrorCode
from tests.memory_log import MemoryLog
from tests.transactions.world import World, at
from transactions.settings import TransactionSettings

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
ORDERS = at("orders")


@pytest.mark.parametrize("add", [False, True])
def test_unknown_id_other_producer_and_other_epoch(world: World, add: bool) -> None:
    assert world.produced(1_000, 0, add=add) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    world.init()
    world.init()
    assert world.produced(999, 1, add=add) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for epoch in (0, 2):  # never PRODUCER_FENCED
        assert world.produced(1_000, epoch, add=add) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("add", [False, True])
def test_coordinator_is_not_there(add: bool) -> None:
    world = World(partition_count=0)
    assert world.produced(1_000, 0, add=add) is ErrorCode.NOT_COORDINATOR
    world.coordinator.partition_count = 1
    assert world.produced(1_000, 0, add=add) is ErrorCode.NOT_COORDINATOR
    world.coordinator.begin_load(0, MemoryLog())
    assert world.produced(1_000, 0, add=add) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_verified_partition_by_partition(world: World) -> None:
    world.init()
    world.add(1_000, 0, ORDERS)
    (errors,) = world.produce(1_000, 0, ORDERS, at("orders", 1), add=False)
    assert errors == {ORDERS: NONE, at("orders", 1): ErrorCode.TRANSACTION_ABORTABLE}


def test_verification_ignores_what_is_pending(world: World) -> None:
    world.init()
    world.add(1_000, 0, ORDERS)
    world.storing = False
    world.send(world.end_request(1_000, 0))
    assert world.produced(1_000, 0, add=False) is NONE
    world.partitions.hold()
    world.store()
    assert world.state == "PrepareCommit"
    # A late batch must not get in; with version 2 its epoch is old by now.
    assert world.produced(1_000, 0, add=False) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_late_batch_of_an_older_client(world: World) -> None:
    world.init()
    world.add(1_000, 0, ORDERS)
    world.partitions.hold()
    world.send(world.end_request(1_000, 0, commit=False), 4)
    assert world.produced(1_000, 0, add=False) is BUSY
    world.partitions.release()
    world.run()
    assert world.produced(1_000, 0, add=False) is ErrorCode.TRANSACTION_ABORTABLE


def test_add_is_answered_when_it_is_stored(world: World) -> None:
    """Durability 1: the partition is in the transaction before its first batch is written."""
    world.init()
    world.storing = False
    answers = world.produce(1_000, 0)
    assert answers == []
    world.store()
    assert answers == [{ORDERS: NONE}]
    assert world.metadata.partitions == {ORDERS}
    assert world.metadata.client_transaction_version == 2


def test_add_without_wait_is_busy_at_once(world: World) -> None:
    world.init()
    world.storing = False
    world.produce(1_000, 0)
    assert world.produced(1_000, 0, at("orders", 1)) is BUSY


def test_adds_that_wait_follow_each_other(world: World) -> None:
    world.init()
    world.storing = False
    first = world.produce(1_000, 0, ORDERS, wait=True)
    second = world.produce(1_000, 0, at("orders", 1), wait=True)
    third = world.produce(1_000, 0, ORDERS, wait=True)
    assert (first, second, third) == ([], [], [])
    world.store()
    assert (first, second) == ([{ORDERS: NONE}], [])
    world.store()
    assert second == [{at("orders", 1): NONE}]
    assert third == [{ORDERS: NONE}]


def test_add_waits_for_the_markers_of_the_transaction_before(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    ended = world.send(world.end_request(1_000, 0, commit=False))
    assert len(ended.answers) == 1
    answers = world.produce(1_000, 1, wait=True)
    world.advance(50)
    assert answers == []
    world.partitions.release()
    world.run()
    assert answers == [{ORDERS: NONE}]
    assert world.state == "Ongoing"


def test_add_waits_no_longer_than_the_setting() -> None:
    world = World(TransactionSettings(add_partitions_to_txn_retry_backoff_max_ms=100))
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    world.send(world.end_request(1_000, 0, commit=False))
    answers = world.produce(1_000, 1, wait=True)
    world.advance(99)
    assert answers == []
    world.advance(1)
    assert answers == [{ORDERS: BUSY}]


def test_waiting_add_of_a_producer_that_was_fenced_meanwhile(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    world.init()
    answers = world.produce(1_000, 0, wait=True)
    world.partitions.release()
    world.run()
    assert answers == [{ORDERS: ErrorCode.INVALID_PRODUCER_EPOCH}]


def test_waiting_requests_are_answered_when_the_partition_is_closed(world: World) -> None:
    world.init()
    world.storing = False
    first = world.produce(1_000, 0, wait=True)
    second = world.produce(1_000, 0, at("orders", 1), wait=True)
    world.coordinator.on_log_failed(0, world.now)
    assert first == [{ORDERS: ErrorCode.NOT_COORDINATOR}]
    assert second == [{at("orders", 1): ErrorCode.NOT_COORDINATOR}]
