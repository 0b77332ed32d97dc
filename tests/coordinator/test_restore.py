"""Restoring a shard: what a log says of groups, in every version, and what it leaves open."""

import pytest
from msgspec.structs import replace

from coordinator.classic.group import ClassicGroup
from coordinator.group import CommittedOffset
from coordinator.record_schemas import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator.records import (
    UnreadableRecord,
    add_offset_commits,
    add_offset_tombstones,
    group_metadata_record,
    group_tombstone,
)
from coordinator.restore import apply_record
from coordinator.stored_records import RecordSkipped, StoredMember
from protocol.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from protocol.names import ZERO_TOPIC_ID, GroupId, GroupInstanceId, GroupState, MemberId
from storage.api import Record, RecordPair, StoredRecord
from tests.coordinator.golden.samples import ID_1, record_of
from tests.coordinator.offset_givens import AUDIT, GROUP, INSTANCE, ORDERS
from tests.world import World

AT_MS = 1_600_000_000_000


def restored(*records: Record) -> dict[GroupId, ClassicGroup]:
    groups: dict[GroupId, ClassicGroup] = {}
    for offset, record in enumerate(records):
        assert apply_record(groups, StoredRecord(offset, AT_MS, *record)) is None
    for group in groups.values():
        group.check()
    return groups


def the_group(*records: Record) -> ClassicGroup:
    (group,) = restored(*records).values()
    return group


def an_offset(partition: int, commit: CommittedOffset, topic: str = "orders") -> Record:
    records: list[RecordPair] = []
    add_offset_commits(records, GROUP, type(ORDERS)(topic), {partition: commit}, 4)
    return Record(*records[0])


def a_tombstone(partition: int) -> Record:
    records: list[RecordPair] = []
    add_offset_tombstones(records, GROUP, ORDERS, [partition])
    return Record(*records[0])


def a_stored_member(
    member_id: str,
    instance_id: GroupInstanceId | None = None,
    topics: tuple[str, ...] = ("orders",),
) -> StoredMember:
    subscription = write_subscription(
        ConsumerProtocolSubscription(tuple(map(type(ORDERS), topics)))
    )
    return StoredMember(
        MemberId(member_id),
        instance_id,
        "c",
        "/10.0.0.1",
        60_000,
        10_000,
        subscription,
        b"assigned",
    )


def a_group_record(
    *members: StoredMember, generation_id: int = 4, kind: str | None = "consumer"
) -> Record:
    return group_metadata_record(
        GROUP,
        protocol_type=kind,
        generation_id=generation_id,
        protocol_name="range" if members else None,
        leader_id=members[0].member_id if members else None,
        state_since_ms=AT_MS - 5,
        members=members,
    )


FIRST, SECOND = CommittedOffset(1, 2, "a", 3, -1, ID_1), CommittedOffset(9, 2, "", 4, -1, ID_1)


# ---------------------------------------------------------------- groups


def test_a_group_with_members_is_stable_in_its_generation() -> None:
    group = the_group(
        a_group_record(
            a_stored_member("m-1"), a_stored_member("m-2", INSTANCE, ("orders", "audit"))
        )
    )

    assert (group.state, group.generation_id) == (GroupState.STABLE, 4)
    assert (group.protocol_type, group.protocol_name) == ("consumer", "range")
    assert group.leader_id == "m-1"
    assert group.state_since_ms == AT_MS - 5
    assert group.static_members == {INSTANCE: "m-2"}
    assert group.subscribed_topics == {"orders", "audit"}
    member = group.members[MemberId("m-1")]
    assert (member.client_id, member.client_host) == ("c", "/10.0.0.1")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 60_000)
    assert member.assignment == b"assigned"
    # Of what it offered only the selected protocol was written down.
    assert [name for name, _ in member.protocols] == ["range"]
    assert group.protocol_counts == {"range": 2}
    assert (member.awaiting_join, member.awaiting_sync, member.is_new) == (None, None, False)


def test_a_group_without_members_is_empty_and_keeps_its_type() -> None:
    group = the_group(a_group_record(a_stored_member("m-1")), a_group_record(generation_id=5))

    assert (group.state, group.generation_id) == (GroupState.EMPTY, 5)
    assert (group.protocol_type, group.protocol_name, group.leader_id) == ("consumer", None, "")
    assert group.subscribed_topics == frozenset()


def test_a_group_that_never_had_a_generation_has_no_type() -> None:
    group = the_group(a_group_record(generation_id=0, kind=None))

    assert (group.state, group.protocol_type, group.subscribed_topics) == (
        GroupState.EMPTY, None, None,
    )  # fmt: skip


def test_metadata_of_other_protocol_types_stays_opaque() -> None:
    group = the_group(a_group_record(a_stored_member("m-1"), kind="connect"))

    assert group.subscribed_topics is None
    assert group.members[MemberId("m-1")].protocol_type == "connect"


