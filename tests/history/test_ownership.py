"""Ownership: moved partitions and time without an owner, by each rule of docs/history.md."""

import pytest

from history.ownership import (
    NO_PARTITIONS,
    SUBSCRIPTION_BYTES_MAX,
    OwnershipChange,
    chosen_metadata,
    owned_by_subscription,
    partitions_of,
)
from protocol.primitives import Malformed
from tests.history.history_world import assignment, offers

A = assignment(t=[0, 1])
B = assignment(t=[2, 3])
ALL = assignment(t=[0, 1, 2, 3])


def change() -> OwnershipChange:
    return OwnershipChange({"a": A, "b": B})


def test_an_eager_member_owns_nothing_from_its_rejoin_to_its_answer() -> None:
    ownership = change()
    ownership.release("a", 100)
    ownership.release("a", 500)  # asked again: the first time counts
    ownership.release("b", 300)
    assert ownership.unowned_ms(400) == 2 * 300 + 2 * 100
    assert ownership.assign({"a": A, "b": B}) == []
    ownership.answered("a", 1_000)
    ownership.answered("b", 1_200)
    assert ownership.unowned_ms(9_999) == 2 * 900 + 2 * 900


def test_what_moves_is_unowned_from_one_rejoin_to_anothers_answer() -> None:
    ownership = change()
    ownership.release("a", 0)
    ownership.release("b", 100)
    moved = ownership.assign({"a": assignment(t=[0]), "b": assignment(t=[1, 2, 3])})
    assert [(m.partition, m.from_owner, m.to_owner) for m in moved] == [(1, "a", "b")]
    ownership.answered("a", 200)
    ownership.answered("b", 300)
    assert ownership.unowned_ms(9_999) == 200 + 300 + 2 * 200
    assert ownership.left_over(9_999) == {}
    assert ownership.partitions == 4


def test_a_member_that_is_gone_was_last_heard_of_then() -> None:
    ownership = change()
    ownership.gone("b", -10_000)
    ownership.release("a", 0)
    ownership.assign({"a": ALL})
    ownership.answered("a", 50)
    assert ownership.unowned_ms(9_999) == 2 * 10_050 + 2 * 50


def test_a_cooperative_member_keeps_its_owned_partitions_until_its_answer() -> None:
    ownership = change()
    kept = frozenset({("t", 0), ("t", 1)})
    ownership.release("a", 100, kept)
    ownership.release("b", 100, frozenset({("t", 2), ("t", 3)}))
    # The first step: partition 1 is taken from a, and nobody gets it yet.
    assert ownership.assign({"a": assignment(t=[0]), "b": B, "c": b""}) == []
    ownership.answered("a", 200)
    ownership.answered("b", 200)
    assert ownership.unowned_ms(350) == 150
    left_over = ownership.left_over(350)
    assert set(left_over) == {("t", 1)}

    two = OwnershipChange({"a": assignment(t=[0]), "b": B}, left_over)
    moved = two.assign({"a": assignment(t=[0]), "b": B, "c": assignment(t=[1])})
    assert [(m.partition, m.from_owner, m.to_owner) for m in moved] == [(1, "a", "c")]
    two.answered("c", 400)
    assert two.unowned_ms(9_999) == 50  # from where the other left off


def test_a_member_that_goes_after_it_rejoined_loses_the_rest_then() -> None:
    ownership = change()
    ownership.release("a", 100, frozenset({("t", 0)}))
    ownership.gone("a", 400)
    ownership.assign({"b": ALL})
    ownership.answered("b", 500)
    assert ownership.unowned_ms(9_999) == (500 - 400) + (500 - 100)


def test_what_nobody_subscribes_to_any_more_is_not_missed() -> None:
    ownership = change()
    ownership.release("a", 0)
    ownership.release("b", 0)
    ownership.assign({"a": A, "b": b""})
    ownership.answered("a", 10)
    ownership.answered("b", 10)
    assert ownership.unowned_ms(5_000) == 2 * 10
    assert ownership.left_over(5_000) == {}


def test_before_anything_is_assigned_all_that_was_released_counts() -> None:
    ownership = change()
    ownership.gone("a", 0)
    assert ownership.unowned_ms(1_000) == 2_000


def test_a_rebalance_that_is_overtaken_hands_on_what_it_had_taken() -> None:
    ownership = change()
    ownership.release("a", 0)
    ownership.release("b", 0, frozenset({("t", 2), ("t", 3)}))
    assert ownership.unowned_ms(100) == 200
    successor = ownership.handed_on(100)
    assert successor.unowned_ms(100) == 0
    successor.release("b", 150)
    assert successor.unowned_ms(200) == 2 * 100 + 2 * 50
    successor.assign({"a": B, "b": A})
    successor.answered("a", 300)
    successor.answered("b", 300)
    assert successor.unowned_ms(9_999) == 2 * 200 + 2 * 150


def test_an_assignment_that_cannot_be_read_is_said_so() -> None:
    with pytest.raises(Malformed):
        OwnershipChange({"a": b"\x00"}).unowned_ms(0)
    with pytest.raises(Malformed):
        change().assign({"a": b"what the leader says"})
    assert partitions_of(b"") == []


def test_what_a_subscription_says_that_it_owns() -> None:
    assert owned_by_subscription(offers("t", owned=[4, 5])[0][1]) == {("t", 4), ("t", 5)}
    assert owned_by_subscription(offers("t")[0][1]) == NO_PARTITIONS
    assert owned_by_subscription(b"opaque") == NO_PARTITIONS
    assert owned_by_subscription(bytes(SUBSCRIPTION_BYTES_MAX + 1)) is None


def test_the_metadata_for_the_groups_protocol_is_the_one_that_is_read() -> None:
    offers = [("range", b"1"), ("sticky", b"2")]
    assert chosen_metadata(offers, "sticky") == b"2"
    assert chosen_metadata(offers, "other") == b"1"
    assert chosen_metadata([], None) == b""
