"""One transaction: from its begin to its end, with every version of the requests."""

import pytest

from protocol.names import ErrorCode
from tests.transactions.world import TX, World, at

NONE = ErrorCode.NONE


def test_commit_with_transaction_version_2(world: World) -> None:
    assert world.init() == (NONE, 1_000, 0)
    assert world.produced(1_000, 0, at("orders"), at("payments", 1)) is NONE
    assert world.state == "Ongoing"
    assert world.end(1_000, 0) == (NONE, 1_000, 1)
    assert world.state == "CompleteCommit"
    assert world.partitions.synced == [(at("orders"), at("payments", 1))]
    assert world.partitions.of(at("orders")) == [(True, 1_000, 1)]
    assert world.partitions.of(at("payments", 1)) == [(True, 1_000, 1)]


@pytest.mark.parametrize("v", range(5))
def test_commit_with_older_requests(world: World, v: int) -> None:
    world.version = 1
    assert world.init(v=min(v, 4)) == (NONE, 1_000, 0)
    assert world.add(1_000, 0, at("orders"), v=min(v, 3)) is NONE
    assert world.add_offsets(1_000, 0, v=v) is NONE
    assert world.end(1_000, 0, v=v) == (NONE, -1, -1)
    assert world.state == "CompleteCommit"
    assert world.partitions.of(at("orders")) == [(True, 1_000, 0)]
    assert world.add(1_000, 0, at("orders")) is NONE  # the epoch stays


def test_abort_needs_no_sync(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    assert world.end(1_000, 0, commit=False) == (NONE, 1_000, 1)
    assert world.state == "CompleteAbort"
    assert world.partitions.synced == []
    assert world.partitions.of(at("orders")) == [(False, 1_000, 1)]


def test_transaction_is_shown_while_it_is_open(world: World) -> None:
    world.init()
    assert world.coordinator.open_transactions() == []
    world.add(1_000, 0, at("orders"))
    (shown,) = world.coordinator.open_transactions()
    assert (shown.transactional_id, shown.producer_id, shown.client_id) == (TX, 1_000, "client")
    assert shown.partitions == {at("orders")}
    world.end(1_000, 0)
    assert world.coordinator.open_transactions() == []
