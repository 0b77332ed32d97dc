"""Labelled groups: which groups get series of their own, and what is shown of the rest."""

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.metrics import group_series
from broker.metrics import labelled as labelled_module
from broker.metrics.labelled import STEPS_PER_SLICE, Labelled
from broker.metrics.lag import ShownLag
from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.classic.group_view import ClassicGroupView
from coordinator.group_counts import GroupCounts
from history.lag.model import LagStatus, group_status
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    write_assignment,
)
from protocol.names import GenerationId, GroupId, GroupState, MemberId, TopicName


class FakeCoordinator:
    """Groups, and how many there are."""

    def __init__(self) -> None:
        self.all: dict[GroupId, ClassicGroup] = {}
        self.group_counts = GroupCounts()

    def add(self, group_id: str) -> ClassicGroup:
        group = self.all[GroupId(group_id)] = ClassicGroup(GroupId(group_id), 0)
        self.group_counts.groups += 1
        return group

    def group(self, group_id: GroupId) -> ClassicGroupView | None:
        return self.all.get(group_id)


class FakeLag:
    """Of each group: (topic, partition, lag); everything was committed at offset 100."""

    def __init__(self, coordinator: FakeCoordinator) -> None:
        self._coordinator = coordinator
        self.lags: dict[str, list[tuple[str, int, int | None]]] = {}
        self.statuses: dict[str, LagStatus] = {}

    def groups(self) -> Iterator[Iterable[ClassicGroupView]]:
        groups = list(self._coordinator.all.values())
        yield groups[::2]
        yield groups[1::2]

    def of(self, group: ClassicGroupView) -> Iterator[ShownLag]:
        for topic, partition, lag in self.lags.get(group.group_id, []):
            seconds = None if lag is None else 0.5
            status = self.statuses.get(group.group_id)
            yield ShownLag(TopicName(topic), partition, 100, lag, seconds, status)

    def status(self, group: ClassicGroupView) -> LagStatus | None:
        status = self.statuses.get(group.group_id)
        return None if status is None else group_status([status])


class Place:
    def __init__(self, groups_max: int, partitions_max: int = 1_000) -> None:
        self.coordinator = FakeCoordinator()
        self.lag = FakeLag(self.coordinator)
        self.labelled = Labelled(
            self.coordinator,  # type: ignore[arg-type]
            self.lag,
            groups_max=groups_max,
            partitions_max=partitions_max,
            with_owners=True,
        )

    def add(self, group_id: str, *lags: int | None, topic: str = "t") -> ClassicGroup:
        self.lag.lags[group_id] = [(topic, number, lag) for number, lag in enumerate(lags)]
        return self.coordinator.add(group_id)

    def read(self) -> list[str]:
        """The ids of the groups that are shown, after one scrape."""
        for _ in self.labelled.read():
            pass
        return sorted(shown.group_id for shown in self.labelled.groups)


def test_within_the_limits_everything_is_shown() -> None:
    place = Place(groups_max=3, partitions_max=4)
    place.add("a", 1, 2)
    place.add("b", None)
    place.add("c", 3)

    assert place.read() == ["a", "b", "c"]
    assert len(place.labelled.rows) == 4
    assert place.labelled.groups_left_out == 0
    assert place.labelled.partitions_left_out == 0
    assert place.labelled.lag_left_out == 0
    sums = {shown.group_id: shown for shown in place.labelled.groups}
    assert (sums["a"].lag_records, sums["a"].lag_max, sums["a"].lag_seconds_max) == (3, 2, 0.5)
    assert sums["a"].topics == {"t": [200, 3]}
    assert (sums["b"].lag_records, sums["b"].lag_seconds_max) == (0, None)


def test_beyond_the_limit_those_that_lag_most_are_shown_and_the_rest_is_summed() -> None:
    place = Place(groups_max=2)
    for number in range(10):
        place.add(f"g{number}", number, number)

    assert place.read() == ["g8", "g9"]
    assert place.labelled.groups_left_out == 8
    assert place.labelled.lag_left_out == 2 * sum(range(8))
    assert place.labelled.partitions_left_out == 16


def test_between_equals_the_first_by_name_is_shown() -> None:
    place = Place(groups_max=3)
    for group_id in ("b", "ab", "c", "a", "abc", "B"):
        place.add(group_id, 7)
    assert place.read() == ["B", "a", "ab"]


