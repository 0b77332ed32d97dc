"""The table of deadlines: what comes next, and what is due while it is worked through."""

import random
from itertools import islice
from typing import NamedTuple

from purgatory.deadlines import DUE_AT_ONCE, Deadlines


class Filed(NamedTuple):
    name: str
    deadline_ms: int


def names(found: list[Filed]) -> list[str]:
    return [op.name for op in found]


def test_the_nearest_deadline_comes_first_and_equal_ones_keep_their_order() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    assert deadlines.next_ms() is None
    for name, deadline_ms in (("c", 3), ("a", 1), ("b1", 2), ("b2", 2)):
        assert deadlines.add(Filed(name, deadline_ms))
    assert deadlines.next_ms() == 1
    assert names(list(deadlines.pop_due(2))) == ["a", "b1", "b2"]
    assert len(deadlines) == 1
    assert not deadlines.add(Filed("c", 3)), "it is there already"


def test_what_is_removed_while_due_ones_are_worked_through_does_not_come() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    second = Filed("b", 1)
    deadlines.add(Filed("a", 1))
    deadlines.add(second)
    came = []
    for op in deadlines.pop_due(1):
        came.append(op.name)
        assert deadlines.remove(second)
    assert came == ["a"]
    assert not deadlines.remove(second)


def test_what_is_added_while_due_ones_are_worked_through_comes_if_it_is_due() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    deadlines.add(Filed("a", 1))
    came = []
    for op in deadlines.pop_due(1):
        came.append(op.name)
        if op.name == "a":
            deadlines.add(Filed("now", 1))
            deadlines.add(Filed("later", 2))
    assert came == ["a", "now"]
    assert deadlines.next_ms() == 2


def test_many_of_one_millisecond_come_in_order_also_when_an_earlier_one_is_added() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    filed = [Filed(str(number), 2) for number in range(2 * DUE_AT_ONCE + 1)]
    for op in filed:
        deadlines.add(op)
    came: list[Filed] = []
    for op in deadlines.pop_due(2):
        came.append(op)
        if len(came) == 3:
            deadlines.add(Filed("earlier", 1))
            deadlines.remove(filed[-1])
    assert came == [*filed[:3], Filed("earlier", 1), *filed[3:-1]]
    assert len(deadlines) == 0
    assert deadlines.next_ms() is None


def test_due_ones_that_nobody_asked_for_stay_filed() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    filed = [Filed(str(number), 2) for number in range(DUE_AT_ONCE)]
    for op in filed:
        deadlines.add(op)
    assert list(islice(deadlines.pop_due(2), 100)) == filed[:100]
    assert list(deadlines.pop_due(2)) == filed[100:]


def test_removals_leave_no_empty_millisecond() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    kept = Filed("kept", 50_000)
    deadlines.add(kept)
    for number in range(20_000):
        deadlines.add(Filed("moved", number))
        deadlines.remove(Filed("moved", number))
        assert deadlines.next_ms() == 50_000
    assert list(deadlines._buckets) == list(deadlines._times_ms) == [50_000]


def test_any_order_of_additions_and_removals_gives_the_nearest() -> None:
    draw = random.Random(7)
    deadlines: Deadlines[Filed] = Deadlines()
    model: set[Filed] = set()
    for number in range(5_000):
        if model and draw.random() < 0.5:
            op = draw.choice(sorted(model))
            assert op in deadlines
            assert deadlines.remove(op)
            model.remove(op)
        else:
            op = Filed(str(number), draw.randrange(300))
            assert deadlines.add(op)
            model.add(op)
        assert len(deadlines) == len(model)
        assert deadlines.next_ms() == min((op.deadline_ms for op in model), default=None)
    assert set(deadlines) == model
