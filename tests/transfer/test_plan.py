"""Plan: which offsets win where the target has groups already, and what a Kafka must not get."""

import pytest

from coordinator.classic.generation_record import generation_record
from coordinator.records import read_offset_commit_value, read_offset_key, record_type
from protocol.names import ZERO_TOPIC_ID, GenerationId, GroupId, MemberId
from seams.java_hash import partition_of
from storage.api import Record
from tests.transfer.given import (
    FOREIGN_ID,
    NOW_MS,
    TOPIC_ID,
    classic_group,
    commit,
    foreign_record,
    shown,
)
from transfer.contents import Contents, home_of
from transfer.errors import BadText
from transfer.plan import Plan, Rule, TargetNotEmpty, Terms, for_kafka, make_plan


def contents(
    offsets: dict[str, dict[tuple[str, int], tuple[int, int]]], *state: tuple[Record, int]
) -> Contents:
    """group -> place -> (offset, commit time); and (record, time) of each state record."""
    made = Contents()
    for group_id, places in offsets.items():
        for place, (offset, at_ms) in places.items():
            made.group(GroupId(group_id)).offsets[place] = (commit(offset, at_ms), at_ms)
    for record, at_ms in state:
        assert record.value is not None
        made.put(record.key, record.value, at_ms)
    return made


def planned(source: Contents, target: Contents, rule: Rule = Rule.REFUSE, **more: object) -> Plan:
    terms = Terms(rule, NOW_MS, **more)  # type: ignore[arg-type]
    return make_plan(source, target, terms)


def applied(target: Contents, plan: Plan) -> Contents:
    for change in plan.changes:
        for record in change.records:
            if record.value is None:
                target.remove(record.key)
            else:
                target.put(record.key, record.value, record.timestamp_ms)
    return target


T0, T1 = ("t", 0), ("t", 1)


def test_an_empty_target_takes_everything() -> None:
    source = contents({"g": {T0: (5, 1)}, "h": {T1: (6, 2)}}, (classic_group("g"), 3))
    plan = planned(source, Contents())
    assert (plan.groups_added, plan.offsets_written, plan.records) == (2, 2, 3)
    assert shown(applied(Contents(), plan)) == shown(source)
    assert record_type(plan.changes[0].records[0].key) == 2, "a group's state comes first"
    assert [record.timestamp_ms for record in plan.changes[0].records] == [3, 1]


def test_a_target_with_groups_is_refused_without_a_rule() -> None:
    with pytest.raises(TargetNotEmpty, match="already has 1 groups"):
        planned(contents({"g": {T0: (5, 1)}}), contents({"other": {T0: (1, 1)}}))


def test_merging_takes_the_newer_commit_of_each_partition() -> None:
    source = contents({"g": {T0: (5, 100), T1: (5, 300)}})
    target = contents({"g": {T0: (7, 200), T1: (9, 200), ("u", 0): (1, 1)}, "h": {T0: (1, 1)}})
    plan = planned(source, target, Rule.MERGE)
    assert (plan.offsets_written, plan.offsets_kept, plan.groups_changed) == (1, 1, 1)
    assert shown(applied(target, plan)) == {
        "g": {T0: 7, T1: 5, ("u", 0): 1},
        "h": {T0: 1},
    }


def test_of_two_commits_at_the_same_moment_the_targets_stays() -> None:
    target = contents({"g": {T0: (7, 100)}})
    plan = planned(contents({"g": {T0: (5, 100)}}), target, Rule.MERGE)
    assert (plan.records, plan.offsets_kept, plan.groups_unchanged) == (0, 1, 1)


def test_overwriting_takes_the_sources_and_leaves_nothing_else_of_its_groups() -> None:
    source = contents({"g": {T0: (5, 100)}})
    target = contents(
        {"g": {T0: (7, 200), T1: (9, 200)}, "h": {T0: (1, 1)}}, (classic_group("g"), 9)
    )
    plan = planned(source, target, Rule.OVERWRITE)
    assert shown(applied(target, plan)) == {"g": {T0: 5}, "h": {T0: 1}}
    assert target.groups[GroupId("g")].kind == "simple"


