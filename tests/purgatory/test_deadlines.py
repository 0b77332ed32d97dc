"""The queue of deadlines: what comes next, and what is due while it is worked through."""

import gc
import random
import weakref
from itertools import islice

from purgatory.deadlines import DeadlineEntry, Deadlines


class Filed:
    def __init__(self, name: str, deadline_ms: int) -> None:
        self.name = name
        self.deadline_ms = deadline_ms

    def __repr__(self) -> str:
        return f"{self.name}@{self.deadline_ms}"


def add(deadlines: Deadlines[Filed], op: Filed) -> DeadlineEntry[Filed]:
    entry = DeadlineEntry(op, op.deadline_ms)
    deadlines.add(entry)
    return entry


def due(deadlines: Deadlines[Filed], now_ms: int, count: int | None = None) -> list[str]:
    return [op.name for _, op in islice(deadlines.pop_due(now_ms), count)]


def filed(deadlines: Deadlines[Filed], count: int, deadline_ms: int) -> list[DeadlineEntry[Filed]]:
    return [add(deadlines, Filed(str(number), deadline_ms)) for number in range(count)]


def test_the_nearest_deadline_comes_first_and_equal_ones_keep_their_order() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    assert deadlines.next_ms() is None
    for name, deadline_ms in (("c", 3), ("a", 1), ("b1", 2), ("b2", 2)):
        add(deadlines, Filed(name, deadline_ms))
    assert deadlines.next_ms() == 1
    assert due(deadlines, 2) == ["a", "b1", "b2"]
    assert len(deadlines) == 1


def test_what_is_removed_while_due_ones_are_worked_through_does_not_come() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    _, second = filed(deadlines, 2, 1)
    came = []
    for _, op in deadlines.pop_due(1):
        came.append(op.name)
        assert deadlines.remove(second)
    assert came == ["0"]
    assert not deadlines.remove(second)


def test_what_is_added_while_due_ones_are_worked_through_comes_if_it_is_due() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    add(deadlines, Filed("a", 1))
    came = []
    for _, op in deadlines.pop_due(1):
        came.append(op.name)
        if op.name == "a":
            add(deadlines, Filed("now", 1))
            add(deadlines, Filed("later", 2))
    assert came == ["a", "now"]
    assert deadlines.next_ms() == 2


def test_many_of_one_millisecond_come_in_order_also_when_an_earlier_one_is_added() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    entries = filed(deadlines, 500, 2)
    came: list[str] = []
    for _, op in deadlines.pop_due(2):
        came.append(op.name)
        if len(came) == 3:
            add(deadlines, Filed("earlier", 1))
            deadlines.remove(entries[-1])
            deadlines.check()
    assert came == ["0", "1", "2", "earlier", *map(str, range(3, 499))]
    assert len(deadlines) == 0
    assert deadlines.next_ms() is None


def test_due_ones_that_nobody_asked_for_stay_filed() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    filed(deadlines, 250, 2)
    names = [str(number) for number in range(250)]
    assert due(deadlines, 2, 100) == names[:100]
    deadlines.check()
    assert due(deadlines, 2) == names[100:]


def test_one_that_is_put_off_comes_at_its_own_deadline_behind_those_filed_for_it() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    entry = add(deadlines, Filed("old", 10))
    add(deadlines, Filed("other", 30))
    assert deadlines.put_off(entry, Filed("new", 30))
    assert len(deadlines) == 2
    assert deadlines.next_ms() == 10
    assert due(deadlines, 10) == []
    assert deadlines.next_ms() == 30, "it was not filed again"
    assert due(deadlines, 29) == []
    assert due(deadlines, 30) == ["other", "new"]


def test_one_that_would_be_late_takes_no_place() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    entry = add(deadlines, Filed("old", 10))
    assert not deadlines.put_off(entry, Filed("new", 9))
    assert due(deadlines, 10) == ["old"]


def test_one_may_be_put_off_again_and_again() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    entry = add(deadlines, Filed("0", 10))
    for number in range(1, 100):
        assert deadlines.put_off(entry, Filed(str(number), 10 + number))
        if number % 10 == 0:
            assert due(deadlines, 9 + number) == []
            assert deadlines.next_ms() == 10 + number
        deadlines.check()
    assert due(deadlines, 200) == ["99"]


def test_nothing_of_what_has_ended_waits_for_the_garbage_collector() -> None:
    """Entries are linked both ways: one that is left linked would keep its neighbours alive."""
    gc.collect()
    gc.disable()
    try:
        deadlines: Deadlines[Filed] = Deadlines()
        entries = [add(deadlines, Filed(str(number), number % 7)) for number in range(50)]
        seen = [weakref.ref(entry.op) for entry in entries if entry.op is not None]
        deadlines.remove(entries[3])
        due(deadlines, 2)
        deadlines.clear()
        assert [ref for ref in seen if ref() is not None] == []
        assert all(entry.before is entry.after is None for entry in entries)
        assert deadlines.next_ms() is None
    finally:
        gc.enable()


def test_removals_leave_no_empty_millisecond() -> None:
    deadlines: Deadlines[Filed] = Deadlines()
    add(deadlines, Filed("kept", 50_000))
    for number in range(20_000):
        deadlines.remove(add(deadlines, Filed("moved", number)))
        assert deadlines.next_ms() == 50_000
    assert list(deadlines._buckets) == list(deadlines._times_ms) == [50_000]


def test_any_order_of_changes_gives_the_nearest() -> None:
    """Against a plain list, with many to a millisecond and with few, and time that passes."""
    for milliseconds in (20, 300, 5_000):
        draw = random.Random(milliseconds)
        deadlines: Deadlines[Filed] = Deadlines()
        model: dict[Filed, DeadlineEntry[Filed]] = {}
        now_ms = 0
        for number in range(4_000):
            kind = draw.random()
            if kind < 0.45 or not model:
                op = Filed(str(number), now_ms + draw.randrange(milliseconds))
                model[op] = add(deadlines, op)
            elif kind < 0.7:
                op = draw.choice(list(model))
                assert deadlines.remove(model.pop(op))
            elif kind < 0.85:
                old = draw.choice(list(model))
                op = Filed(str(number), now_ms + draw.randrange(milliseconds))
                entry = model.pop(old)
                if not deadlines.put_off(entry, op):
                    assert op.deadline_ms < old.deadline_ms
                    assert deadlines.remove(entry)
                    entry = add(deadlines, op)
                model[op] = entry
            else:
                now_ms += draw.randrange(max(milliseconds // 50, 2))
                gone = [op for _, op in islice(deadlines.pop_due(now_ms), draw.randrange(8))]
                times = [op.deadline_ms for op in gone]
                assert times == sorted(op.deadline_ms for op in model)[: len(gone)]
                assert all(ms <= now_ms for ms in times)
                for op in gone:
                    del model[op]
            assert len(deadlines) == len(model)
            if draw.random() < 0.3:
                nearest = min((op.deadline_ms for op in model), default=None)
                if nearest is not None:
                    next_ms = deadlines.next_ms()
                    assert next_ms is not None
                    assert next_ms <= nearest
                    assert due(deadlines, nearest - 1) == []
                assert deadlines.next_ms() == nearest
            deadlines.check()
        assert set(deadlines) == set(model)
