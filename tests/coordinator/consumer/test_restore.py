"""Restoring consumer groups: the records of a log give back the group that wrote them."""

from collections.abc import Sequence
from itertools import islice
from random import Random
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from coordinator.classic.group import ClassicGroup
from coordinator.consumer.evolve import evolve_consumer_group
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
)
from coordinator.consumer.records import (
    current_assignment_record,
    event_records,
    group_epoch_record,
    group_tombstones,
    member_metadata_record,
    member_tombstones,
    regular_expression_record,
    target_member_record,
    target_metadata_record,
)
from coordinator.consumer.resolved import ResolvedRegularExpression
from coordinator.group import CommittedOffset
from coordinator.group_types import AnyGroup, group_of_plain, plain_of
from coordinator.record_schemas import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    GroupKey,
    GroupMemberKey,
    TargetAssignmentMetadataValue,
    TopicPartitionsWithEpochs,
)
from coordinator.records import UnreadableRecord, add_offset_commits, group_tombstone
from coordinator.restore import apply_record
from protocol.names import GroupId, GroupState, MemberId, TopicName
from storage.api import Record, RecordPair, StoredRecord
from tests.coordinator.consumer.random_events import AT_MS, GROUP, RandomEvents
from tests.coordinator.golden.samples import record_of
from tests.coordinator.test_restore import a_group_record, a_stored_member

ORDERS_ID, AUDIT_ID = UUID(int=1), UUID(int=2)
ORDERS, AUDIT = TopicName("orders"), TopicName("audit")
M1, M2 = MemberId("m-1"), MemberId("m-2")

EVENTS_PER_GROUP = 60
CONSUMERS = ConsumerMemberMetadata(M1, client_id="c", subscribed_topic_names=(ORDERS,))


def restored(records: Sequence[RecordPair]) -> dict[GroupId, AnyGroup]:
    groups: dict[GroupId, AnyGroup] = {}
    for offset, record in enumerate(records):
        assert apply_record(groups, StoredRecord(offset, AT_MS, *record)) is None
    return groups


def the_group(*records: RecordPair) -> ConsumerGroup:
    (group,) = restored(records).values()
    assert isinstance(group, ConsumerGroup)
    group.check()
    return group


def kept_of(group: AnyGroup) -> object:
    """All that the log keeps of it, whatever the order in which it got there."""
    assert isinstance(group, ConsumerGroup)
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assigned_at_ms,
        group.state,
        {member_id: (m.metadata, m.current) for member_id, m in group.members.items()},
        group.targets,
        group.regexes,
        group.owners,
        group.static_members,
        group.subscribed_names,
        group.subscribed_regexes,
        group.classic_member_count,
        group.offsets,
    )


def a_current(
    epoch: int, *partitions: int, state: ConsumerMemberState = ConsumerMemberState.STABLE
) -> CurrentAssignment:
    owned = {ORDERS_ID: dict.fromkeys(partitions, epoch)} if partitions else {}
    return CurrentAssignment(epoch, epoch - 1, state, owned)


def an_offset() -> Record:
    records: list[RecordPair] = []
    add_offset_commits(records, GROUP, ORDERS, {0: CommittedOffset(41)}, 4)
    return Record(*records[0])


A_MEMBER = (
    member_metadata_record(GROUP, CONSUMERS),
    group_epoch_record(GROUP, 2, 99),
    target_member_record(GROUP, M1, {ORDERS_ID: frozenset({0, 1})}),
    target_metadata_record(GROUP, 2, AT_MS),
    current_assignment_record(GROUP, M1, a_current(2, 0, 1)),
)
"""What the first heartbeat of a group's first member writes."""


# ---------------------------------------------------------------- what was written comes back


@pytest.mark.parametrize("seed", range(40))
def test_the_records_of_events_give_the_group_that_the_events_gave(seed: int) -> None:
    group = ConsumerGroup(GROUP, AT_MS)
    records: list[RecordPair] = []
    for event in islice(RandomEvents(seed, group), EVENTS_PER_GROUP):
        evolve_consumer_group(group, event)
        records.extend(event_records(event))
        group.check()

    again = the_group(*records)

    assert kept_of(again) == kept_of(group)
    assert again.state_since_ms == AT_MS