def test_a_group_that_is_shown_stays_until_another_lags_a_quarter_more() -> None:
    place = Place(groups_max=1)
    place.add("a", 99)
    place.add("z", 100)
    assert place.read() == ["z"]
    place.add("a", 124)
    assert place.read() == ["z"]
    place.add("a", 126)
    assert place.read() == ["a"]
    place.add("z", 127)
    assert place.read() == ["a"]


def test_without_room_for_groups_they_are_only_counted() -> None:
    place = Place(groups_max=0)
    place.add("a", 5)
    place.add("b", 6)
    assert place.read() == []
    assert place.labelled.groups_left_out == 2
    assert place.labelled.lag_left_out == 11
    assert place.labelled.rows == []


def test_partitions_are_given_to_those_that_lag_most() -> None:
    place = Place(groups_max=10, partitions_max=3)
    place.add("small", 1, 1)
    place.add("large", 50, 0)
    place.add("middle", 2, 9)

    # All groups have their sums; of the partitions there is room for three.
    assert place.read() == ["large", "middle", "small"]
    shown = [(group, labels, lag) for group, labels, _, lag, *_ in place.labelled.rows]
    assert shown == [
        ('"large"', 'topic="t",partition="0"', 50),
        ('"large"', 'topic="t",partition="1"', 0),
        ('"middle"', 'topic="t",partition="1"', 9),
    ]
    assert place.labelled.partitions_left_out == 3


def test_groups_are_counted_by_verdict_whether_they_are_shown_or_not() -> None:
    place = Place(groups_max=1)
    for number, status in enumerate((LagStatus.OK, LagStatus.OK, LagStatus.ERR)):
        place.add(f"g{number}", 1)
        place.lag.statuses[f"g{number}"] = status
    place.add("new", 1)
    place.read()
    assert place.labelled.statuses == {LagStatus.OK: 2, LagStatus.WARN: 0, LagStatus.ERR: 1}


def stable(group: ClassicGroup, member_id: str, assignment: bytes) -> None:
    group.state = GroupState.STABLE
    group.admit(
        ClassicMember(
            member_id=MemberId(member_id),
            group_instance_id=None,
            client_id='cli"ent',
            client_host="/10.0.0.7",
            session_timeout_ms=1,
            rebalance_timeout_ms=1,
            protocol_type="consumer",
            protocols=(("range", b""),),
            assignment=assignment,
        )
    )


def test_the_owner_of_a_partition_is_named_and_a_new_one_is_noticed() -> None:
    place = Place(groups_max=9)
    group = place.add("g", 1, 2)
    assignment = write_assignment(
        ConsumerProtocolAssignment((TopicPartitions(TopicName("t"), (1,)),))
    )
    stable(group, "m-1", assignment)

    def owners() -> list[str]:
        place.read()
        return [row[5] for row in place.labelled.rows]

    no_owner = 'member_host="",consumer_id="",client_id=""'
    assert owners() == [
        no_owner,
        'member_host="/10.0.0.7",consumer_id="m-1",client_id="cli\\"ent"',
    ]
    # A static member came back: the generation is the same, the member's id is not.
    group.dismiss(MemberId("m-1"))
    stable(group, "m-2", assignment)
    assert 'consumer_id="m-2"' in owners()[1]
    # A new generation with another assignment.
    group.members[MemberId("m-2")].assignment = b"opaque"
    group.generation_id = GenerationId(5)
    assert owners() == [no_owner, no_owner]


def test_while_a_group_rebalances_no_partition_has_an_owner() -> None:
    place = Place(groups_max=9)
    group = place.add("g", 1)
    stable(
        group,
        "m-1",
        write_assignment(ConsumerProtocolAssignment((TopicPartitions(TopicName("t"), (0,)),))),
    )
    group.state = GroupState.PREPARING_REBALANCE
    place.read()
    assert 'consumer_id=""' in place.labelled.rows[0][5]


@pytest.mark.parametrize("groups_max", [1, 10_000])
def test_a_walk_over_many_takes_breaths(groups_max: int) -> None:
    place = Place(groups_max=groups_max, partitions_max=10_000)
    for number in range(1_000):
        place.add(f"g{number}", 1, 2, 3)
    pauses = sum(1 for _ in place.labelled.read())
    assert pauses >= 4_000 // STEPS_PER_SLICE


