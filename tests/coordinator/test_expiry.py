"""Expiry of offsets (KIP-211): when its time begins, for whom, and how a sweep goes round."""

from uuid import UUID

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.events import GroupDeleted
from coordinator.offsets.deleted_topics import DeletedTopic
from coordinator.offsets.events import DeletionCause, OffsetsDeleted
from coordinator.offsets.expire_offsets import decide_expire_offsets, decide_topic_deleted
from coordinator.offsets.expiry import (
    OFFSETS_READ_PER_SLICE,
    PAUSE_BETWEEN_SLICES_MS,
    TOMBSTONES_PER_SLICE,
    OffsetExpiry,
)
from coordinator.outcome import Outcome
from coordinator.records import group_tombstone, offset_commit_key
from coordinator.settings import GroupSettings
from protocol.names import ZERO_TOPIC_ID, GroupId, GroupState, TopicName
from seams.now import Now
from storage.api import Record
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

EMPTY, STABLE = GroupState.EMPTY, GroupState.STABLE
RETENTION_MS = 60 * 60_000
SETTINGS = GroupSettings(offsets_retention_minutes=60, offsets_retention_check_interval_ms=600_000)
LONG_AGO, JUST_NOW = NOW.wall_ms - RETENTION_MS, NOW.wall_ms - RETENTION_MS + 1
NO_LIMIT = 1 << 30


def expire(group: ClassicGroup, now: Now = NOW, limit: int = NO_LIMIT) -> Outcome:
    return decide_expire_offsets(group, now, SETTINGS, limit)


def gone(outcome: Outcome) -> set[tuple[str, int]]:
    return {
        (topic, index)
        for event in outcome.events
        for topic, partitions in event.offsets
        for index in partitions
    }


# ---------------------------------------------------------------- one group


@pytest.mark.parametrize(
    ("state", "kind", "subscribed", "emptied_at_ms", "committed_at_ms", "expires"),
    [
        # A simple group: from each commit on.
        (EMPTY, None, None, NOW.wall_ms, LONG_AGO, True),
        (EMPTY, None, None, LONG_AGO, JUST_NOW, False),
        # A group that has had members: from the moment when the last one left.
        (EMPTY, "consumer", frozenset(), LONG_AGO, NOW.wall_ms, True),
        (EMPTY, "consumer", frozenset(), JUST_NOW, LONG_AGO, False),
        (EMPTY, "connect", None, LONG_AGO, NOW.wall_ms, True),
        (EMPTY, "connect", None, JUST_NOW, LONG_AGO, False),
        # Its record is of a version that does not say when it was emptied: from the commit on.
        (EMPTY, "consumer", frozenset(), -1, LONG_AGO, True),
        (EMPTY, "consumer", frozenset(), -1, JUST_NOW, False),
        # Consumers are there: from the commit on, if they do not subscribe to the topic.
        (STABLE, "consumer", frozenset({"audit"}), NOW.wall_ms, LONG_AGO, True),
        (STABLE, "consumer", frozenset({"audit"}), LONG_AGO, JUST_NOW, False),
        (STABLE, "consumer", frozenset({"orders"}), LONG_AGO, LONG_AGO, False),
        (STABLE, "consumer", None, LONG_AGO, LONG_AGO, False),
        # Others, or nobody knows who: never.
        (STABLE, "connect", None, LONG_AGO, LONG_AGO, False),
        (GroupState.PREPARING_REBALANCE, "consumer", frozenset(), LONG_AGO, LONG_AGO, False),
        (GroupState.COMPLETING_REBALANCE, "consumer", frozenset(), LONG_AGO, LONG_AGO, False),
        (GroupState.DEAD, "consumer", frozenset(), LONG_AGO, LONG_AGO, False),
        (GroupState.DEAD, None, None, LONG_AGO, LONG_AGO, False),
    ],
)  # fmt: skip
def test_when_the_time_of_an_offset_begins_depends_on_who_uses_the_group(
    state: GroupState,
    kind: str | None,
    subscribed: frozenset[str] | None,
    emptied_at_ms: int,
    committed_at_ms: int,
    expires: bool,
) -> None:
    group = with_offsets(
        given_group(state, kind, subscribed), ("orders", 0, committed(1, committed_at_ms))
    )
    group.state_since_ms = emptied_at_ms

    outcome = expire(group)

    assert gone(outcome) == ({("orders", 0)} if expires else set())
    assert bool(outcome.records) is expires


