"""Reconciliation: each step of a member from what it owns to what it is to own, by its state."""

from collections.abc import Iterable, Mapping

import pytest

from coordinator.consumer.decide.reconcile import Goal, is_reconciled, reconcile_member
from coordinator.consumer.member import ConsumerMemberState, CurrentAssignment, OwnedPartitions
from protocol.messages.consumer_group_heartbeat import HeartbeatTopicPartitions
from protocol.names import MemberId, TopicId

T, U = TopicId(int=1), TopicId(int=2)
STABLE = ConsumerMemberState.STABLE
UNREVOKED = ConsumerMemberState.UNREVOKED_PARTITIONS
UNRELEASED = ConsumerMemberState.UNRELEASED_PARTITIONS
UNKNOWN = ConsumerMemberState.UNKNOWN

Parts = Mapping[TopicId, Iterable[int]]


def at(epoch: int, parts: Parts) -> OwnedPartitions:
    return {topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in parts.items()}


def goal(
    target: Parts,
    *,
    epoch: int = 6,
    reported: Parts | None = None,
    subscribed: Iterable[TopicId] = (T, U),
    missing_topics: bool = False,
    changed: bool = False,
    others: Parts | None = None,
    own: Parts | None = None,
) -> Goal:
    """`others` owns the rest, `own` are the partitions that the member itself is registered for.

    `missing_topics`: the member subscribes to topics that do not exist.
    """
    owners: dict[TopicId, dict[int, MemberId]] = {}
    for member_id, parts in (("b", others), ("a", own)):
        for topic_id, numbers in (parts or {}).items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(numbers, MemberId(member_id)))
    return Goal(
        epoch,
        {topic_id: frozenset(numbers) for topic_id, numbers in target.items()},
        frozenset(subscribed),
        missing_topics or bool(subscribed),
        changed,
        None
        if reported is None
        else [HeartbeatTopicPartitions(t, sorted(numbers)) for t, numbers in reported.items()],
        owners,
    )


def test_a_member_that_is_there_stays() -> None:
    current = CurrentAssignment(6, 5, STABLE, at(5, {T: [0]}))
    assert is_reconciled(current, 6)
    assert reconcile_member(current, goal({T: [0]})) is current


def test_the_same_target_in_a_new_epoch() -> None:
    current = CurrentAssignment(5, 4, STABLE, at(5, {T: [0, 1]}))
    step = reconcile_member(current, goal({T: [0, 1]}, own={T: [0, 1]}))
    assert step == CurrentAssignment(6, 5, STABLE, at(5, {T: [0, 1]}))


def test_free_partitions_are_assigned_at_once() -> None:
    current = CurrentAssignment(5, 4, STABLE, at(5, {T: [0]}))
    step = reconcile_member(current, goal({T: [0, 1], U: [3]}, own={T: [0]}))
    assert step == CurrentAssignment(6, 5, STABLE, {T: {0: 5, 1: 6}, U: {3: 6}})


def test_partitions_are_given_back_first_in_the_old_epoch() -> None:
    current = CurrentAssignment(5, 4, STABLE, at(5, {T: [0, 1]}))
    step = reconcile_member(current, goal({T: [0], U: [3]}, own={T: [0, 1]}))
    assert step == CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0]}), at(5, {T: [1]}))


def test_what_the_client_does_not_own_any_more_needs_no_giving_back() -> None:
    current = CurrentAssignment(5, 4, STABLE, at(5, {T: [0, 1]}))
    step = reconcile_member(current, goal({T: [0], U: [3]}, reported={T: [0]}))
    assert step == CurrentAssignment(6, 5, STABLE, {T: {0: 5}, U: {3: 6}})


def test_partitions_of_others_are_waited_for() -> None:
    current = CurrentAssignment(5, 4, STABLE, at(5, {T: [0]}))
    step = reconcile_member(current, goal({T: [0, 1, 2]}, own={T: [0]}, others={T: [2]}))
    assert step == CurrentAssignment(6, 5, UNRELEASED, {T: {0: 5, 1: 6}})
    step = reconcile_member(current, goal({T: [0, 2]}, own={T: [0]}, others={T: [2]}))
    assert step == CurrentAssignment(6, 5, UNRELEASED, {T: {0: 5}})


@pytest.mark.parametrize("reported", [None, {T: [0, 1]}, {T: [1]}])
def test_a_member_that_has_not_given_back_waits(reported: Parts | None) -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0]}), at(5, {T: [1]}))
    assert reconcile_member(current, goal({T: [0], U: [3]}, reported=reported)) is current


@pytest.mark.parametrize("reported", [{}, {T: [0]}, {T: [0, 7]}])
def test_a_member_that_gave_back_goes_on(reported: Parts) -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0]}), at(5, {T: [1]}))
    step = reconcile_member(current, goal({T: [0], U: [3]}, reported=reported))
    assert step == CurrentAssignment(6, 5, STABLE, {T: {0: 5}, U: {3: 6}})


