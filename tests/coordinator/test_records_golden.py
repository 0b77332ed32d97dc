"""Golden records: ours against bytes that Kafka wrote, and against what it read of ours.

The golden files come from golden/record.py and a real Kafka 4.3.1; no Kafka is needed here.
"""

from collections.abc import Mapping
from uuid import UUID

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER_METADATA,
    TARGET_MEMBER,
    TARGET_METADATA,
    current_assignment_record,
    group_epoch_record,
    member_metadata_record,
    target_member_record,
    target_metadata_record,
)
from coordinator.group import CommittedOffset
from coordinator.group_types import AnyGroup
from coordinator.offsets.offset_commit import decide_offset_commit
from coordinator.record_schemas import RECORD_SCHEMAS
from coordinator.records import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    add_offset_commits,
    add_offset_tombstones,
    decode_record,
    group_metadata_record,
    group_tombstone,
    read_group_key,
    read_group_metadata_value,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from coordinator.restore import apply_record
from coordinator.settings import GroupSettings
from protocol.consumer_protocol import read_subscription_topics
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.names import GroupId, GroupState, MemberId, TopicName
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import RecordPair, StoredRecord
from tests.coordinator.golden.recorded import Recorded, as_printed, recorded
from tests.coordinator.golden.samples import sample_records
from tests.coordinator.offset_givens import Topics

WRITTEN = recorded("kafka_writes.json")
READ = recorded("kafka_reads.json")


def of_type(kind: int) -> list[Recorded]:
    found = [entry for entry in WRITTEN if record_type(entry.record.key) == kind]
    assert found, "the golden file has no such record"
    return found


@pytest.mark.parametrize("entry", WRITTEN + READ, ids=str)
def test_we_read_in_every_record_what_kafka_reads_in_it(entry: Recorded) -> None:
    decoded = decode_record(*entry.record)

    assert decoded is not None
    assert entry.printed_key["type"] == str(record_type(entry.record.key))
    assert as_printed(decoded.key, 0) == entry.printed_key["data"]
    if entry.printed_value is None:
        assert decoded.value is None
    else:
        assert decoded.value_version == int(entry.printed_value["version"])
        printed = as_printed(decoded.value, decoded.value_version)
        assert _opaque(printed) == _opaque(entry.printed_value["data"])


def _opaque(printed: object) -> object:
    """Kafka's tool looks into a consumer's subscription and assignment; here they are bytes."""
    if isinstance(printed, Mapping) and printed.get("protocolType") == "consumer":
        members = [
            {**member, "subscription": "...", "assignment": "..."} for member in printed["members"]
        ]
        return {**printed, "members": members}
    return printed


def test_the_golden_file_that_kafka_read_is_what_we_write_today() -> None:
    assert [entry.record for entry in READ] == sample_records()


def test_every_record_type_and_value_version_was_read_by_kafka() -> None:
    read = {
        (int(entry.printed_key["type"]), int(entry.printed_value["version"]))
        for entry in READ
        if entry.printed_value is not None
    }
    declared = {
        (n, version) for n, schema in RECORD_SCHEMAS.items() for version in schema.value.VERSIONS
    }
    assert read == declared


def test_a_committed_offset_is_written_as_kafka_wrote_it() -> None:
    for entry in of_type(OFFSET_COMMIT):
        group_id, topic, partition = read_offset_key(entry.record.key)
        written: list[RecordPair] = []
        if entry.record.value is None:
            add_offset_tombstones(written, group_id, topic, [partition])
        else:
            commit = read_offset_commit_value(entry.record.value)
            add_offset_commits(written, group_id, topic, {partition: commit}, 4)
        assert written == [entry.record]


def test_a_group_is_written_as_kafka_wrote_it() -> None:
    sizes = set()
    for entry in of_type(GROUP_METADATA):
        group_id = read_group_key(entry.record.key)
        if entry.record.value is None:
            assert group_tombstone(group_id) == entry.record
            continue
        group = read_group_metadata_value(entry.record.value)
        sizes.add(len(group.members))
        assert entry.record == group_metadata_record(
            group_id,
            protocol_type=group.protocol_type,
            generation_id=group.generation_id,
            protocol_name=group.protocol_name,
            leader_id=group.leader_id,
            state_since_ms=group.state_since_ms,
            members=group.members,
        )
    assert sizes == {0, 1, 2}


