"""Authorization table: each missing right in each API of transactions, as Kafka answers it."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pytest

from protocol.messages import Request
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.names import ErrorCode, GroupId, ProducerId, TopicName
from tests.rights import ON_CLUSTER, Right, Rights, refusals_in
from tests.transactions.world import TX, World, at

NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NO_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

TXN_WRITE: Final = ("WRITE", f"txn {TX}")
TXN_DESCRIBE: Final = ("DESCRIBE", f"txn {TX}")
TOPIC_WRITE: Final = ("WRITE", "topic orders")
TOPIC_DESCRIBE: Final = ("DESCRIBE", "topic orders")
GROUP_READ: Final = ("READ", "group g")
BROKER: Final = ("CLUSTER_ACTION", ON_CLUSTER)
IDEMPOTENT: Final = ("IDEMPOTENT_WRITE", ON_CLUSTER)

P: Final = ProducerId(1_000)
PER_PARTITION: Final = "results_by_topic_v3_and_below.results_by_partition.partition_error_code"


class Row(NamedTuple):
    """A request, and what it needs in the order in which Kafka asks: (right, place, error)."""

    request: Callable[[], Request]
    versions: Sequence[int]
    needs: Sequence[tuple[Right, str, ErrorCode]]


def add_partitions() -> Request:
    topics = [AddPartitionsToTxnTopic(TopicName("orders"), [0])]
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TX,
        v3_and_below_producer_id=P,
        v3_and_below_topics=topics,
    )


ROWS: Final = {
    "InitProducerId, idempotent": Row(
        lambda: InitProducerIdRequest(None), (0, 4, 5), [(IDEMPOTENT, "error_code", NO_CLUSTER)]
    ),
    "InitProducerId, transactional": Row(
        lambda: InitProducerIdRequest(TX, 1_000), (0, 4, 5), [(TXN_WRITE, "error_code", NO_ID)]
    ),
    "AddPartitionsToTxn": Row(
        add_partitions,
        (0, 3),
        [(TXN_WRITE, PER_PARTITION, NO_ID), (TOPIC_WRITE, PER_PARTITION, NO_TOPIC)],
    ),
    "AddPartitionsToTxn of a broker": Row(
        AddPartitionsToTxnRequest, (4, 5), [(BROKER, "error_code", NO_CLUSTER)]
    ),
    "AddOffsetsToTxn": Row(
        lambda: AddOffsetsToTxnRequest(TX, P, 0, GroupId("g")),
        (0, 3, 4),
        [(TXN_WRITE, "error_code", NO_ID), (GROUP_READ, "error_code", NO_GROUP)],
    ),
    "EndTxn": Row(
        lambda: EndTxnRequest(TX, P, 0, committed=True),
        (0, 3, 5),
        [(TXN_WRITE, "error_code", NO_ID)],
    ),
    "DescribeTransactions": Row(
        lambda: DescribeTransactionsRequest([TX]),
        (0,),
        [(TXN_DESCRIBE, "transaction_states.error_code", NO_ID)],
    ),
}

CASES: Final = [(name, version) for name, row in ROWS.items() for version in row.versions]


def given_producer() -> tuple[World, Rights]:
    """Its transaction has a partition of `orders`."""
    rights = Rights(allows_all=True)
    world = World(authorizer=rights)
    world.init()
    assert world.add(P, 0, at("orders")) is ErrorCode.NONE
    rights.asked.clear()
    return world, rights


@pytest.mark.parametrize(("name", "version"), CASES)
def test_each_missing_right_is_named_where_kafka_names_it(name: str, version: int) -> None:
    row = ROWS[name]
    world, rights = given_producer()
    for right, place, error_code in row.needs:
        rights.lacks(right)
        assert refusals_in(world.ask(row.request(), version)) == {(place, error_code)}
    rights.lacks()
    assert refusals_in(world.ask(row.request(), version)) == set()


@pytest.mark.parametrize(("name", "version"), CASES)
def test_of_all_missing_rights_the_first_is_named(name: str, version: int) -> None:
    row = ROWS[name]
    right, place, error_code = row.needs[0]
    world, rights = given_producer()
    rights.allows_all = False
    assert refusals_in(world.ask(row.request(), version)) == {(place, error_code)}
    assert rights.asked == [right]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_rights_come_before_a_coordinator_that_loads_or_is_elsewhere(
    name: str, version: int
) -> None:
    row = ROWS[name]
    _, place, error_code = row.needs[0]
    world, rights = given_producer()
    rights.allows_all = False
    world.coordinator.resign(0, world.now)
    for is_loading in (False, True):
        if is_loading:
            world.coordinator.begin_load(0, world.log)
        assert refusals_in(world.ask(row.request(), version)) == {(place, error_code)}


def test_writing_to_any_topic_allows_an_idempotent_producer() -> None:
    world, rights = given_producer()
    rights.allows_all = False
    rights.granted = {TOPIC_WRITE}
    assert refusals_in(world.ask(InitProducerIdRequest(None), 4)) == set()
    assert rights.logged == []


def test_topics_that_may_not_be_seen_are_left_out_of_a_description() -> None:
    world, rights = given_producer()
    world.add(P, 0, at("payments"))
    rights.lacks(TOPIC_DESCRIBE)
    response = world.ask(DescribeTransactionsRequest([TX]), 0)
    assert isinstance(response, DescribeTransactionsResponse)
    (described,) = response.transaction_states
    assert described.error_code is ErrorCode.NONE
    assert [topic.topic for topic in described.topics] == ["payments"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_transactions_are_listed_that_may_be_described(version: int) -> None:
    world, rights = given_producer()
    world.init("other")
    rights.lacks(TXN_DESCRIBE)
    response = world.ask(ListTransactionsRequest(), version)
    assert isinstance(response, ListTransactionsResponse)
    assert response.error_code is ErrorCode.NONE
    assert [listed.transactional_id for listed in response.transaction_states] == ["other"]


def test_no_client_may_write_to_internal_topics() -> None:
    """Not even with the right: Kafka takes them out before it asks."""
    world, _ = given_producer()
    assert world.add(P, 0, at("__consumer_offsets")) is NO_TOPIC