def test_a_subscription_that_cannot_be_read_leaves_the_topics_unknown() -> None:
    broken = replace(a_stored_member("m-2"), subscription=b"\x00")

    assert the_group(a_group_record(a_stored_member("m-1"), broken)).subscribed_topics is None


@pytest.mark.parametrize("version", GroupMetadataValue.VERSIONS)
def test_every_version_of_a_groups_record_is_read(version: int) -> None:
    member = MemberMetadata("m-1", None, "c", "/h", 60_000, 10_000, b"s", b"a")
    value = GroupMetadataValue("connect", 7, "sessioned", "m-1", AT_MS, [member])

    group = the_group(record_of(2, GroupMetadataKey(GROUP), version, value))

    assert (group.generation_id, group.leader_id) == (7, "m-1")
    assert group.state_since_ms == (AT_MS if version >= 2 else -1)
    # Where a rebalance timeout is not known, the session timeout serves.
    assert group.members[MemberId("m-1")].rebalance_timeout_ms == (60_000 if version else 10_000)


def test_a_tombstone_ends_a_group() -> None:
    assert restored(a_group_record(a_stored_member("m-1")), group_tombstone(GROUP)) == {}
    assert restored(group_tombstone(GROUP)) == {}


def test_offsets_that_outlive_their_groups_record_make_a_simple_group() -> None:
    # As in a log of Kafka's whose group changed over to the newer protocol.
    group = the_group(
        a_group_record(a_stored_member("m-1")), an_offset(0, FIRST), group_tombstone(GROUP)
    )

    assert (group.state, group.protocol_type, group.generation_id) == (GroupState.EMPTY, None, 0)
    assert group.offsets == {ORDERS: {0: FIRST}}


def test_a_member_that_stands_twice_in_a_record_fails_the_load() -> None:
    with pytest.raises(UnreadableRecord, match="twice"):
        restored(a_group_record(a_stored_member("m-1"), a_stored_member("m-1")))
    with pytest.raises(UnreadableRecord, match="twice"):
        restored(a_group_record(a_stored_member("m-1", INSTANCE), a_stored_member("m-2", INSTANCE)))


# ---------------------------------------------------------------- offsets


def test_an_offset_without_a_group_is_a_simple_group() -> None:
    group = the_group(an_offset(0, FIRST), an_offset(3, SECOND), an_offset(0, SECOND, "audit"))

    assert (group.state, group.protocol_type) == (GroupState.EMPTY, None)
    assert group.offsets == {ORDERS: {0: FIRST, 3: SECOND}, AUDIT: {0: SECOND}}


def test_the_later_record_counts() -> None:
    assert the_group(an_offset(0, FIRST), an_offset(0, SECOND)).offsets == {ORDERS: {0: SECOND}}


def test_offsets_survive_that_their_groups_record_comes_later_or_again() -> None:
    group = the_group(
        an_offset(0, FIRST),
        a_group_record(a_stored_member("m-1")),
        an_offset(1, SECOND),
        a_group_record(generation_id=5),
    )

    assert group.generation_id == 5
    assert group.offsets == {ORDERS: {0: FIRST, 1: SECOND}}


def test_a_tombstone_ends_an_offset_and_leaves_the_group() -> None:
    group = the_group(an_offset(0, FIRST), an_offset(1, SECOND), a_tombstone(0))
    assert group.offsets == {ORDERS: {1: SECOND}}

    group = the_group(an_offset(0, FIRST), a_tombstone(0), a_tombstone(7))
    assert group.offsets == {}
    assert restored(a_tombstone(0)) == {}


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_every_version_of_an_offset_is_read(version: int) -> None:
    value = OffsetCommitValue(41, 7, "note", AT_MS, AT_MS + 1 if version == 1 else -1, ID_1)

    group = the_group(record_of(1, OffsetCommitKey(GROUP, "orders", 2), version, value))

    assert group.offsets == {
        ORDERS: {
            2: CommittedOffset(
                41,
                7 if version >= 3 else -1,
                "note",
                AT_MS,
                AT_MS + 1 if version == 1 else -1,
                ID_1 if version == 4 else ZERO_TOPIC_ID,
            )
        }
    }


def test_the_oldest_record_type_is_read_as_an_offset_too() -> None:
    key = OffsetCommitKey(GROUP, "orders", 2)
    value = record_of(0, key, 0, LegacyOffsetCommitValue(41, "old", AT_MS))

    group = the_group(value)

    assert group.offsets == {ORDERS: {2: CommittedOffset(41, -1, "old", AT_MS)}}
    assert the_group(value, Record(value.key, None)).offsets == {}


# ---------------------------------------------------------------- what is not understood