@pytest.mark.parametrize("seed", range(40))
def test_a_snapshot_at_any_moment_and_the_rest_of_the_log_give_the_same_group(seed: int) -> None:
    group = ConsumerGroup(GROUP, AT_MS)
    groups: dict[GroupId, AnyGroup] = {}
    chance = Random(seed)
    for offset, event in enumerate(islice(RandomEvents(seed, group), EVENTS_PER_GROUP)):
        evolve_consumer_group(group, event)
        for record in event_records(event):
            apply_record(groups, StoredRecord(offset, AT_MS, *record))
        if groups and chance.random() < 0.2:
            groups[GROUP] = through_a_snapshot(groups[GROUP])

    assert kept_of(groups[GROUP]) == kept_of(group)


def through_a_snapshot(group: AnyGroup) -> AnyGroup:
    blob = msgspec.msgpack.encode(plain_of(group))
    again = group_of_plain(GROUP, msgspec.msgpack.decode(blob))
    again.check()
    assert kept_of(again) == kept_of(group)
    assert msgspec.msgpack.encode(plain_of(again)) == blob
    return again


@pytest.mark.parametrize("seed", range(20))
def test_a_log_of_which_only_the_newest_records_are_left_gives_the_same_group(seed: int) -> None:
    """As the cleaner leaves it, tombstones included: members come after what they own."""
    group = ConsumerGroup(GROUP, AT_MS)
    newest: dict[bytes | None, RecordPair] = {}
    for event in islice(RandomEvents(seed, group), EVENTS_PER_GROUP):
        evolve_consumer_group(group, event)
        for record in event_records(event):
            newest.pop(record[0], None)
            newest[record[0]] = record

    again = restored([*newest.values()]).get(GROUP, ConsumerGroup(GROUP, AT_MS))

    assert kept_of(again) == kept_of(group)


def test_a_group_with_offsets_keeps_them_through_a_snapshot() -> None:
    group = the_group(*A_MEMBER, an_offset())

    assert through_a_snapshot(group).offsets == {ORDERS: {0: CommittedOffset(41)}}


def test_the_records_of_a_first_heartbeat_are_a_stable_group() -> None:
    group = the_group(*A_MEMBER)

    assert (group.state, group.epoch, group.assignment_epoch) == (GroupState.STABLE, 2, 2)
    assert (group.metadata_hash, group.assigned_at_ms) == (99, AT_MS)
    assert group.members[M1].metadata == CONSUMERS
    assert group.members[M1].current == a_current(2, 0, 1)
    assert group.targets == {M1: {ORDERS_ID: {0, 1}}}
    assert group.owners == {ORDERS_ID: {0: M1, 1: M1}}
    assert group.is_refresh_due  # nobody wrote down when its topics were looked at


def test_a_regular_expression_comes_back_with_its_topics_and_goes_with_its_tombstone() -> None:
    record = regular_expression_record(GROUP, "o.*", [AUDIT, ORDERS], 5, AT_MS)
    group = the_group(*A_MEMBER, record)

    assert group.regexes == {"o.*": ResolvedRegularExpression(frozenset({ORDERS, AUDIT}), 5, AT_MS)}
    assert the_group(*A_MEMBER, record, Record(record[0], None)).regexes == {}


# ---------------------------------------------------------------- records of other versions


def test_partitions_without_epochs_have_the_epoch_of_their_member() -> None:
    """Kafka 4.0 to 4.2 wrote them so, as a null or not at all."""
    for epochs in (None, (), (1,)):
        topic = TopicPartitionsWithEpochs(ORDERS_ID, [0, 1], epochs)
        value = ConsumerGroupCurrentMemberAssignmentValue(7, 6, 0, [topic], [])
        group = the_group(*A_MEMBER[:4], a_record(8, value), group_epoch_record(GROUP, 7, 0))

        assert group.members[M1].current.assigned == {ORDERS_ID: {0: 7, 1: 7}}


def test_partitions_of_a_member_that_left_for_a_while_have_epoch_zero() -> None:
    topic = TopicPartitionsWithEpochs(ORDERS_ID, [0], None)
    value = ConsumerGroupCurrentMemberAssignmentValue(-2, 6, 0, [topic], [])
    group = the_group(*A_MEMBER[:4], a_record(8, value))

    assert group.members[M1].current.assigned == {ORDERS_ID: {0: 0}}
    assert group.members[M1].current.has_left_for_a_while


def test_a_member_state_of_a_later_kafka_is_unknown() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(2, 1, 9, [], [])

    group = the_group(*A_MEMBER[:4], a_record(8, value))

    assert group.members[M1].current.state is ConsumerMemberState.UNKNOWN
    assert group.state is GroupState.RECONCILING