def test_one_huge_group_takes_breaths_as_well() -> None:
    place = Place(groups_max=1, partitions_max=100)
    place.add("g", *range(10_000))
    pauses = sum(1 for _ in place.labelled.read())
    assert pauses >= 10_000 // STEPS_PER_SLICE
    assert len(place.labelled.rows) == 100
    assert {row[3] for row in place.labelled.rows} == set(range(9_900, 10_000))


def test_a_group_that_changes_during_a_pause_does_no_harm() -> None:
    place = Place(groups_max=5)
    for number in range(1_000):
        place.add(f"g{number}", number)
    reading = place.labelled.read()
    next(reading)
    for number in range(900):
        del place.coordinator.all[GroupId(f"g{number}")]
    place.add("late", 10_000)
    for _ in reading:
        pass
    assert len(place.labelled.groups) == 5


def test_after_a_scrape_nothing_is_kept() -> None:
    place = Place(groups_max=5)
    place.add("g", 1)
    place.read()
    for _ in place.labelled.release():
        pass
    assert place.labelled.groups == []
    assert place.labelled.rows == []


def test_only_a_bad_status_has_a_series_for_each_partition() -> None:
    place = Place(groups_max=5)
    for group_id, status in (("well", LagStatus.OK), ("stuck", LagStatus.STALL)):
        place.add(group_id, 1)
        place.lag.statuses[group_id] = status
    place.add("new", 1)
    place.read()
    lines = [
        line
        for portion in group_series.collect(place.labelled)
        if portion
        for line in portion.lines
    ]
    of_partitions = [line for line in lines if line.startswith("group_coordinator_lag_verdict")]
    assert of_partitions == [
        'group_coordinator_lag_verdict{group="stuck",topic="t",partition="0",verdict="STALL"} 1\n'
    ]
    of_groups = [line for line in lines if line.startswith("group_coordinator_group_lag_verdict")]
    assert len(of_groups) == 2


def test_an_unknown_lag_has_no_sample() -> None:
    place = Place(groups_max=5)
    place.add("g", None, 3)
    place.read()
    lines = [
        line
        for portion in group_series.collect(place.labelled)
        if portion
        for line in portion.lines
    ]
    assert sum(line.startswith("group_coordinator_lag_records") for line in lines) == 1
    assert sum(line.startswith("group_coordinator_committed_offset") for line in lines) == 2


ODD_IDS = st.text(st.characters(codec=None), max_size=4) | st.text(
    "ab\0\U0010ffff\ud800", max_size=4
)


@given(st.lists(ODD_IDS, unique=True, max_size=12))
def test_equals_are_ordered_by_the_bytes_of_their_ids(group_ids: list[str]) -> None:
    place = Place(groups_max=100, partitions_max=0)
    for group_id in group_ids:
        place.add(group_id, 7)
    place.read()
    shown = [group.group_id for group in place.labelled.groups]
    assert shown == sorted(group_ids, key=lambda text: text.encode("utf-8", "surrogatepass"))


def test_the_order_of_many_groups_is_found_in_slices() -> None:
    place = Place(groups_max=10_000, partitions_max=100)
    lags = {f"g{number}": number * 7_919 % 50 for number in range(5 * STEPS_PER_SLICE + 1)}
    for group_id, lag in lags.items():
        place.add(group_id, lag)
    pauses = sum(1 for _ in place.labelled.read())
    shown = [group.group_id for group in place.labelled.groups]
    assert shown == sorted(lags, key=lambda group_id: (-lags[group_id], group_id))
    steps = 3 * len(lags)  # they are read, ranked and shown, each with one partition or so
    assert pauses > steps // STEPS_PER_SLICE


def test_beyond_the_partitions_limit_no_group_is_sorted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place(groups_max=1_000, partitions_max=3)
    for number in range(100):
        place.add(f"g{number}", 1, 2)
    ranked: list[ShownLag] = []
    most_lag = labelled_module._most_lag

    def counting(lag: ShownLag) -> tuple[int, str, int]:
        ranked.append(lag)
        return most_lag(lag)

    monkeypatch.setattr(labelled_module, "_most_lag", counting)
    place.read()
    assert [(row[0], row[3]) for row in place.labelled.rows] == [
        ('"g0"', 1),
        ('"g0"', 2),
        ('"g1"', 2),
    ]
    assert len(ranked) == 2, "of the one group that has more partitions than there is room for"
    assert place.labelled.partitions_left_out == 197