@pytest.mark.parametrize("rule", [Rule.MERGE, Rule.OVERWRITE])
def test_a_second_time_there_is_nothing_to_write(rule: Rule) -> None:
    source = contents(
        {"g": {T0: (5, 100)}, "k": {T1: (6, 1)}},
        (classic_group("g"), 3),
        (foreign_record(3, "k"), 4),
    )
    target = applied(Contents(), planned(source, Contents()))
    plan = planned(source, target, rule)
    assert (plan.records, plan.groups_unchanged) == (0, 2)


@pytest.mark.parametrize(("source_ms", "wins"), [(100, False), (200, False), (300, True)])
def test_merging_takes_the_newer_state_of_a_group_as_a_whole(source_ms: int, wins: bool) -> None:
    source = contents({}, (classic_group("g", generation=9), source_ms))
    target = contents({}, (foreign_record(3, "g"), 200), (foreign_record(6, "g"), 150))
    plan = planned(source, target, Rule.MERGE)
    after = applied(target, plan).groups[GroupId("g")]
    assert after.kinds == (("classic",) if wins else ("consumer",))
    assert plan.states_kept == (not wins)


def test_merging_offsets_alone_leaves_a_groups_state() -> None:
    target = contents({}, (classic_group("g"), 1))
    plan = planned(contents({"g": {T0: (1, 1)}}), target, Rule.MERGE)
    assert applied(target, plan).groups[GroupId("g")].kind == "classic"


def test_members_are_buried_after_what_they_were_assigned() -> None:
    target = contents({}, *[(foreign_record(kind, "g"), 1) for kind in (3, 5, 6, 7, 8)])
    plan = planned(contents({"g": {T0: (1, 2)}}), target, Rule.OVERWRITE)
    gone = [record_type(record.key) for record in plan.changes[0].records if record.value is None]
    assert gone == [8, 7, 6, 5, 3]


def test_a_topic_id_is_kept_only_if_it_is_the_targets_own() -> None:
    source = Contents()
    source.group(GroupId("g")).offsets |= {
        T0: (commit(1, topic_id=FOREIGN_ID), 1),
        ("mine", 0): (commit(2, topic_id=TOPIC_ID), 1),
    }
    plan = planned(source, Contents(), topic_ids={"t": TOPIC_ID, "mine": TOPIC_ID})
    ids = {
        read_offset_key(record.key).topic: read_offset_commit_value(record.value).topic_id
        for record in plan.changes[0].records
        if record.value is not None
    }
    assert ids == {"t": ZERO_TOPIC_ID, "mine": TOPIC_ID}
    assert plan.topic_ids_dropped == 1


@pytest.mark.parametrize(("version", "expires", "written"), [(4, -1, 4), (3, -1, 3), (4, 99, 1)])
def test_values_are_written_in_kafkas_choice_of_version(
    version: int, expires: int, written: int
) -> None:
    source = Contents()
    found = commit(1, expire_at_ms=expires, metadata="m", leader_epoch=-1 if expires > 0 else 6)
    source.group(GroupId("g")).offsets[T0] = (found, 1)
    plan = planned(source, Contents(), value_version=version)
    value = plan.changes[0].records[0].value
    assert value is not None
    assert int.from_bytes(value[:2], "big") == written
    assert read_offset_commit_value(value) == found


@pytest.mark.parametrize("rule", Rule)
def test_an_unknown_commit_time_is_written_as_now(rule: Rule) -> None:
    # A Kafka deletes an offset of time -1 at its first expiry check.
    source = Contents()
    source.group(GroupId("g")).put_offset(T0, 7, 3, "m")
    plan = planned(source, Contents(), rule=rule)
    (record,) = plan.changes[0].records
    assert record.timestamp_ms == NOW_MS
    assert record.value is not None
    assert read_offset_commit_value(record.value).committed_at_ms == NOW_MS


def test_an_unknown_commit_time_is_that_of_the_record_where_there_is_one() -> None:
    source = Contents()
    source.group(GroupId("g")).offsets[T0] = (commit(7, at_ms=-1), 1_234)
    (record,) = planned(source, Contents()).changes[0].records
    assert record.timestamp_ms == 1_234
    assert record.value is not None
    assert read_offset_commit_value(record.value).committed_at_ms == 1_234


