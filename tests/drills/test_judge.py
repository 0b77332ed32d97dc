"""Judge: recovery, loss, repetition and ownership, from events that are made up.

The property test drives a group that does everything right, and finds nothing; each planted defect
is found.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drills.events import DrillEvent, Kind
from drills.judge import DrillMeasures, judge, measure
from drills.ownership import track_ownership
from drills.scenario import Promises

SILENCE_S = {"a": 5.0, "b": 5.0, "c": 5.0}


class Group:
    """Makes the events of a group whose members do as they should."""

    def __init__(self, partitions: int = 2) -> None:
        self.partitions = partitions
        self.now_s = 100.0
        self.events: list[DrillEvent] = []
        self.owner: dict[int, str] = {}
        self.written = [0] * partitions
        self.committed = [0] * partitions
        self.generation = 0

    def note(self, source: str, kind: Kind, **facts: object) -> None:
        self.now_s += 0.125
        self.events.append(DrillEvent(self.now_s, source, kind, **facts))

    def assign(self, shares: dict[str, list[int]]) -> None:
        """A rebalance: all give up what they own, and get their shares."""
        for member in sorted(set(self.owner.values())):
            owned = tuple(p for p, owner in self.owner.items() if owner == member)
            self.note(member, Kind.REVOKED, partitions=owned)
        self.owner = {}
        self.generation += 1
        for member, share in shares.items():
            self.note(member, Kind.GENERATION, number=self.generation)
            self.note(member, Kind.ASSIGNED, partitions=tuple(share))
            self.owner.update(dict.fromkeys(share, member))

    def write(self, partition: int, count: int = 1) -> None:
        first = self.written[partition]
        offsets = tuple((partition, first + n) for n in range(count))
        self.note("drill", Kind.WRITTEN, offsets=offsets)
        self.written[partition] += count

    def read(self, partition: int, *, commit: bool = True) -> None:
        """The owner reads all that it has not committed."""
        owner = self.owner[partition]
        offsets = range(self.committed[partition], self.written[partition])
        if not offsets:
            return
        self.note(owner, Kind.READ, offsets=tuple((partition, o) for o in offsets))
        if commit:
            self.committed[partition] = offsets.stop
            self.note(owner, Kind.COMMITTED, offsets=((partition, offsets.stop),))

    def probe(self, source: str = "drill") -> None:
        found = tuple(enumerate(self.committed))
        self.note(source, Kind.PROBED, offsets=found, since_s=self.now_s + 0.01)

    def form(self) -> None:
        self.note("drill", Kind.FORMED)

    def fault(self) -> None:
        self.note("drill", Kind.FAULT, text="kill daemon")

    def measures(self) -> DrillMeasures:
        return measure(self.events, self.partitions, SILENCE_S)


def formed() -> Group:
    group = Group()
    group.assign({"a": [0], "b": [1]})
    for partition in (0, 1):
        group.write(partition)
        group.read(partition)
    group.form()
    return group


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(("write", "read", "probe", "assign", "fault", "end of a member")),
        st.integers(0, 1),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_a_group_that_does_everything_right_is_found_to(actions: list[tuple[str, int]]) -> None:
    group = formed()
    rebalances = 0
    for action, number in actions:
        match action:
            case "write":
                group.write(number, 3)
            case "read":
                group.read(number)
            case "probe":
                group.probe()
            case "fault":
                group.fault()
            case "assign":
                shares = [{"a": [0], "b": [1]}, {"c": [0, 1]}, {"a": [1], "b": [0]}]
                group.assign(shares[(number + group.generation) % 3])
                rebalances += 1
            case _:
                gone = group.owner[number]
                group.note(gone, Kind.KILLED)
                group.owner = {p: owner for p, owner in group.owner.items() if owner != gone}
                heir = "c" if gone != "c" else "a"
                group.assign({heir: [0, 1]})
                rebalances += 1
    for partition in (0, 1):
        group.write(partition)
        group.read(partition)

    found = group.measures()

    assert found.ownership_overlaps == found.ownership_overlaps_expected == 0
    assert found.commits_lost == found.records_lost == found.records_read_twice == 0
    assert found.rebalances == rebalances
    assert found.records_written == found.records_read == sum(group.written)
    assert len(found.recoveries) == sum(action == "fault" for action, _ in actions)
    assert all(recovery.seconds is not None for recovery in found.recoveries)
    assert all(verdict.is_kept for verdict in judge(found, Promises()))


def lose_commits(group: Group) -> None:
    group.committed[0] = 0
    group.assign({"b": [0, 1]})
    group.probe("b")
    group.read(0)


def lose_commits_for_a_while(group: Group) -> None:
    kept, group.committed[0] = group.committed[0], 0
    group.probe()
    group.committed[0] = kept


def give_to_two(group: Group) -> None:
    group.note("b", Kind.ASSIGNED, partitions=(0,))


def lose_records(group: Group) -> None:
    group.write(0)
    group.committed[0] += 1


def repeat_records(group: Group) -> None:
    group.write(0)
    group.read(0, commit=False)
    group.read(0)


def never_recover(group: Group) -> None:
    group.fault()
    group.write(0)
    group.read(0)
    group.write(1)  # and the owner of partition 1 is silent


@pytest.mark.parametrize(
    ("defect", "promise", "value"),
    [
        (lose_commits, "commits_lost_max", 1),
        (lose_commits_for_a_while, "commits_lost_max", 1),
        (give_to_two, "ownership_overlaps_max", 1),
        (lose_records, "records_lost_max", 1),
        (repeat_records, "records_read_twice_max", 1),
        (never_recover, "recover_within_s", None),
    ],
)
def test_a_defect_breaks_its_promise(
    defect: Callable[[Group], None], promise: str, value: int | None
) -> None:
    promises = Promises(records_read_twice_max=0)
    sound = formed()
    assert all(verdict.is_kept for verdict in judge(sound.measures(), promises))

    group = formed()
    defect(group)

    broken = {v.promise: v.value for v in judge(group.measures(), promises) if not v.is_kept}
    assert promise in broken
    assert broken[promise] == value


def test_a_member_that_goes_back_by_itself_repeats_records_and_loses_no_commit() -> None:
    """As kafka-python does, which keeps its position if it is assigned what it had."""
    group = formed()
    group.write(0)
    group.read(0)
    read = group.committed[0]
    group.probe("b")
    group.note("b", Kind.READ, offsets=tuple((0, offset) for offset in range(read)))
    group.note("b", Kind.COMMITTED, offsets=((0, 1),))
    group.committed[0] = 1
    group.probe()

    found = group.measures()
    assert found.commits_lost == 0
    assert found.records_read_twice == read


def test_a_recovery_ends_with_the_last_partition_that_works_again() -> None:
    group = formed()
    group.fault()
    fault_s = group.now_s
    for partition in (0, 1):
        group.write(partition)
        group.read(partition)
    worked_s = group.now_s
    group.read(0)

    assert group.measures().time_to_recover_s == worked_s - fault_s
    within = Promises(recover_within_s=0.5)
    (verdict,) = (v for v in judge(group.measures(), within) if v.promise == "recover_within_s")
    assert not verdict.is_kept


def test_a_record_from_before_the_fault_does_not_show_a_recovery() -> None:
    group = formed()
    group.write(0)
    group.write(1)
    group.fault()
    for partition in (0, 1):
        group.read(partition)

    assert group.measures().time_to_recover_s is None


@pytest.mark.parametrize(("silent_s", "is_expected"), [(6.0, True), (1.0, False)])
def test_an_overlap_with_a_silent_member_is_the_coordinators_if_it_was_too_early(
    silent_s: float, is_expected: bool
) -> None:
    group = formed()
    group.note("a", Kind.STALLED)
    group.now_s += silent_s
    group.note("c", Kind.ASSIGNED, partitions=(0,))

    (overlap,) = group.measures().overlaps
    assert (overlap.member, overlap.other, overlap.is_expected) == ("c", "a", is_expected)


def test_a_member_that_comes_back_and_does_not_know_yet_is_still_given_up() -> None:
    group = formed()
    group.note("a", Kind.STALLED)
    group.now_s += 6
    group.note("a", Kind.RESUMED)
    group.note("c", Kind.ASSIGNED, partitions=(0,))
    group.note("a", Kind.REVOKED, partitions=(0,))
    group.note("a", Kind.ASSIGNED, partitions=(0,))

    expected = [overlap.is_expected for overlap in group.measures().overlaps]
    assert expected == [True, False]


def test_ownership_ends_with_the_member() -> None:
    group = formed()
    group.note("a", Kind.KILLED)
    killed_s = group.now_s
    group.note("b", Kind.CLOSING)

    track = track_ownership(group.events, SILENCE_S)

    ends = {(o.member, o.partition): o.to_s for o in track.intervals}
    assert ends == {("a", 0): killed_s, ("b", 1): group.now_s}


def test_what_happened_before_the_group_was_formed_does_not_count() -> None:
    group = Group()
    group.assign({"a": [0], "b": [1]})
    group.note("b", Kind.ASSIGNED, partitions=(0,))
    group.write(0)
    group.read(0, commit=False)
    group.read(0)
    group.form()

    found = group.measures()
    assert (found.ownership_overlaps, found.records_read_twice, found.rebalances) == (0, 0, 0)
