"""The purgatory's promises: asked by key, ended by time, and each op ended exactly once."""

import pytest

from purgatory.purgatory import Purgatory, by_kind
from tests.purgatory.ops import ScriptedOp


@pytest.fixture
def purgatory() -> Purgatory[str]:
    return Purgatory()


def test_an_op_that_can_complete_now_is_not_parked(purgatory: Purgatory[str]) -> None:
    op = ScriptedOp("a", ("k",), 10)
    op.ready = True
    assert purgatory.try_complete_else_watch(op) == "a completed"
    assert purgatory.delayed == 0
    assert purgatory.next_deadline_ms is None


def test_an_op_that_cannot_is_asked_again_when_its_key_is_checked(
    purgatory: Purgatory[str],
) -> None:
    op = ScriptedOp("a", ("k",), 10)
    assert purgatory.try_complete_else_watch(op) is None
    assert purgatory.check_and_complete("k") == []
    assert purgatory.check_and_complete("other") == []
    assert op.asked == 2
    op.ready = True
    assert purgatory.check_and_complete("k") == ["a completed"]
    assert purgatory.check_and_complete("k") == []
    assert purgatory.expire_due(10) == []


def test_ops_under_one_key_are_asked_in_the_order_they_were_parked(
    purgatory: Purgatory[str],
) -> None:
    ops = [ScriptedOp(name, ("k",), 10) for name in "abc"]
    for op in ops:
        purgatory.watch(op)
        op.ready = True
    assert purgatory.check_and_complete("k") == ["a completed", "b completed", "c completed"]


def test_an_op_under_two_keys_ends_under_both(purgatory: Purgatory[str]) -> None:
    op = ScriptedOp("a", ("k", "l"), 10)
    purgatory.watch(op)
    assert purgatory.watched == 2
    op.ready = True
    assert purgatory.check_and_complete("l") == ["a completed"]
    assert not purgatory.watching("k")
    assert purgatory.check_and_complete("k") == []
    purgatory.check()


def test_an_op_may_name_one_key_twice(purgatory: Purgatory[str]) -> None:
    op = ScriptedOp("a", ("k", "k"), 10)
    purgatory.watch(op)
    assert purgatory.expire_due(10) == ["a expired"]
    purgatory.check()


def test_ops_expire_in_the_order_of_their_deadlines_and_equal_ones_as_they_came(
    purgatory: Purgatory[str],
) -> None:
    for name, deadline_ms in (("late", 30), ("b", 20), ("c", 20), ("a", 10)):
        purgatory.watch(ScriptedOp(name, (name,), deadline_ms))
    assert purgatory.next_deadline_ms == 10
    assert purgatory.expire_due(9) == []
    assert purgatory.expire_due(20) == ["a expired", "b expired", "c expired"]
    assert purgatory.next_deadline_ms == 30
    assert purgatory.delayed == 1


def test_silence_may_be_the_answer_to_an_expiry(purgatory: Purgatory[str]) -> None:
    op = ScriptedOp("a", ("k",), 10)
    op.says_on_expiration = None
    purgatory.watch(op)
    assert purgatory.expire_due(10) == []
    assert purgatory.delayed == 0


def test_what_is_cancelled_never_speaks(purgatory: Purgatory[str]) -> None:
    ops = [ScriptedOp("a", ("k",), 10), ScriptedOp("b", ("k", "l"), 20)]
    for op in ops:
        purgatory.watch(op)
    assert purgatory.cancel("k") == 2
    assert purgatory.cancel("k") == 0
    assert purgatory.expire_due(100) == []
    assert not purgatory.watching("l")


def test_everything_is_cancelled_at_once(purgatory: Purgatory[str]) -> None:
    for name in "abc":
        purgatory.watch(ScriptedOp(name, (name,), 10))
    assert purgatory.cancel_all() == 3
    assert purgatory.delayed == purgatory.watched == 0


def test_parking_an_op_twice_is_a_mistake(purgatory: Purgatory[str]) -> None:
    op = ScriptedOp("a", ("k",), 10)
    purgatory.watch(op)
    with pytest.raises(AssertionError, match="parked already"):
        purgatory.watch(op)


def test_ops_are_counted_by_kind(purgatory: Purgatory[str]) -> None:
    purgatory.watch(ScriptedOp("a", ("k", "l"), 10))
    purgatory.watch(ScriptedOp("b", ("k",), 10))
    assert by_kind(purgatory.operations()) == {"ScriptedOp": (2, 3, 10)}


def test_when_the_nearest_op_under_a_key_expires(purgatory: Purgatory[str]) -> None:
    assert purgatory.deadline_of("k") is None
    purgatory.watch(ScriptedOp("a", ("k", "j"), 20))
    purgatory.watch(ScriptedOp("b", ("k",), 10))
    assert (purgatory.deadline_of("k"), purgatory.deadline_of("j")) == (10, 20)
    purgatory.expire_due(10)
    assert purgatory.deadline_of("k") == 20


def test_a_replacement_ends_what_is_under_its_key(purgatory: Purgatory[str]) -> None:
    for name in "ab":
        purgatory.watch(ScriptedOp(name, ("slot", name), 10))
    purgatory.replace("slot", ScriptedOp("c", ("slot",), 5))
    assert (purgatory.delayed, purgatory.watched) == (1, 1)
    assert not purgatory.watching("a")
    assert purgatory.expire_due(20) == ["c expired"]


def test_a_replacement_with_a_later_deadline_is_asked_and_expires_in_place_of_the_old(
    purgatory: Purgatory[str],
) -> None:
    old, new = ScriptedOp("old", ("slot",), 10), ScriptedOp("new", ("slot",), 30)
    purgatory.watch(old)
    purgatory.replace("slot", new)
    assert purgatory.operations() == (new,)
    assert purgatory.deadline_of("slot") == 30
    assert purgatory.expire_due(10) == []
    assert purgatory.next_deadline_ms == 30
    old.ready = True
    assert purgatory.check_and_complete("slot") == []
    new.ready = True
    assert purgatory.check_and_complete("slot") == ["new completed"]
    purgatory.watch(old)  # it has ended, so it may wait again
    assert purgatory.expire_due(30) == ["old expired"]


def test_a_replacement_under_other_keys_is_watched_under_these(purgatory: Purgatory[str]) -> None:
    purgatory.watch(ScriptedOp("old", ("slot",), 10))
    purgatory.replace("slot", ScriptedOp("new", ("slot", "k"), 30))
    assert purgatory.watching("k")
    purgatory.check()
    assert purgatory.cancel("k") == 1
    assert not purgatory.watching("slot")


def test_replacing_an_op_by_itself_keeps_it(purgatory: Purgatory[str]) -> None:
    op = ScriptedOp("a", ("k",), 10)
    purgatory.watch(op)
    purgatory.replace("k", op)
    assert purgatory.expire_due(10) == ["a expired"]


def test_an_op_may_be_cancelled_and_its_key_used_again_during_an_expiry(
    purgatory: Purgatory[str],
) -> None:
    class Cancelling(ScriptedOp):
        def on_expiration(self) -> str | None:
            assert purgatory.cancel("other") == 1
            purgatory.watch(ScriptedOp("late", ("other",), 10))
            return super().on_expiration()

    purgatory.watch(Cancelling("a", ("k",), 10))
    purgatory.watch(ScriptedOp("b", ("other",), 10))
    assert purgatory.expire_due(10) == ["a expired", "late expired"]
    purgatory.check()