@pytest.mark.parametrize("rule", [Rule.MERGE, Rule.OVERWRITE])
def test_an_offset_of_unknown_time_is_written_once(rule: Rule) -> None:
    source, target = Contents(), Contents()
    source.group(GroupId("g")).put_offset(T0, 7, -1, "")
    target.group(GroupId("g")).offsets[T0] = (commit(7, at_ms=50), 50)
    assert planned(source, target, rule=rule).records == 0
    target.group(GroupId("g")).offsets[T0] = (commit(7, at_ms=-1), -1)
    assert planned(source, target, rule=rule).records == 1, "what has no time yet gets one"


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_kept_topic_ids_do_not_depend_on_the_order_of_groups(names: str) -> None:
    source = Contents()
    ids = {"a": TOPIC_ID, "b": FOREIGN_ID}
    for name in names:
        source.group(GroupId(name)).offsets[T0] = (commit(1, topic_id=ids[name]), 1)
    plan = planned(source, Contents(), keeps_topic_ids=True)
    found = {
        change.group_id: read_offset_commit_value(change.records[0].value or b"").topic_id
        for change in plan.changes
    }
    assert found == ids
    assert plan.topic_ids_dropped == 0


def test_a_group_without_offsets_is_no_new_group() -> None:
    source = Contents()
    source.group(GroupId("empty"))
    plan = planned(source, Contents())
    assert (plan.groups_added, plan.groups_empty, plan.records) == (0, 1, 0)


def test_what_no_record_can_hold_is_refused_before_anything_is_written() -> None:
    source = Contents()
    source.group(GroupId("g")).offsets[T0] = (commit(1, metadata="m" * 32_767), 1)
    source.check_writable()
    source.group(GroupId("g")).offsets[T0] = (commit(1, metadata="m" * 32_768), 1)
    with pytest.raises(BadText, match="group 'g', t-0: the metadata has 32768 bytes"):
        source.check_writable()


def test_groups_find_their_partition_by_kafkas_hash() -> None:
    homes = {count: home_of(GroupId("orders"), count) for count in (50, 7)}
    assert homes == {50: partition_of("orders", 50), 7: partition_of("orders", 7)}


def test_what_only_rollcall_understands_is_not_given_to_a_kafka() -> None:
    ours = generation_record(
        GroupId("begun"), GenerationId(4), ("consumer", "range"), MemberId("m"), NOW_MS, ()
    )
    made = contents({}, (ours, 1), (classic_group("g"), 2))
    assert list(for_kafka(made)) == [("begun", "has nothing that a Kafka understands")]
    assert set(made.groups) == {"g"}


def test_a_group_that_changed_its_kind_is_given_as_the_newer_one() -> None:
    made = contents({"g": {T0: (1, 1)}}, (foreign_record(3, "g"), 1), (classic_group("g"), 2))
    assert list(for_kafka(made)) == [("g", "was consumer and classic, is written as classic")]
    assert [record_type(key) for key in made.groups[GroupId("g")].state] == [2]
    assert list(for_kafka(made)) == []


def test_a_group_that_is_one_kind_is_given_whole() -> None:
    records = [(foreign_record(kind, "g"), 1) for kind in (3, 5, 16, 42)]
    made = contents({}, *records)
    assert list(for_kafka(made)) == []
    assert len(made.groups[GroupId("g")].state) == 4


GROWN = "\ufffd" * 11_000
"""What 11,000 bytes of a log that are no UTF-8 become: more than a string can have."""


@pytest.mark.parametrize(
    ("group_id", "topic", "metadata", "named"),
    [
        (GROWN, "t", "", "the group id has 33000 bytes"),
        ("g", GROWN, "", "the topic name has 33000 bytes"),
        ("g", "t", "m" * 32_768, "the metadata has 32768 bytes"),
        ("g", "t", "\ud800", "the metadata is not valid text"),
    ],
)
@pytest.mark.parametrize("version", [3, 4])
def test_what_no_record_can_hold_is_refused_whoever_brings_it(
    group_id: str, topic: str, metadata: str, named: str, version: int
) -> None:
    source = Contents()
    source.group(GroupId(group_id)).put_offset((topic, 0), 5, -1, metadata)
    with pytest.raises(BadText, match=named):
        planned(source, Contents(), value_version=version)


def test_the_longest_metadata_that_fits_can_be_read_again() -> None:
    source = Contents()
    source.group(GroupId("g")).put_offset(T0, 5, -1, "m" * 32_767)
    (change,) = planned(source, Contents()).changes
    value = change.records[0].value
    assert value is not None
    assert len(read_offset_commit_value(value).metadata) == 32_767
