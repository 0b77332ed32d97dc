"""Compiler: declarations beyond what Kafka's messages need today, and what is refused.

`Everything` uses each word of the vocabulary: records of `__consumer_offsets` are declared with it
too. The bytes expected here were worked out by hand.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar
from uuid import UUID

import pytest

from protocol.compiler import reader, writer
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.names import ZERO_TOPIC_ID, ErrorCode, GenerationId, GroupId, GroupInstanceId, TopicId
from protocol.primitives import Malformed, Unwritable
from protocol.schema import (
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT64,
    STRING,
    UINT16,
    Message,
    Struct,
    array,
    between,
    nullable,
    since,
    tagged,
    until,
)
from protocol.schema import UUID as UUID_WIRE


class Inner(Struct):
    port: Annotated[int, UINT16] = 0


class Everything(Message):
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 3

    name: Annotated[str, STRING] = ""
    old: Annotated[int, until(INT16, 1, ignorable=True)] = -1
    middle: Annotated[int, between(INT8, 1, 2)] = 7
    new: Annotated[str | None, since(STRING, 2, nullable=4)] = ""
    flag: Annotated[bool, since(BOOL, 4)] = True
    inner: Annotated[Inner | None, nullable(Inner, since=2)] = None
    sums: Annotated[Sequence[int] | None, since(array(INT64), 4, nullable=True)] = None
    blobs: Annotated[Sequence[bytes], since(array(BYTES), 4)] = ()
    topic_id: Annotated[TopicId, tagged(UUID_WIRE, 3, since=4, ignorable=True)] = ZERO_TOPIC_ID
    hint: Annotated[Inner | None, tagged(Inner, 200, since=4, nullable=True)] = None


def test_each_version_has_its_own_bytes() -> None:
    assert (
        writer(Everything, 0)(Everything("a", 1, inner=Inner(9))).hex(" ") == "00 01 61 00 01 00 09"
    )
    assert writer(Everything, 1)(Everything("a", 1, 2, inner=Inner(9))).hex(" ") == (
        "00 01 61 00 01 02 00 09"
    )
    assert writer(Everything, 2)(Everything("a", 1, 2, "b")).hex(" ") == "00 01 61 02 00 01 62 ff"
    assert writer(Everything, 3)(Everything("a", new="b", inner=Inner(65535))).hex(" ") == (
        "02 61 02 62 01 ff ff 00 00"
    )


def test_the_last_version_with_all_that_it_has() -> None:
    everything = Everything(
        "a",
        new=None,
        flag=False,
        sums=(1, -1),
        blobs=(b"", b"xy"),
        topic_id=UUID(int=5),
        hint=Inner(258),
    )
    raw = bytes.fromhex(
        "0261 00 00 ff 03 0000000000000001 ffffffffffffffff 03 01 03 7879"
        "02 03 10 00000000000000000000000000000005 c801 04 01 0102 00"
    )

    assert writer(Everything, 4)(everything) == raw
    assert reader(Everything, 4)(raw, 0, len(raw)) == everything


def test_a_tagged_struct_of_defaults_is_written_if_it_might_have_been_null() -> None:
    hinted, plain = Everything(new=None, hint=Inner()), Everything(new=None)
    raw = writer(Everything, 4)(hinted)

    assert reader(Everything, 4)(raw, 0, len(raw)) == hinted
    assert raw != writer(Everything, 4)(plain)

    idle = FetchRequest(replica_state=ReplicaState())
    assert writer(FetchRequest, 15)(idle) == writer(FetchRequest, 15)(FetchRequest())


def test_a_prefix_comes_first() -> None:
    assert writer(Inner2, 0, prefix=b"\x00\x04")(Inner2(1)) == b"\x00\x04\x00\x01"
    assert writer(Inner2, 0)(Inner2(1)) == b"\x00\x01"


class Inner2(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 1

    port: Annotated[int, UINT16] = 0


def test_there_is_no_other_version() -> None:
    with pytest.raises(ValueError, match="Inner2 has no version 1"):
        reader(Inner2, 1)
    with pytest.raises(ValueError, match="Inner2 has no version -1"):
        writer(Inner2, -1)


def test_a_function_is_compiled_once() -> None:
    assert reader(Everything, 3) is reader(Everything, 3)
    assert writer(Everything, 3) is writer(Everything, 3)


def test_a_failing_line_of_generated_code_can_be_read() -> None:
    with pytest.raises(Unwritable) as refused:
        writer(HeartbeatRequest, 0)(HeartbeatResponse())  # type: ignore[arg-type]

    cause = refused.value.__cause__
    assert isinstance(cause, AttributeError)
    assert refused.value.__traceback__ is not None


def test_an_error_code_is_a_member_of_its_enum_if_it_has_one() -> None:
    read = reader(HeartbeatResponse, 0)

    assert read(b"\x00\x1b", 0, 2).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert read(b"\x30\x39", 0, 2).error_code == 12345


def test_known_tags_are_found_among_unknown_ones_in_any_order() -> None:
    raw = bytes.fromhex("01 00 01 ff 00 01 04 ff0f 02 aaaa c801 04 01 0102 00 63 00 03 10")
    raw += bytes(15) + b"\x05"

    assert reader(Everything, 4)(raw, 0, len(raw)) == Everything(
        new=None, topic_id=UUID(int=5), hint=Inner(258)
    )


@pytest.mark.parametrize("raw", ["01 00 01 ff 00 01 01 03 7f 00", "01 00 01 ff 00 01 ff ff 7f"])
def test_tags_that_do_not_fit_are_malformed(raw: str) -> None:
    with pytest.raises(Malformed, match="Everything v4"):
        reader(Everything, 4)(bytes.fromhex(raw), 0, len(bytes.fromhex(raw)))


class TestWhatAVersionLacks:
    def test_is_dropped_when_it_can_be_ignored(self) -> None:
        plain, full = Everything("a"), Everything("a", old=5, topic_id=UUID(int=1))

        assert writer(Everything, 3)(full) == writer(Everything, 3)(plain)

    @pytest.mark.parametrize(
        ("message", "version", "missing"),
        [
            (Everything(middle=8), 0, "Everything v0 has no middle"),
            (Everything(new=None), 1, "Everything v1 has no new"),
            (Everything(flag=False), 3, "Everything v3 has no flag"),
            (Everything(sums=()), 3, "Everything v3 has no sums"),
            (Everything(hint=Inner(1)), 3, "Everything v3 has no hint"),
            (
                HeartbeatRequest(group_instance_id=GroupInstanceId("")),
                2,
                "HeartbeatRequest v2 has no group_instance_id",
            ),
            (OffsetFetchRequest(topics=None), 8, "OffsetFetchRequest v8 has no topics"),
            (MetadataRequest(allow_auto_topic_creation=False), 3, "allow_auto_topic_creation"),
        ],
    )
    def test_must_have_its_default_otherwise(
        self, message: Everything, version: int, missing: str
    ) -> None:
        with pytest.raises(Unwritable, match=missing):
            writer(type(message), version)(message)

    def test_a_field_that_a_version_lacks_is_found_in_nested_structs(self) -> None:
        leader = LeaderIdAndEpoch(1, 1)
        answer = FetchResponse(
            responses=(FetchableTopicResponse(partitions=(PartitionData(current_leader=leader),)),)
        )

        writer(FetchResponse, 12)(answer)
        with pytest.raises(Unwritable, match="FetchResponse v11 has no current_leader"):
            writer(FetchResponse, 11)(answer)


class TestWhatCannotBeWritten:
    @pytest.mark.parametrize("version", [3, 4], ids=["plain", "compact"])
    def test_a_string_too_long(self, version: int) -> None:
        longest = HeartbeatRequest(GroupId("g" * 32767))
        too_long = HeartbeatRequest(GroupId("g" * 32768))
        raw = writer(HeartbeatRequest, version)(longest)

        assert reader(HeartbeatRequest, version)(raw, 0, len(raw)) == longest
        with pytest.raises(Unwritable):
            writer(HeartbeatRequest, version)(too_long)

    def test_a_number_too_large(self) -> None:
        with pytest.raises(Unwritable, match="HeartbeatRequest v4"):
            writer(HeartbeatRequest, 4)(HeartbeatRequest(generation_id=GenerationId(1 << 31)))

    def test_a_null_where_none_may_be(self) -> None:
        with pytest.raises(Unwritable, match="MetadataRequest v0"):
            writer(MetadataRequest, 0)(MetadataRequest(topics=None))
        with pytest.raises(Unwritable, match="JoinGroupRequest v5"):
            writer(JoinGroupRequest, 5)(JoinGroupRequest(protocol_type=None))  # type: ignore[arg-type]
        with pytest.raises(Unwritable, match="LeaveGroupRequest v3"):
            writer(LeaveGroupRequest, 3)(LeaveGroupRequest(members=None))  # type: ignore[arg-type]