def test_a_member_record_without_the_tag_is_of_the_classic_protocol() -> None:
    """Kafka's default of that tag is an empty struct, not null."""
    value = ConsumerGroupMemberMetadataValue(None, None, "c", "/h", ["b", "a", "b"], None, 5, None)

    group = the_group(a_record(5, value))

    metadata = group.members[M1].metadata
    assert metadata.classic == ClassicMetadata(0, ())
    assert metadata.subscribed_topic_names == ("a", "b")
    assert (metadata.subscribed_topic_regex, metadata.server_assignor) == ("", None)
    assert group.classic_member_count == 1


def test_the_partition_metadata_of_kafka_4_0_is_passed_over() -> None:
    record = record_of(4, GroupKey(GROUP), 0, ConsumerGroupPartitionMetadataValue())
    before = the_group(*A_MEMBER)

    assert kept_of(the_group(record, *A_MEMBER)) == kept_of(before)
    assert kept_of(the_group(*A_MEMBER, record, Record(record[0], None))) == kept_of(before)


def a_record(kind: int, value: msgspec.Struct) -> Record:
    return record_of(kind, GroupMemberKey(GROUP, M1), 0, value)  # type: ignore[arg-type]


# ---------------------------------------------------------------- the order of records


def test_an_assignment_may_stand_before_its_member() -> None:
    ordered = the_group(*A_MEMBER)

    assert kept_of(the_group(*A_MEMBER[1:], A_MEMBER[0])) == kept_of(ordered)


def test_an_assignment_without_its_member_is_a_member_that_said_nothing() -> None:
    group = the_group(*A_MEMBER[1:])

    assert group.members[M1].metadata == ConsumerMemberMetadata(M1)
    assert group.members[M1].current == a_current(2, 0, 1)


def test_the_tombstones_of_a_member_end_it() -> None:
    group = the_group(*A_MEMBER, *member_tombstones(GROUP, M1))

    assert (group.members, group.targets, group.owners) == ({}, {}, {})
    assert (group.state, group.epoch) == (GroupState.EMPTY, 2)


@pytest.mark.parametrize("left_out", [0, 1])
def test_a_member_cannot_end_before_its_assignments(left_out: int) -> None:
    tombstones = [*member_tombstones(GROUP, M1)]
    del tombstones[left_out]

    with pytest.raises(UnreadableRecord, match="of m-1 is still there"):
        restored([*A_MEMBER, *tombstones])


def test_tombstones_of_what_is_not_there_change_nothing() -> None:
    tombstones = group_tombstones(the_group(*A_MEMBER))

    assert restored(tombstones) == {}
    other = [Record((r[0] or b"").replace(b"m-1", b"m-9"), None) for r in A_MEMBER[:1]]
    assert kept_of(the_group(*A_MEMBER, *other)) == kept_of(the_group(*A_MEMBER))


def test_the_tombstones_of_a_group_end_it() -> None:
    regex = regular_expression_record(GROUP, "o.*", [ORDERS], 5, AT_MS)
    group = the_group(*A_MEMBER, regex)

    assert restored([*A_MEMBER, regex, *group_tombstones(group)]) == {}


def test_offsets_outlive_their_group_as_a_simple_group() -> None:
    group = the_group(*A_MEMBER)

    (left,) = restored([*A_MEMBER, an_offset(), *group_tombstones(group)]).values()

    assert isinstance(left, ClassicGroup)
    assert left.protocol_type is None
    assert left.offsets == {ORDERS: {0: CommittedOffset(41)}}


@pytest.mark.parametrize("tombstone", [1, 3])
def test_a_group_cannot_end_before_its_parts(tombstone: int) -> None:
    """The group epoch, and the assignment epoch."""
    with pytest.raises(UnreadableRecord, match="still there"):
        restored([*A_MEMBER, Record(A_MEMBER[tombstone][0], None)])


def test_a_group_cannot_end_before_its_assignment_epoch() -> None:
    ended = [*A_MEMBER, *member_tombstones(GROUP, M1), Record(A_MEMBER[1][0], None)]

    with pytest.raises(UnreadableRecord, match="the assignment epoch is still there"):
        restored(ended)


