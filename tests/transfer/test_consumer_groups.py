"""Consumer groups in imports and exports: the same group, or none, in what is written."""

from pathlib import Path
from uuid import UUID

import pytest
from msgspec.structs import replace

from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import ConsumerMemberMetadata, CurrentAssignment
from coordinator.consumer.records import (
    current_assignment_record,
    group_epoch_record,
    member_metadata_record,
    target_member_record,
    target_metadata_record,
)
from coordinator.group_types import AnyGroup
from coordinator.restore import apply_record
from protocol.names import GroupId, MemberId, TopicName
from storage.api import Record, RecordPair, StoredRecord
from storage.batch.record_batch import encode_batch
from tests.transfer.given import NOW_MS, classic_group, offset_record, read, write_segment
from transfer.contents import Contents
from transfer.errors import BadText
from transfer.plan import Plan, Rule, Terms, make_plan, of_one_kind

GROUP = GroupId("g")
TOPIC = UUID(int=5)
M1, M2 = MemberId("m-1"), MemberId("m-2")
MEMBER = ConsumerMemberMetadata(M1, client_id="c", subscribed_topic_names=(TopicName("t"),))


def owns(member_id: MemberId, epoch: int, *partitions: int) -> RecordPair:
    owned = {TOPIC: dict.fromkeys(partitions, epoch)} if partitions else {}
    current = CurrentAssignment(epoch, epoch - 1, assigned=owned)
    return current_assignment_record(GROUP, member_id, current)


TWO_MEMBERS = (
    member_metadata_record(GROUP, MEMBER),
    group_epoch_record(GROUP, 2, 7),
    target_member_record(GROUP, M1, {TOPIC: frozenset({0, 1})}),
    target_metadata_record(GROUP, 2, NOW_MS),
    owns(M1, 2, 0, 1),
    offset_record("g", "t", 0, 41),
    member_metadata_record(GROUP, replace(MEMBER, member_id=M2)),
    group_epoch_record(GROUP, 3, 7),
    target_member_record(GROUP, M1, {TOPIC: frozenset({0})}),
    target_member_record(GROUP, M2, {TOPIC: frozenset({1})}),
    target_metadata_record(GROUP, 3, NOW_MS),
    owns(M2, 3),
    owns(M1, 3, 0),
    owns(M2, 3, 1),
)


def contents_of(*records: RecordPair) -> Contents:
    contents = Contents()
    for key, value in records:
        if value is None:
            contents.remove(key)
        else:
            contents.put(key, value, NOW_MS)
    return contents


def planned(source: Contents, target: Contents | None = None) -> Plan:
    return make_plan(source, target or Contents(), Terms(Rule.OVERWRITE, NOW_MS))


def loaded(*plans: Plan) -> AnyGroup:
    groups: dict[GroupId, AnyGroup] = {}
    records = [record for plan in plans for change in plan.changes for record in change.records]
    for offset, record in enumerate(records):
        apply_record(groups, StoredRecord(offset, *record))
    (group,) = groups.values()
    group.check()
    return group


def test_a_group_is_written_as_its_newest_records_say() -> None:
    group = loaded(planned(contents_of(*TWO_MEMBERS)))

    assert isinstance(group, ConsumerGroup)
    assert (group.epoch, group.assignment_epoch) == (3, 3)
    assert {m.member_id: m.current.member_epoch for m in group.members.values()} == {M1: 3, M2: 3}
    assert group.owners == {TOPIC: {0: M1, 1: M2}}
    assert group.targets == {M1: {TOPIC: {0}}, M2: {TOPIC: {1}}}
    assert group.offsets[TopicName("t")][0].committed_offset == 41


def test_a_group_replaces_an_earlier_state_of_it() -> None:
    earlier = contents_of(*TWO_MEMBERS[:6])

    group = loaded(planned(earlier), planned(contents_of(*TWO_MEMBERS), earlier))

    assert isinstance(group, ConsumerGroup)
    assert group.owners == {TOPIC: {0: M1, 1: M2}}


@pytest.mark.parametrize("other_first", [True, False])
def test_a_group_takes_the_place_of_a_classic_one_and_the_other_way_round(
    other_first: bool,
) -> None:
    classic, consumer = contents_of(classic_group("g")), contents_of(*TWO_MEMBERS)
    first, then = (classic, consumer) if other_first else (consumer, classic)

    group = loaded(planned(first), planned(then, first))

    assert isinstance(group, ConsumerGroup) is other_first


def test_of_a_group_that_changed_its_kind_the_older_records_are_left_out() -> None:
    """As a Rollcall left them that did not know consumer groups."""
    contents = contents_of(classic_group("g"), *TWO_MEMBERS)

    assert [*of_one_kind(contents)] == [(GROUP, "was classic and consumer, is written as consumer")]
    assert isinstance(loaded(planned(contents)), ConsumerGroup)


def test_a_group_whose_records_contradict_each_other_is_refused() -> None:
    """The record by which m-1 gave partition 1 back is missing."""
    broken = contents_of(*TWO_MEMBERS[:-2], owns(M2, 2, 1))

    with pytest.raises(BadText, match=r"group 'g' cannot be restored: .* m-1 still owns"):
        planned(broken)


def test_a_record_that_no_coordinator_could_load_is_damage(tmp_path: Path) -> None:
    key, value = TWO_MEMBERS[0]
    assert value is not None
    cut = Record(key, value[:-1])
    good = offset_record("g", "t", 7, 1)
    write_segment(tmp_path, 0, 0, encode_batch([good, cut], 0, NOW_MS))

    contents, tally = read(tmp_path)

    assert contents.groups[GROUP].state == {}
    (damaged,) = tally.damaged
    assert damaged.reason.startswith("record type 5, value version 0")
