"""The table of deadlines: what comes next, and what is due while it is worked through."""

from purgatory.deadlines import Deadlines


def test_the_nearest_deadline_comes_first_and_equal_ones_keep_their_order() -> None:
    deadlines: Deadlines[str] = Deadlines()
    assert deadlines.next_ms() is None
    for name, deadline_ms in (("c", 3), ("a", 1), ("b1", 2), ("b2", 2)):
        deadlines.add(deadline_ms, name)
    assert deadlines.next_ms() == 1
    assert list(deadlines.pop_due(2)) == ["a", "b1", "b2"]
    assert len(deadlines) == 1


def test_what_is_removed_while_due_ones_are_worked_through_does_not_come() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.add(1, "a")
    ticket = deadlines.add(1, "b")
    came = []
    for name in deadlines.pop_due(1):
        came.append(name)
        if name == "a":
            deadlines.remove(ticket)
    assert came == ["a"]


def test_what_is_added_while_due_ones_are_worked_through_comes_if_it_is_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.add(1, "a")
    came = []
    for name in deadlines.pop_due(1):
        came.append(name)
        if name == "a":
            deadlines.add(1, "now")
            deadlines.add(2, "later")
    assert came == ["a", "now"]
    assert deadlines.next_ms() == 2