@pytest.mark.parametrize("expire_at_ms", [NOW.wall_ms, NOW.wall_ms - 1, 0, NOW.wall_ms + 1])
@pytest.mark.parametrize("committed_at_ms", [LONG_AGO, NOW.wall_ms])
def test_an_expiry_that_the_client_named_counts_instead(
    expire_at_ms: int, committed_at_ms: int
) -> None:
    offset = committed(1, committed_at_ms, expire_at_ms)
    group = with_offsets(given_group(EMPTY, None), ("orders", 0, offset))

    assert bool(expire(group).records) is (expire_at_ms <= NOW.wall_ms)


def test_the_last_offset_takes_the_empty_group_with_it() -> None:
    group = with_offsets(
        given_group(EMPTY, None),
        ("orders", 0, committed(1, LONG_AGO)),
        ("audit", 0, committed(2, LONG_AGO)),
    )

    outcome = expire(group)

    assert list(outcome.records) == [
        Record(offset_commit_key(GROUP, ORDERS, 0), None),
        Record(offset_commit_key(GROUP, AUDIT, 0), None),
        group_tombstone(GROUP),
    ]
    (event,) = outcome.events
    assert isinstance(event, GroupDeleted)
    assert event.cause is DeletionCause.EXPIRED
    assert carry_out(group, outcome).state is GroupState.DEAD


def test_with_one_offset_left_the_group_stays() -> None:
    group = with_offsets(
        given_group(EMPTY, None), ("orders", 0, committed(1, LONG_AGO)), ("orders", 1, committed(2))
    )

    outcome = expire(group)

    (event,) = outcome.events
    assert isinstance(event, OffsetsDeleted)
    assert event.cause is DeletionCause.EXPIRED
    assert carry_out(group, outcome).offsets == {ORDERS: {1: committed(2)}}
    assert group.state is EMPTY


@pytest.mark.parametrize("kind", ["consumer", "connect", None])
def test_an_empty_group_without_offsets_goes_at_once(kind: str | None) -> None:
    outcome = expire(given_group(EMPTY, kind))

    assert list(outcome.records) == [group_tombstone(GROUP)]


def test_a_group_with_members_stays_when_its_last_offset_goes() -> None:
    group = with_offsets(
        given_group(STABLE, subscribed=frozenset()), ("orders", 0, committed(1, LONG_AGO))
    )

    outcome = expire(group)

    assert [type(event) for event in outcome.events] == [OffsetsDeleted]
    assert group_tombstone(GROUP) not in outcome.records


def test_no_more_goes_at_once_than_allowed() -> None:
    group = with_offsets(
        given_group(EMPTY, None), *(("orders", n, committed(n, LONG_AGO)) for n in range(5))
    )

    sizes = []
    while group.state is EMPTY:
        outcome = expire(group, limit=2)
        sizes.append(len(outcome.records))
        carry_out(group, outcome)

    assert sizes == [2, 2, 2]  # the last one is an offset, and the group
    assert group.offsets == {}


# ---------------------------------------------------------------- a deleted topic


@pytest.mark.parametrize("state", [s for s in GroupState if s is not GroupState.DEAD])
def test_with_a_topic_go_the_offsets_that_were_committed_for_it(state: GroupState) -> None:
    topic_id, namesake = UUID(int=1), UUID(int=2)
    group = with_offsets(
        given_group(state, subscribed=frozenset({"orders"})),
        ("orders", 0, committed(1, topic_id=topic_id)),
        ("orders", 1, committed(2, topic_id=ZERO_TOPIC_ID)),
        ("orders", 2, committed(3, topic_id=namesake)),
        ("audit", 0, committed(4, topic_id=topic_id)),
    )

    outcome = decide_topic_deleted(group, DeletedTopic(ORDERS, topic_id, before_now=True), NOW)

    assert gone(outcome) == {("orders", 0), ("orders", 1)}
    assert [value for _, value in outcome.records] == [None, None]
    (event,) = outcome.events
    assert event.cause is DeletionCause.TOPIC_DELETED
    after = carry_out(group, outcome)
    assert (set(after.offsets[ORDERS]), set(after.offsets[AUDIT])) == ({2}, {0})
    assert after.state is state


