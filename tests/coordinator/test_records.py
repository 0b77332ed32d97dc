"""Records written by hand for speed: the same bytes as the schemas', whatever is in them."""

import string
from struct import pack
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator.classic.generation_messages import (
    BegunMember,
    GenerationBegunValue,
    OfferedProtocol,
)
from coordinator.classic.generation_record import generation_record
from coordinator.classic.group import ClassicMember
from coordinator.group import CommittedOffset
from coordinator.record_schemas import OffsetCommitKey, OffsetCommitValue
from coordinator.records import (
    add_offset_commits,
    add_offset_tombstones,
    batch_bytes_at_most,
    bytes_part,
    decode_record,
    group_metadata_record,
    group_record_of_parts,
    group_tombstone,
    length_part,
    member_part,
    members_in_order,
    offset_commit_key,
    offset_commit_value,
    read_offset_commit_value,
    read_offset_key,
)
from coordinator.stored_records import StoredMember
from protocol.compiler import writer
from protocol.names import ZERO_TOPIC_ID, GenerationId, GroupId, MemberId, TopicName
from protocol.primitives import Unwritable
from storage.api import Record, RecordPair
from storage.batch.record_batch import encode_batch

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
NAMES = st.text(string.ascii_letters + "é._-☃", max_size=200)
COMMITS = st.builds(
    CommittedOffset,
    committed_offset=INT64,
    leader_epoch=INT32,
    metadata=st.just("") | TEXT,
    committed_at_ms=INT64,
    expire_at_ms=st.just(-1) | INT64,
    topic_id=st.just(ZERO_TOPIC_ID) | st.uuids(),
)


@given(COMMITS, st.sampled_from([3, 4]))
def test_a_committed_offset_is_packed_as_its_schema_says(
    commit: CommittedOffset, configured: int
) -> None:
    version = configured if commit.expire_at_ms == -1 else 1
    value = OffsetCommitValue(
        commit.committed_offset,
        commit.leader_epoch,
        commit.metadata,
        commit.committed_at_ms,
        commit.expire_at_ms,
        commit.topic_id,
    )
    by_schema = writer(OffsetCommitValue, version, prefix=pack(">h", version))(value)

    written: list[RecordPair] = []
    add_offset_commits(written, GroupId("g"), TopicName("t"), {0: commit}, configured)

    assert written[0][1] == by_schema
    assert offset_commit_value(commit, configured) == by_schema


@given(COMMITS)
def test_what_version_4_says_is_read_back_whole(commit: CommittedOffset) -> None:
    commit = replace(commit, expire_at_ms=-1)

    assert read_offset_commit_value(offset_commit_value(commit, 4)) == commit


@given(NAMES, NAMES, INT32)
def test_a_key_is_packed_as_its_schema_says(group: str, topic: str, partition: int) -> None:
    by_schema = writer(OffsetCommitKey, 0, prefix=b"\x00\x01")(
        OffsetCommitKey(group, topic, partition)
    )

    key = offset_commit_key(GroupId(group), TopicName(topic), partition)

    assert key == by_schema
    assert read_offset_key(key) == (group, topic, partition)
    tombstones: list[RecordPair] = []
    add_offset_tombstones(tombstones, GroupId(group), TopicName(topic), [partition])
    assert tombstones == [Record(by_schema, None)]


@pytest.mark.parametrize("partitions", [[0], [1_023, 1_024], [(1 << 31) - 1, 5, 0]])
def test_partitions_of_any_size_have_their_own_keys(partitions: list[int]) -> None:
    commits = {n: CommittedOffset(n) for n in partitions}
    records: list[RecordPair] = []

    add_offset_commits(records, GroupId("g"), TopicName("t"), commits, 4)

    assert [read_offset_key(key).partition for key, _ in records] == partitions


@given(
    st.lists(
        st.tuples(st.binary(max_size=9_000), st.none() | st.binary(max_size=9_000)), min_size=1
    )
)
def test_a_batch_is_never_larger_than_foreseen(pairs: list[tuple[bytes, bytes | None]]) -> None:
    records = [Record(key, value) for key, value in pairs]

    assert len(encode_batch(records, 1 << 40, 1 << 41)) <= batch_bytes_at_most(records)