@pytest.mark.parametrize(
    ("kind", "name"),
    [(11, "ShareGroupMetadata"), (23, "StreamsGroupTopology"), (9, None), (99, None)],
)
def test_records_of_other_types_are_skipped_and_reported(kind: int, name: str | None) -> None:
    groups: dict[GroupId, ClassicGroup] = {}
    key = kind.to_bytes(2, "big") + b"\x00\x01g"

    assert apply_record(groups, StoredRecord(7, AT_MS, key, b"??")) == RecordSkipped(7, kind, name)
    assert groups == {}


GOOD = an_offset(0, FIRST)
GOOD_GROUP = a_group_record(a_stored_member("m-1"))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"x", "too short to name a record type"),
        (b"", None, "too short to name a record type"),
        (b"\x00", None, "too short to name a record type"),
        (b"\x00\x01", b"", "breaks off"),
        (b"\x00\x01\x00\x09g", b"", "breaks off"),
        (GOOD.key[:-1], GOOD.value, "breaks off|does not end"),
        (GOOD.key + b"\x00", GOOD.value, "breaks off|does not end"),
        (b"\x00\x01\xff\xff\x00\x01t\x00\x00\x00\x00", GOOD.value, "breaks off"),
        (GOOD.key, b"", "too short to name its version"),
        (GOOD.key, b"\x00", "too short to name its version"),
        (GOOD.key, b"\x00\x05" + bytes(40), "value version 5: this version is not known"),
        (GOOD.key, b"\xff\xff" + bytes(40), "value version -1: this version is not known"),
        (GOOD.key, (GOOD.value or b"")[:-17], "value version 4"),
        (GOOD.key, b"\x00\x03" + bytes(12) + b"\xff\xff" + bytes(8), "metadata is null"),
        (GOOD_GROUP.key, b"\x00\x09", "value version 9: this version is not known"),
        (GOOD_GROUP.key, (GOOD_GROUP.value or b"")[:-1], "value version 3"),
        (GOOD_GROUP.key[:-1], GOOD_GROUP.value, "record type 2: key"),
        (b"\x00\x00" + GOOD.key[2:], b"\x00\x01" + bytes(40), "record type 0, value version 1"),
    ],
)  # fmt: skip
def test_what_should_have_been_understood_and_is_not_fails_the_load(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(UnreadableRecord, match=reason):
        apply_record({}, StoredRecord(0, AT_MS, key, value))


@pytest.mark.parametrize("record", [GOOD, GOOD_GROUP], ids=["offset", "group"])
def test_no_damage_to_a_record_goes_unnamed(record: Record) -> None:
    """Cut at every length and with every byte inverted: it is read or it is refused by name."""
    assert record.value is not None
    key, value = record.key, record.value
    damaged = [(key[:n], value) for n in range(len(key))]
    damaged += [(key, value[:n]) for n in range(len(value))]
    damaged += [(_inverted(key, n), value) for n in range(len(key))]
    damaged += [(key, _inverted(value, n)) for n in range(len(value))]
    refused = 0
    for damaged_key, damaged_value in damaged:
        try:
            apply_record({}, StoredRecord(0, AT_MS, damaged_key, damaged_value))
        except UnreadableRecord:
            refused += 1
    assert refused > len(key)


def _inverted(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]


# ---------------------------------------------------------------- what it takes


def test_groups_without_members_share_their_empty_tables() -> None:
    simple, empty = ClassicGroup(GroupId("a"), 1), ClassicGroup(GroupId("b"), 1)
    assert simple.members is empty.members
    assert simple.pending_sync_ids is empty.pending_sync_ids

    joined = the_group(a_group_record(a_stored_member("m-1")))
    joined.open_changed_topics().add(ORDERS)
    assert joined.members is not simple.members
    assert not any((simple.members, simple.protocol_counts, simple.changed_topics))
    for group in (simple, empty, joined):
        group.check()


def test_a_stable_group_has_tables_only_for_what_it_has() -> None:
    joined = World().given_stable_group(members=2)
    assert len(joined.members) == 2
    empty = ClassicGroup(GroupId("b"), 1)
    assert joined.pending_member_ids is empty.pending_member_ids
    assert joined.pending_sync_ids is empty.pending_sync_ids
    assert joined.static_members is empty.static_members
    joined.open_lapsed()[MemberId("m-1")] = None
    joined.open_pending()[MemberId("m-3")] = MemberId("m-3")
    assert not any((empty.lapsed_member_ids, empty.pending_member_ids))
    joined.close_tables()
    assert (joined.lapsed_member_ids, joined.pending_member_ids) == ({"m-1": None}, {"m-3": "m-3"})


@pytest.mark.pure  # rows of the compiled build have no object for a time
def test_the_offsets_of_one_commit_share_their_time() -> None:
    at_ms = 1_700_000_000_123
    commits = [an_offset(n, CommittedOffset(n, 1, "", at_ms, -1, ID_1)) for n in range(3)]
    first, second, third = the_group(*commits).offsets[ORDERS].values()
    assert first.committed_at_ms is second.committed_at_ms is third.committed_at_ms
