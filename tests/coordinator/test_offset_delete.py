"""OffsetDelete: a group keeps the offsets of what it subscribes to and forgets the others."""

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.offsets.events import DeletionCause, OffsetsDeleted
from coordinator.offsets.offset_delete import decide_offset_delete, refuse_offset_delete
from coordinator.outcome import Outcome
from coordinator.records import offset_commit_key
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.names import ErrorCode, GroupId, GroupState, TopicName
from storage.api import Record
from tests.coordinator.offset_givens import (
    GROUP,
    NOW,
    ORDERS,
    TOPICS,
    carry_out,
    committed,
    given_group,
    the_answer,
    token,
    with_offsets,
)

EMPTY, STABLE = GroupState.EMPTY, GroupState.STABLE
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
NONE = ErrorCode.NONE


def delete(
    group: ClassicGroup | None, *topics: tuple[str, list[int]], group_id: str = GROUP
) -> Outcome:
    asked = [
        OffsetDeleteRequestTopic(TopicName(name), [OffsetDeleteRequestPartition(n) for n in ns])
        for name, ns in topics
    ]
    request = OffsetDeleteRequest(GroupId(group_id), asked)
    return decide_offset_delete(group, request, token(0), NOW, TOPICS)


def rows(outcome: Outcome) -> list[tuple[str, int, ErrorCode]]:
    answer = the_answer(outcome)
    assert isinstance(answer, OffsetDeleteResponse)
    assert answer.error_code is NONE
    return [(t.name, p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]


def with_orders(group: ClassicGroup) -> ClassicGroup:
    return with_offsets(group, ("orders", 0, committed(10)), ("orders", 1, committed(20)))


@pytest.mark.parametrize(
    ("state", "kind", "expected"),
    [
        (EMPTY, "consumer", NONE),
        (EMPTY, "connect", NONE),
        (EMPTY, None, NONE),
        (STABLE, "consumer", NONE),
        (PREPARING, "consumer", NONE),
        (COMPLETING, "consumer", NONE),
        (STABLE, "connect", ErrorCode.NON_EMPTY_GROUP),
        (PREPARING, "connect", ErrorCode.NON_EMPTY_GROUP),
        (COMPLETING, "connect", ErrorCode.NON_EMPTY_GROUP),
        (GroupState.DEAD, "consumer", ErrorCode.GROUP_ID_NOT_FOUND),
        (None, None, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_the_group_answers_first_and_for_the_whole_request(
    state: GroupState | None, kind: str | None, expected: ErrorCode
) -> None:
    group = None if state is None else with_orders(given_group(state, kind))

    outcome = delete(group, ("orders", [0]), ("nowhere", [5]))

    answer = the_answer(outcome)
    assert isinstance(answer, OffsetDeleteResponse)
    assert answer.error_code is expected
    # With an error of the group's no topic is mentioned, not even one that does not exist.
    assert bool(answer.topics) is (expected is NONE)
    assert bool(outcome.records) is (expected is NONE)


@pytest.mark.parametrize("group", [None, given_group(EMPTY)])
def test_the_empty_group_id_is_refused(group: ClassicGroup | None) -> None:
    answer = the_answer(delete(group, ("orders", [0]), group_id=""))

    assert answer == OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)


@pytest.mark.parametrize(
    ("subscribed", "kind", "expected"),
    [
        (frozenset(), "consumer", NONE),
        (frozenset({"audit"}), "consumer", NONE),
        (frozenset({"orders", "audit"}), "consumer", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
        # Consumers whose subscription nobody can read are taken to read everything.
        (None, "consumer", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    ],
)
def test_offsets_of_a_subscribed_topic_are_kept(
    subscribed: frozenset[str] | None, kind: str, expected: ErrorCode
) -> None:
    group = with_orders(given_group(STABLE, kind, subscribed))

    outcome = delete(group, ("orders", [0, 1]))

    assert rows(outcome) == [("orders", 0, expected), ("orders", 1, expected)]
    assert len(outcome.records) == (2 if expected is NONE else 0)


@pytest.mark.parametrize("kind", [None, "connect"])
def test_a_group_that_is_not_of_consumers_subscribes_to_nothing(kind: str | None) -> None:
    outcome = delete(with_orders(given_group(EMPTY, kind, None)), ("orders", [1]))

    assert rows(outcome) == [("orders", 1, NONE)]


def test_what_was_never_committed_is_forgotten_without_a_word() -> None:
    outcome = delete(with_orders(given_group(EMPTY)), ("orders", [2]), ("audit", [0]))

    assert rows(outcome) == [("orders", 2, NONE), ("audit", 0, NONE)]
    assert not outcome.records
    assert not outcome.events


def test_what_does_not_exist_is_refused_before_the_rest_and_a_topic_stands_once() -> None:
    group = with_orders(given_group(STABLE, subscribed=frozenset({"audit"})))

    outcome = delete(group, ("audit", [0]), ("orders", [0, 7]), ("nowhere", [1]))

    assert rows(outcome) == [
        ("orders", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0, NONE),
        ("nowhere", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("audit", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    ]
    assert list(outcome.records) == [Record(offset_commit_key(GROUP, ORDERS, 0), None)]


def test_a_topic_without_partitions_is_mentioned_only_if_it_does_not_exist() -> None:
    answer = the_answer(delete(given_group(EMPTY), ("orders", []), ("nowhere", [])))

    assert isinstance(answer, OffsetDeleteResponse)
    assert [topic.name for topic in answer.topics] == ["nowhere"]


def test_the_offsets_are_gone_afterwards_and_the_event_says_which() -> None:
    group = with_orders(given_group(EMPTY))

    outcome = delete(group, ("orders", [0]))

    (event,) = outcome.events
    assert event == OffsetsDeleted(
        GROUP,
        NOW.wall_ms,
        DeletionCause.REQUESTED,
        [(ORDERS, {0: committed(10)})],
        "a-client",
        "/10.0.0.1",
    )
    assert carry_out(group, outcome).offsets == {ORDERS: {1: committed(20)}}
    # With its last partition a topic leaves the group.
    outcome = delete(group, ("orders", [1]))
    assert carry_out(group, outcome).offsets == {}


def test_a_coordinator_without_the_group_answers_for_the_whole_request() -> None:
    assert refuse_offset_delete(ErrorCode.NOT_COORDINATOR) == OffsetDeleteResponse(
        ErrorCode.NOT_COORDINATOR
    )
