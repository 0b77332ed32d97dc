"""Bugs: one in a decision fails its request, one after that ends its shard and no other."""

import pytest

from protocol.messages.end_txn import EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdResponse
from protocol.names import ErrorCode
from tests.transactions.world import World, at
from transactions import evolve, shard
from transactions.ending import Ending
from transactions.shard import TransactionShard

NONE = ErrorCode.NONE


class Bug(Exception):
    """Ours."""


def raise_bug(*_: object, **__: object) -> None:
    raise Bug


def test_bug_in_a_decision_fails_its_request_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.init()
    with monkeypatch.context() as planted:
        planted.setattr(shard, "decide_transaction", raise_bug)
        with pytest.raises(Bug):
            world.send(world.end_request(1_000, 0))
    answer = world.replies[-1]
    assert isinstance(answer, EndTxnResponse)
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.failures == []
    assert world.end(1_000, 0, commit=False)[0] is NONE


def test_bug_after_the_append_ends_the_shard(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.init()
    world.produced(1_000, 0)
    world.storing = False
    waiting = world.produce(1_000, 0, at("orders", 1), wait=True)
    with monkeypatch.context() as planted:
        planted.setattr(evolve, "apply", raise_bug)
        world.coordinator.on_stored(0, world.log.store(), world.now)
    ((partition, failure),) = world.failures
    assert (partition, type(failure)) == (0, Bug)
    assert waiting == [{at("orders", 1): ErrorCode.NOT_COORDINATOR}]
    assert world.init()[0] is ErrorCode.NOT_COORDINATOR
    world.storing = True
    world.load(0)
    assert world.metadata.partitions == {at("orders"), at("orders", 1)}


def test_bug_in_the_turn_of_a_request_ends_the_shard(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.init()
    with monkeypatch.context() as planted:
        planted.setattr(TransactionShard, "_append", raise_bug)
        token = world.send(world.end_request(1_000, 0, commit=False))
    (answer,) = token.answers
    assert isinstance(answer, EndTxnResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert len(world.failures) == 1


def test_bug_in_what_follows_ends_the_shard(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    world.end(1_000, 0)
    with monkeypatch.context() as planted:
        planted.setattr(Ending, "_marked", raise_bug)
        world.partitions.release()
        world.run()
    assert len(world.failures) == 1
    world.load(0)
    assert world.state == "CompleteCommit"


def test_bug_in_a_tick_ends_the_shard(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.init()
    with monkeypatch.context() as planted:
        planted.setattr(TransactionShard, "tick", raise_bug)
        world.advance(10_000)
    assert len(world.failures) == 1
    assert world.coordinator.next_deadline_ms is None


def test_other_partitions_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(partition_count=2)
    by_partition = {world.coordinator.partition_for(name): name for name in "abcd"}
    world.init(by_partition[0])
    world.init(by_partition[1])
    world.coordinator.on_log_failed(0, world.now)
    assert world.init(by_partition[0])[0] is ErrorCode.NOT_COORDINATOR
    assert world.init(by_partition[1])[0] is NONE
    assert world.coordinator.transactional_ids == 1


def test_partitions_that_answer_outside_of_a_turn_wake_the_coordinator(world: World) -> None:
    world.init()
    world.produced(1_000, 0)
    world.partitions.hold()
    world.end(1_000, 0)
    world.wakes = 0
    world.partitions.release()
    assert world.wakes == 1
    assert world.coordinator.next_deadline_ms == 0
    world.coordinator.tick(world.now)
    assert world.coordinator.next_deadline_ms != 0
    world.store()
    assert world.state == "CompleteCommit"


def test_decision_that_fails_when_its_producer_id_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ids.hold()
    token = world.init_lost()
    monkeypatch.setattr(shard, "decide_transaction", raise_bug)
    world.ids.give()
    world.run()
    (answer,) = token.answers
    assert isinstance(answer, InitProducerIdResponse)
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.failures) == 1


def test_shard_that_ends_while_it_asks_waiting_requests_again(world: World) -> None:
    world.init()
    world.storing = False
    answers: list[object] = []

    def close(errors: object) -> None:
        answers.append(errors)
        world.coordinator.on_log_failed(0, world.now)

    world.produce(1_000, 0, done=close)
    later = world.produce(1_000, 0, at("orders", 1), wait=True)
    world.store()
    assert answers == [{at("orders"): NONE}]
    assert later == [{at("orders", 1): ErrorCode.NOT_COORDINATOR}]