def test_a_partition_cannot_be_owned_twice_in_one_epoch() -> None:
    other = member_metadata_record(GROUP, replace(CONSUMERS, member_id=M2))
    taken = current_assignment_record(GROUP, M2, a_current(2, 1))

    with pytest.raises(UnreadableRecord, match="m-1 still owns partition 1"):
        restored([*A_MEMBER, other, taken])


def test_a_partition_of_a_member_cannot_be_assigned_and_given_back() -> None:
    twice = replace(a_current(3, 0), pending_revocation={ORDERS_ID: {0: 2}})

    with pytest.raises(UnreadableRecord, match="m-1 owns and gives back"):
        restored([*A_MEMBER, current_assignment_record(GROUP, M1, twice)])


def test_a_partition_passes_to_a_member_in_a_later_epoch() -> None:
    other = member_metadata_record(GROUP, replace(CONSUMERS, member_id=M2))
    taken = current_assignment_record(GROUP, M2, a_current(3, 1))

    (group,) = restored([*A_MEMBER, other, taken]).values()

    assert isinstance(group, ConsumerGroup)
    assert group.owners == {ORDERS_ID: {0: M1, 1: M2}}
    # What its former owner still claims does not come back with a later record about it.
    with pytest.raises(UnreadableRecord, match="m-2 still owns partition 1"):
        restored([*A_MEMBER, other, taken, A_MEMBER[0]])


@pytest.mark.parametrize(("epoch", "at_ms"), [(-2, 0), (2, -1)])
def test_an_impossible_assignment_epoch_fails_the_load(epoch: int, at_ms: int) -> None:
    value = TargetAssignmentMetadataValue(epoch, at_ms)

    with pytest.raises(UnreadableRecord, match="assignment epoch"):
        restored([record_of(6, GroupKey(GROUP), 0, value)])


@pytest.mark.parametrize("place", range(len(A_MEMBER)))
def test_a_value_that_cannot_be_read_fails_the_load(place: int) -> None:
    record = A_MEMBER[place]
    key, written = record
    assert written is not None
    for value in (b"", b"\x00\x01" + written[2:], written[:-1]):
        with pytest.raises(UnreadableRecord):
            restored([Record(key, value)])
    with pytest.raises(UnreadableRecord):
        restored([Record((key or b"")[:-1], written)])


@pytest.mark.parametrize("place", range(len(A_MEMBER)))
def test_no_damage_to_a_record_goes_unnamed(place: int) -> None:
    """Cut at every length and with every byte inverted: it is read or it is refused by name."""
    key, value = A_MEMBER[place]
    assert key is not None
    assert value is not None
    damaged = [(key[:n], value) for n in range(len(key))]
    damaged += [(key, value[:n]) for n in range(len(value))]
    damaged += [(_inverted(key, n), value) for n in range(2, len(key))]
    damaged += [(key, _inverted(value, n)) for n in range(len(value))]
    refused = 0
    for pair in damaged:
        try:
            restored([*A_MEMBER[:place], *A_MEMBER[place + 1 :], pair])
        except UnreadableRecord:
            refused += 1
    assert refused > len(key)


def _inverted(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]


# ---------------------------------------------------------------- groups of another type


def test_a_group_that_offsets_made_becomes_a_consumer_group_and_keeps_them() -> None:
    group = the_group(an_offset(), *A_MEMBER)

    assert group.offsets == {ORDERS: {0: CommittedOffset(41)}}
    assert kept_of(group) == kept_of(the_group(*A_MEMBER, an_offset()))


@pytest.mark.parametrize("members", [(), (a_stored_member("m-9"),)], ids=["empty", "stable"])
def test_a_classic_group_of_its_own_records_has_to_end_first(members: tuple[object, ...]) -> None:
    classic = a_group_record(*members)  # type: ignore[arg-type]

    with pytest.raises(UnreadableRecord, match="is not a consumer group"):
        restored([classic, *A_MEMBER])
    converted = the_group(classic, an_offset(), group_tombstone(GROUP), *A_MEMBER)
    assert converted.offsets == {ORDERS: {0: CommittedOffset(41)}}


def test_a_classic_group_takes_the_place_of_a_consumer_group() -> None:
    ended = group_tombstones(the_group(*A_MEMBER))

    records = [*A_MEMBER, an_offset(), *ended, a_group_record(a_stored_member("m-1"))]
    (group,) = restored(records).values()

    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.STABLE
    assert group.offsets == {ORDERS: {0: CommittedOffset(41)}}
