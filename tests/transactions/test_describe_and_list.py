"""DescribeTransactions and ListTransactions: what is shown, and which filters match."""

from collections.abc import Sequence

import pytest

from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.list_transactions import ListTransactionsResponse
from protocol.names import ErrorCode
from tests.transactions.world import TIMEOUT_MS, World, at
from transactions import requests

NONE = ErrorCode.NONE
STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]


@pytest.fixture
def each_state(world: World) -> World:
    """A transactional id in each state, called like it."""
    for state in STATES:
        _, producer_id, _ = world.init(state)
        partition = at("orders", 1 if state.startswith("Prepare") else 0)
        if state != "Empty":
            world.produce(producer_id, 0, partition, transactional_id=state)
        if state.startswith("Prepare"):
            world.partitions.errors[partition] = ErrorCode.REQUEST_TIMED_OUT
        if state not in ("Empty", "Ongoing"):
            world.end(producer_id, 0, commit=state.endswith("Commit"), transactional_id=state)
    return world


def names(response: ListTransactionsResponse) -> list[str]:
    assert response.error_code is NONE
    return [listed.transactional_id for listed in response.transaction_states]


# ------------------------------------------------------------ DescribeTransactions


def test_each_state_is_described(each_state: World) -> None:
    described = each_state.describe(*STATES)
    assert [found.transaction_state for found in described] == STATES
    assert {found.error_code for found in described} == {NONE}
    assert {found.transaction_timeout_ms for found in described} == {TIMEOUT_MS}
    assert [found.producer_epoch for found in described] == [0, 0, 1, 1, 1, 1]
    began_ms = each_state.now.wall_ms
    assert [found.transaction_start_time_ms for found in described] == [-1] + 5 * [began_ms]
    topics = [[(t.topic, list(t.partitions)) for t in found.topics] for found in described]
    assert topics == [[], [("orders", [0])], [("orders", [1])], [("orders", [1])], [], []]


def test_unknown_and_empty_ids(world: World) -> None:
    found = world.describe("", "nothing")
    assert [state.error_code for state in found] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ]
    assert [state.transactional_id for state in found] == ["", "nothing"]


def test_what_is_pending_is_not_shown(world: World) -> None:
    world.init()
    world.add(1_000, 0)
    world.storing = False
    world.send(world.end_request(1_000, 0))
    assert world.describe()[0].transaction_state == "Ongoing"


def test_answer_has_a_limit(each_state: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small request may name one large transaction many times."""

    class SmallBudget(requests.AnswerBudget):
        def __init__(self) -> None:
            super().__init__()
            self._left = 40

    monkeypatch.setattr(requests, "AnswerBudget", SmallBudget)
    found = each_state.describe(*(["Ongoing"] * 5))
    assert [state.error_code for state in found] == [NONE] * 2 + [ErrorCode.INVALID_REQUEST] * 3


def test_no_ids(world: World) -> None:
    response = world.ask(DescribeTransactionsRequest(()))
    assert getattr(response, "transaction_states", None) == []


# ------------------------------------------------------------ ListTransactions


def test_every_id_is_listed(each_state: World) -> None:
    response = each_state.list()
    assert names(response) == STATES
    assert [listed.transaction_state for listed in response.transaction_states] == STATES
    assert [listed.producer_id for listed in response.transaction_states] == list(
        range(1_000, 1_006)
    )


@pytest.mark.parametrize(
    ("filters", "found", "unknown"),
    [
        (["Ongoing"], ["Ongoing"], []),
        (["Ongoing", "Empty"], ["Empty", "Ongoing"], []),
        (["ongoing"], [], ["ongoing"]),
        (["Nothing", "Ongoing", "Nothing"], ["Ongoing"], ["Nothing"]),
        (["Dead"], [], []),
        (["PrepareEpochFence"], [], []),
    ],
)
def test_filter_of_states(
    each_state: World, filters: Sequence[str], found: Sequence[str], unknown: Sequence[str]
) -> None:
    response = each_state.list(state_filters=filters)
    assert names(response) == found
    assert response.unknown_state_filters == unknown


def test_filter_of_producer_ids(each_state: World) -> None:
    assert names(each_state.list(producer_id_filters=[1_001, 1_003, 7])) == [STATES[1], STATES[3]]


def test_filter_of_durations(each_state: World) -> None:
    """Without a transaction the start is -1: as in Kafka, longer ago than any duration."""
    assert names(each_state.list(duration_filter=0)) == ["Empty"]
    each_state.advance(100)
    assert names(each_state.list(duration_filter=100)) == ["Empty"]
    assert names(each_state.list(duration_filter=99)) == STATES
    assert names(each_state.list(duration_filter=-1)) == STATES


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (None, STATES),
        ("", STATES),
        ("Complete.*", STATES[4:]),
        ("Complete", []),  # the whole id has to match
        (".*Abort|Empty", ["Empty", "PrepareAbort", "CompleteAbort"]),
    ],
)
def test_pattern_of_ids(each_state: World, pattern: str | None, found: Sequence[str]) -> None:
    assert names(each_state.list(transactional_id_pattern=pattern)) == found


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=x)"])
def test_pattern_that_is_not_valid(each_state: World, pattern: str) -> None:
    response = each_state.list(transactional_id_pattern=pattern)
    assert response.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert response.transaction_states == ()


def test_filters_together(each_state: World) -> None:
    response = each_state.list(
        state_filters=["CompleteCommit", "Ongoing"], transactional_id_pattern="C.*"
    )
    assert names(response) == ["CompleteCommit"]


def test_open_transactions_for_the_console(each_state: World) -> None:
    shown = each_state.coordinator.open_transactions()
    assert [found.transactional_id for found in shown] == STATES[1:4]
    assert [found.state.wire_name for found in shown] == STATES[1:4]
    assert [found.partitions for found in shown] == [
        {at("orders")},
        {at("orders", 1)},
        {at("orders", 1)},
    ]
