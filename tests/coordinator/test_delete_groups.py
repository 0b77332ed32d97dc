"""DeleteGroups: only a group without members goes, and all that it committed goes with it."""

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.delete_groups import decide_delete_group
from coordinator.events import GroupDeleted
from coordinator.offsets.events import DeletionCause
from coordinator.records import GROUP_METADATA, group_tombstone, read_offset_key, record_type
from coordinator.restore import apply_record
from protocol.names import ErrorCode, GroupState
from storage.api import StoredRecord
from tests.coordinator.offset_givens import (
    AUDIT,
    GROUP,
    NOW,
    ORDERS,
    carry_out,
    committed,
    given_group,
    with_offsets,
)


def with_some_offsets(group: ClassicGroup) -> ClassicGroup:
    return with_offsets(
        group, ("orders", 0, committed(1)), ("orders", 2, committed(2)), ("audit", 0, committed(3))
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (GroupState.EMPTY, ErrorCode.NONE),
        (GroupState.PREPARING_REBALANCE, ErrorCode.NON_EMPTY_GROUP),
        (GroupState.COMPLETING_REBALANCE, ErrorCode.NON_EMPTY_GROUP),
        (GroupState.STABLE, ErrorCode.NON_EMPTY_GROUP),
        (GroupState.DEAD, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_the_result_follows_from_the_state(state: GroupState, expected: ErrorCode) -> None:
    error_code, outcome = decide_delete_group(with_some_offsets(given_group(state)), NOW, "c", "/h")

    assert error_code is expected
    assert bool(outcome.records) is (expected is ErrorCode.NONE)
    assert bool(outcome.events) is (expected is ErrorCode.NONE)


def test_a_group_that_does_not_exist_cannot_be_deleted() -> None:
    error_code, outcome = decide_delete_group(None, NOW, "c", "/h")

    assert error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert not outcome.records


def test_tombstones_end_every_offset_and_the_group_comes_last() -> None:
    group = with_some_offsets(given_group(GroupState.EMPTY))

    _, outcome = decide_delete_group(group, NOW, "c", "/h")

    *offsets, last = outcome.records
    assert [read_offset_key(key)[1:] for key, _ in offsets] == [
        (ORDERS, 0), (ORDERS, 2), (AUDIT, 0),
    ]  # fmt: skip
    assert last == group_tombstone(GROUP)
    assert all(value is None for _, value in outcome.records)


@pytest.mark.parametrize("kind", ["consumer", None])
def test_a_group_without_offsets_and_a_simple_one_get_a_tombstone_of_their_own(
    kind: str | None,
) -> None:
    _, outcome = decide_delete_group(given_group(GroupState.EMPTY, kind), NOW, "c", "/h")

    assert [record_type(record.key) for record in outcome.records] == [GROUP_METADATA]


def test_the_group_is_dead_afterwards_and_the_event_knows_what_it_had() -> None:
    group = with_some_offsets(given_group(GroupState.EMPTY))

    _, outcome = decide_delete_group(group, NOW, "c", "/h")
    carry_out(group, outcome)

    assert (group.state, group.previous_state) == (GroupState.DEAD, GroupState.EMPTY)
    assert group.offsets == {}
    (event,) = outcome.events
    assert isinstance(event, GroupDeleted)
    assert event.cause is DeletionCause.REQUESTED
    assert dict(event.offsets) == {
        ORDERS: {0: committed(1), 2: committed(2)},
        AUDIT: {0: committed(3)},
    }


def test_what_is_left_of_it_in_the_log_is_nothing() -> None:
    group = with_some_offsets(given_group(GroupState.EMPTY))
    _, outcome = decide_delete_group(group, NOW, "c", "/h")

    groups = {GROUP: group}
    for offset, record in enumerate(outcome.records):
        apply_record(groups, StoredRecord(offset, NOW.wall_ms, *record))

    assert groups == {}