def test_a_member_that_gave_back_may_get_it_again() -> None:
    """The partition is still its own: nobody else can have it."""
    current = CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0]}), at(5, {T: [1]}))
    step = reconcile_member(current, goal({T: [0, 1]}, reported={T: [0]}, own={T: [0, 1]}, epoch=7))
    assert step == CurrentAssignment(7, 5, STABLE, {T: {0: 5, 1: 7}})


def test_a_new_target_may_ask_for_more_while_it_gives_back() -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0, 2]}), at(5, {T: [1]}))
    step = reconcile_member(current, goal({T: [0]}, reported={T: [0, 2]}, epoch=7))
    assert step == CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0]}), at(5, {T: [2]}))


def test_a_waiting_member_gets_what_has_become_free() -> None:
    current = CurrentAssignment(6, 5, UNRELEASED, at(6, {T: [0]}))
    step = reconcile_member(current, goal({T: [0, 1]}, own={T: [0]}))
    assert step == CurrentAssignment(6, 6, STABLE, at(6, {T: [0, 1]}))


def test_a_waiting_member_says_its_epoch_twice_and_then_waits_unchanged() -> None:
    """As in Kafka the second heartbeat stores the epoch as the one before it."""
    waiting = goal({T: [0, 1]}, own={T: [0]}, others={T: [1]})
    current = CurrentAssignment(6, 5, UNRELEASED, at(6, {T: [0]}))
    step = reconcile_member(current, waiting)
    assert step == CurrentAssignment(6, 6, UNRELEASED, at(6, {T: [0]}))
    assert reconcile_member(step, waiting) == step


def test_topics_of_no_subscription_are_given_back_before_a_target_says_so() -> None:
    current = CurrentAssignment(6, 5, STABLE, at(6, {T: [0], U: [1]}))
    step = reconcile_member(
        current, goal({T: [0], U: [1]}, subscribed=[T], changed=True, reported=None)
    )
    assert step == CurrentAssignment(6, 6, UNREVOKED, at(6, {T: [0]}), at(6, {U: [1]}))
    step = reconcile_member(
        current, goal({T: [0], U: [1]}, subscribed=[T], changed=True, reported={T: [0]})
    )
    assert step == CurrentAssignment(6, 6, STABLE, at(6, {T: [0]}))


def test_topics_of_no_subscription_add_to_what_is_being_given_back() -> None:
    current = CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0], U: [1]}), at(5, {T: [2]}))
    step = reconcile_member(current, goal({}, subscribed=[T], changed=True))
    assert step == CurrentAssignment(5, 5, UNREVOKED, at(5, {T: [0]}), at(5, {T: [2], U: [1]}))


def test_an_unchanged_subscription_drops_nothing() -> None:
    current = CurrentAssignment(6, 5, STABLE, at(6, {T: [0], U: [1]}))
    assert reconcile_member(current, goal({}, subscribed=[T], changed=False)) is current
    assert reconcile_member(current, goal({}, subscribed=[T, U], changed=True)) is current


def test_a_member_that_is_left_with_no_topic_takes_a_step_even_if_it_owns_nothing() -> None:
    current = CurrentAssignment(6, 5, STABLE, {})
    step = reconcile_member(current, goal({}, subscribed=[], changed=True))
    assert step == CurrentAssignment(6, 6, STABLE, {})
    assert reconcile_member(current, goal({}, subscribed=[T], changed=True)) is current
    assert reconcile_member(current, goal({}, subscribed=[], changed=False)) is current
    missing = goal({}, subscribed=[], missing_topics=True, changed=True)
    assert reconcile_member(current, missing) is current
    gives_back = CurrentAssignment(6, 5, UNREVOKED, {}, at(5, {T: [0]}))
    assert reconcile_member(gives_back, goal({}, subscribed=[], changed=True)) is gives_back


def test_a_target_of_a_topic_without_subscription_is_not_assigned() -> None:
    current = CurrentAssignment(5, 4, STABLE, {})
    step = reconcile_member(current, goal({T: [0], U: [1]}, subscribed=[U]))
    assert step == CurrentAssignment(6, 5, STABLE, at(6, {U: [1]}))


def test_a_member_in_a_state_of_a_later_version_joins_again() -> None:
    current = CurrentAssignment(5, 4, UNKNOWN, at(5, {T: [0]}))
    assert reconcile_member(current, goal({T: [0]})) is None
    assert reconcile_member(current, goal({T: [0]}, reported={T: [0]})) is None
    step = reconcile_member(current, goal({T: [0]}, reported={}))
    assert step == CurrentAssignment(6, 5, STABLE, at(5, {T: [0]}))
