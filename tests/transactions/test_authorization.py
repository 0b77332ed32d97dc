"""Authorization: where it is asked for, and what a client without it hears."""

from collections.abc import Iterable

import pytest

from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from protocol.names import ErrorCode, GroupId, TopicName, TransactionalId
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from tests.transactions.world import TX, World, at

NONE = ErrorCode.NONE
NO_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Forbids(Authorizer):
    """Forbids what it is told to."""

    def __init__(self) -> None:
        self.forbidden: set[str] = set()

    def may_read_group(self, _token: ReplyToken, group_id: GroupId, /) -> bool:
        return f"read {group_id}" not in self.forbidden

    def describable_topics(
        self, _token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        return frozenset(t for t in topics if f"describe {t}" not in self.forbidden)

    def writable_topics(
        self, _token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        return frozenset(t for t in topics if f"write {t}" not in self.forbidden)

    def may_write_transactional_id(self, _token: ReplyToken, name: TransactionalId, /) -> bool:
        return f"write {name}" not in self.forbidden

    def may_describe_transactional_id(self, _token: ReplyToken, name: TransactionalId, /) -> bool:
        return f"describe {name}" not in self.forbidden

    def may_write_idempotently(self, _token: ReplyToken, /) -> bool:
        return "idempotent" not in self.forbidden

    def may_act_as_broker(self, _token: ReplyToken, /) -> bool:
        return "cluster" not in self.forbidden


@pytest.fixture
def forbids() -> Forbids:
    return Forbids()


@pytest.fixture
def world(forbids: Forbids) -> World:
    return World(authorizer=forbids)


def test_write_on_the_transactional_id(world: World, forbids: Forbids) -> None:
    world.init()
    forbids.forbidden.add(f"write {TX}")
    # It comes before all other checks.
    assert world.init(TX, 5, -1) == (NO_ID, -1, -1)
    assert world.add_each(1_000, 0, at("orders"), at("nothing")) == {
        at("orders"): NO_ID,
        at("nothing"): NO_ID,
    }
    forbids.forbidden.add("read group")
    assert world.add_offsets(1_000, 0) is NO_ID
    assert world.end(1_000, 0) == (NO_ID, -1, -1)


def test_idempotent_write(world: World, forbids: Forbids) -> None:
    forbids.forbidden.add("idempotent")
    assert world.init(None) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, -1, -1)
    assert world.init()[0] is NONE


def test_write_on_topics_and_read_on_groups(world: World, forbids: Forbids) -> None:
    world.init()
    forbids.forbidden |= {"write payments", "read group"}
    assert world.add_each(1_000, 0, at("orders"), at("payments")) == {
        at("orders"): ErrorCode.OPERATION_NOT_ATTEMPTED,
        at("payments"): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert world.add_offsets(1_000, 0) is ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_describe(world: World, forbids: Forbids) -> None:
    for name in ("a", "b"):
        _, producer_id, _ = world.init(name)
        world.produce(producer_id, 0, at("orders"), at("payments"), transactional_id=name)
    forbids.forbidden |= {"describe a", "describe payments"}
    first, second = world.describe("a", "b")
    assert first.error_code is NO_ID
    assert [topic.topic for topic in second.topics] == ["orders"]  # the other is left out
    assert [listed.transactional_id for listed in world.list().transaction_states] == ["b"]


def test_requests_of_brokers(world: World, forbids: Forbids) -> None:
    forbids.forbidden.add("cluster")
    response = world.ask(AddPartitionsToTxnRequest(), 4)
    assert isinstance(response, AddPartitionsToTxnResponse)
    assert response.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