@pytest.mark.parametrize(
    ("group", "version", "retention_ms"),
    [
        ("simple", 8, -1),
        ("simple-by-id", 10, -1),
        ("simple-old", 5, -1),
        ("simple-expiring", 2, 3_600_000),
    ],
)
def test_the_same_request_at_the_same_time_writes_the_same_bytes(
    group: str, version: int, retention_ms: int
) -> None:
    # The requests of golden/record.py, whose clock and topic ids are read from the records.
    entries = [e for e in of_type(OFFSET_COMMIT) if e.printed_key["data"]["group"] == group]
    entries = [e for e in entries if e.timestamp_ms == entries[0].timestamp_ms]
    values = [read_offset_commit_value(entry.record.value or b"") for entry in entries]
    at_ms = values[0].committed_at_ms
    topic_id = values[0].topic_id if version > 4 else UUID(int=5)
    asked = [
        OffsetCommitRequestPartition(
            read_offset_key(entry.record.key).partition,
            value.committed_offset,
            value.leader_epoch,
            value.metadata or None,
        )
        for entry, value in zip(entries, values, strict=True)
    ]
    topic = OffsetCommitRequestTopic(TopicName("orders"), topic_id, asked)
    request = OffsetCommitRequest(GroupId(group), retention_time_ms=retention_ms, topics=[topic])

    outcome = decide_offset_commit(
        None,
        request,
        ReplyToken(version, "recorder", "/127.0.0.1"),
        Now(0, at_ms),
        GroupSettings(),
        Topics({"orders": 3}, {"orders": topic_id}),
    )

    assert list(outcome.records) == [entry.record for entry in entries]


def classic_group(groups: Mapping[GroupId, AnyGroup], group_id: str) -> ClassicGroup:
    group = groups[GroupId(group_id)]
    assert isinstance(group, ClassicGroup)
    return group


def test_the_groups_of_a_kafka_log_come_back() -> None:
    groups: dict[GroupId, AnyGroup] = {}
    for offset, entry in enumerate(WRITTEN):
        assert apply_record(groups, StoredRecord(offset, entry.timestamp_ms, *entry.record)) is None

    for group in groups.values():
        group.check()
    assert set(groups) == {
        "simple", "simple-by-id", "simple-old", "simple-expiring", "connect-cluster",
        "asked-only", "forgotten", "consumers", "static", "kip-848",
    }  # fmt: skip
    connect = classic_group(groups, "connect-cluster")
    assert (connect.state, connect.generation_id) == (GroupState.EMPTY, 2)
    assert connect.protocol_type == "connect"
    static = classic_group(groups, "static")
    assert static.state is GroupState.STABLE
    assert set(static.static_members) == {"instance-1", "instance-2"}
    assert static.leader_id == static.static_members["instance-2"]
    assert static.subscribed_topics == {"orders"}
    for member in static.members.values():
        assert read_subscription_topics(member.metadata_for("range")) == ("orders",)
    noted = groups[GroupId("simple")].offsets[TopicName("orders")][1]
    assert (noted.committed_offset, noted.leader_epoch, noted.metadata) == (
        1 << 40, 7, "a note: é \U0001f600",
    )  # fmt: skip
    assert set(groups[GroupId("forgotten")].offsets[TopicName("orders")]) == {0}
    expiring = groups[GroupId("simple-expiring")].offsets[TopicName("orders")][0]
    assert expiring.expire_at_ms == expiring.committed_at_ms + 3_600_000
    assert isinstance(expiring, CommittedOffset)
    consumers = groups[GroupId("kip-848")]
    assert isinstance(consumers, ConsumerGroup)
    assert (consumers.state, consumers.epoch, consumers.assignment_epoch) == (
        GroupState.EMPTY, 5, 3,
    )  # fmt: skip


def test_a_consumer_group_of_a_kafka_log_is_written_back_in_the_same_bytes() -> None:
    """What each of its records said is read from the group, and written again."""
    groups: dict[GroupId, AnyGroup] = {}
    kinds = set()
    for offset, entry in enumerate(WRITTEN):
        apply_record(groups, StoredRecord(offset, entry.timestamp_ms, *entry.record))
        kind = record_type(entry.record.key)
        group = groups.get(GroupId("kip-848"))
        if kind < GROUP_EPOCH or entry.record.value is None or not isinstance(group, ConsumerGroup):
            continue
        member_id = MemberId(entry.printed_key["data"].get("memberId", ""))
        kinds.add(kind)
        assert entry.record == _as_now(group, kind, member_id)
    assert kinds == {3, 5, 6, 7, 8}


def _as_now(group: ConsumerGroup, kind: int, member_id: MemberId) -> RecordPair:
    group_id = group.group_id
    if kind == GROUP_EPOCH:
        return group_epoch_record(group_id, group.epoch, group.metadata_hash)
    if kind == TARGET_METADATA:
        return target_metadata_record(group_id, group.assignment_epoch, group.assigned_at_ms)
    if kind == TARGET_MEMBER:
        return target_member_record(group_id, member_id, group.target_of(member_id))
    if kind == MEMBER_METADATA:
        return member_metadata_record(group_id, group.members[member_id].metadata)
    assert kind == CURRENT_ASSIGNMENT
    return current_assignment_record(group_id, member_id, group.members[member_id].current)