def test_a_group_without_a_type_a_protocol_and_a_leader_says_so_with_nulls() -> None:
    record = group_metadata_record(
        GroupId("g"),
        protocol_type=None,
        generation_id=0,
        protocol_name=None,
        leader_id="",
        state_since_ms=5,
        members=(),
    )

    assert record.key == b"\x00\x02\x00\x01g"
    assert record.value == (
        b"\x00\x03" b"\x00\x00" b"\x00\x00\x00\x00" b"\xff\xff" b"\xff\xff"
        + pack(">q", 5)
        + b"\x00\x00\x00\x00"
    )  # fmt: skip
    assert group_tombstone(GroupId("g")) == Record(record.key, None)


MEMBERS: Final = st.builds(
    StoredMember,
    member_id=NAMES,
    group_instance_id=st.none() | NAMES,
    client_id=NAMES,
    client_host=NAMES,
    rebalance_timeout_ms=INT32,
    session_timeout_ms=INT32,
    subscription=st.binary(max_size=300),
    assignment=st.binary(max_size=300),
)


@given(st.lists(MEMBERS, unique_by=lambda member: member.member_id), st.none() | NAMES)
def test_a_record_put_together_from_parts_is_the_record(
    members: list[StoredMember], name: str | None
) -> None:
    by_id = {member.member_id: member for member in members}
    parts: list[bytes] = []
    for member_id in members_in_order(by_id):
        member = by_id[member_id]
        parts += [member_part(member), bytes_part(member.subscription)]
        parts += [length_part(len(member.assignment)), member.assignment]
    written = group_record_of_parts(
        GroupId("g"),
        protocol_type=name,
        generation_id=7,
        protocol_name=name,
        leader_id=name,
        state_since_ms=5,
        members=len(members),
        parts=parts,
    )
    assert written == group_metadata_record(
        GroupId("g"),
        protocol_type=name,
        generation_id=7,
        protocol_name=name,
        leader_id=name,
        state_since_ms=5,
        members=members,
    )


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 20_000])
def test_a_generation_record_put_together_from_parts_is_as_its_schema_says(size: int) -> None:
    members = [
        ClassicMember(
            member_id=MemberId(f"member-{n}"),
            group_instance_id=None,
            client_id="client",
            client_host="/10.0.0.7",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", b"\0\1"), ("sticky", b"")),
        )
        for n in range(size)
    ]
    value = GenerationBegunValue(
        7,
        "consumer",
        "range",
        "member-0",
        5,
        [
            BegunMember(
                f"member-{n}",
                None,
                "client",
                "/10.0.0.7",
                60_000,
                10_000,
                [OfferedProtocol("range", b"\0\1"), OfferedProtocol("sticky", b"")],
            )
            for n in range(size)
        ],
    )
    record = generation_record(
        GroupId("g"), GenerationId(7), ("consumer", "range"), MemberId("member-0"), 5, members
    )
    assert record.value == writer(GenerationBegunValue, 0, prefix=b"\0\0")(value)


def test_a_record_of_a_type_that_nobody_knows_is_not_decoded() -> None:
    assert decode_record(b"\x00\x09\x00\x01g", b"whatever") is None
    assert decode_record(b"\x7f\xff", None) is None


@pytest.mark.parametrize("value_version", [3, 4])
def test_a_string_that_does_not_fit_is_never_written(value_version: int) -> None:
    """A record that could be written and not read would keep its partition from loading."""
    for text, fits in (("x" * 32_767, True), ("x" * 32_768, False), ("\ufffd" * 10_923, False)):
        commit = CommittedOffset(1, metadata=text)
        if fits:
            value = offset_commit_value(commit, value_version)
            assert read_offset_commit_value(value).metadata == text
            assert read_offset_key(offset_commit_key(text, text, 1)) == (text, text, 1)  # type: ignore[arg-type]
            continue
        with pytest.raises(Unwritable, match="a string of"):
            offset_commit_value(commit, value_version)
        with pytest.raises(Unwritable, match="a string of"):
            offset_commit_key(text, "t", 1)  # type: ignore[arg-type]