def test_a_topic_that_the_group_never_read_changes_nothing() -> None:
    outcome = decide_topic_deleted(
        given_group(EMPTY), DeletedTopic(ORDERS, UUID(int=1), before_now=True), NOW
    )

    assert outcome == Outcome()


# ---------------------------------------------------------------- the sweep


def later(milliseconds: int) -> Now:
    return Now(NOW.mono_ms + milliseconds, NOW.wall_ms + milliseconds)


def sweep(groups: dict[GroupId, ClassicGroup], expiry: OffsetExpiry) -> list[list[GroupId]]:
    """Go on until the sweep is over; which groups each slice changed."""
    slices = []
    while True:
        now = Now(expiry.due_ms, NOW.wall_ms)
        changed = expiry.next_slice(groups, now)
        for group_id, outcome in changed:
            if carry_out(groups[group_id], outcome).state is GroupState.DEAD:
                del groups[group_id]
        slices.append([group_id for group_id, _ in changed])
        if not expiry.sweeping:
            return slices


def groups_of(*sizes: int) -> dict[GroupId, ClassicGroup]:
    """Simple groups with so many expired offsets each."""
    groups = {}
    for number, size in enumerate(sizes):
        group = ClassicGroup(GroupId(f"g-{number}"), 0)
        with_offsets(group, *(("orders", n, committed(n, LONG_AGO)) for n in range(size)))
        groups[group.group_id] = group
    return groups


def test_nothing_is_checked_before_the_interval_is_over() -> None:
    expiry = OffsetExpiry(SETTINGS, NOW)
    groups = groups_of(1)

    assert expiry.due_ms == NOW.mono_ms + 600_000
    assert expiry.next_slice(groups, later(599_999)) == []
    assert len(expiry.next_slice(groups, later(600_000))) == 1
    assert expiry.due_ms == NOW.mono_ms + 2 * 600_000


def test_a_few_small_groups_are_one_slice() -> None:
    groups = groups_of(3, 0, 2)

    assert sweep(groups, OffsetExpiry(SETTINGS, NOW)) == [["g-0", "g-1", "g-2"]]
    assert groups == {}


def test_many_tombstones_are_spread_over_slices_and_over_a_group() -> None:
    size = TOMBSTONES_PER_SLICE * 5 // 2
    groups = groups_of(size, 1)
    expiry = OffsetExpiry(SETTINGS, NOW)

    first = expiry.next_slice(groups, later(600_000))

    ((group_id, outcome),) = first
    assert len(outcome.records) == TOMBSTONES_PER_SLICE
    assert expiry.due_ms == later(600_000).mono_ms + PAUSE_BETWEEN_SLICES_MS
    carry_out(groups[group_id], outcome)
    assert sweep(groups, expiry) == [["g-0"], ["g-0", "g-1"]]
    assert groups == {}


def test_many_live_offsets_are_read_in_several_slices() -> None:
    groups = groups_of(*[OFFSETS_READ_PER_SLICE // 2] * 5)
    for group in groups.values():
        offsets = group.offsets[ORDERS]
        group.offsets[TopicName("orders")] = {n: committed(n) for n in offsets}

    slices = sweep(groups, OffsetExpiry(SETTINGS, NOW))

    assert slices == [[], [], []]
    assert len(groups) == 5


def test_a_group_that_went_meanwhile_is_passed_over_and_a_new_one_waits_for_the_next_sweep() -> (
    None
):
    groups = groups_of(TOMBSTONES_PER_SLICE, 1, 1)
    expiry = OffsetExpiry(SETTINGS, NOW)
    ((group_id, outcome),) = expiry.next_slice(groups, later(600_000))
    carry_out(groups.pop(group_id), outcome)
    del groups[GroupId("g-1")]
    groups[GroupId("new")] = ClassicGroup(GroupId("new"), 0)

    assert sweep(groups, expiry) == [["g-2"]]
    assert list(groups) == ["new"]
