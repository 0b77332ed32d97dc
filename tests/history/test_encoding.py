"""Events as bytes: read back as they were, by an earlier and by a later version as well."""

import json

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, OffsetsBy, Removal, WaitEnd
from history.encoding import ENTRY_VERSION, UnreadableEntry, as_plain, decode, encode
from history.entries import (
    ENTRY_NAMES,
    ENTRY_TYPES,
    GenerationBegunEntry,
    HistoryEntry,
    MembersRemovedEntry,
    OffsetsMovedEntry,
    Rebalance,
    RebalanceEndedEntry,
)
from history.entry_values import (
    AlsoCaused,
    JoinedMember,
    MemberRemoval,
    MemberWait,
    OffsetChange,
    RequestClient,
)

MEMBER = MemberIdentity("m-1", "i-1", "client", "/10.0.0.7")
REBALANCE = Rebalance(
    Cause.SESSION_EXPIRED,
    1_700_000_000_000,
    MEMBER,
    "removing member m-1 on heartbeat expiration.",
    end=End.STABLE,
    duration_ms=12,
    waited_for=(
        MemberWait(MEMBER, 5, WaitEnd.REJOINED),
        MemberWait(MemberIdentity("m-2"), None, WaitEnd.LEFT),
    ),
    joined=(JoinedMember(MEMBER, 5),),
    also=(AlsoCaused(Cause.MEMBER_JOINED, MemberIdentity("m-3"), 1_700_000_000_001),),
    generation_before=0,
    generation_after=1,
    members_before=2,
    members_after=1,
    partitions_moved=0,
    unowned_partition_seconds=0.0,
)

REMOVED = {"v": 1, "type": "members_removed", "group_id": "g", "at_ms": 5}


def plain_of(event: HistoryEntry) -> dict[str, object]:
    plain: object = msgpack.unpackb(encode(event)[1])
    assert isinstance(plain, dict)
    return plain


@pytest.mark.parametrize("name", ENTRY_TYPES)
def test_each_type_is_read_back_bare_and_says_what_it_is(name: str) -> None:
    event = ENTRY_TYPES[name]("group", 1_700_000_000_000)
    key, value = encode(event)
    assert key == b"group"
    assert decode(value) == event
    assert decode(value, without=ENTRY_TYPES[name]) is None
    plain = plain_of(event)
    assert (plain["v"], plain["type"], plain["group_id"]) == (ENTRY_VERSION, name, "group")
    assert ENTRY_NAMES[type(event)] == name


@pytest.mark.parametrize("kind", ENTRY_TYPES.values())
def test_every_field_but_the_first_two_has_a_default(kind: type[HistoryEntry]) -> None:
    assert kind.__struct_fields__[:2] == ("group_id", "at_ms")
    kind("group", 0)


@pytest.mark.parametrize(
    "event",
    [
        RebalanceEndedEntry("g", 5, REBALANCE),
        MembersRemovedEntry(
            "g",
            5,
            Removal.OPERATOR,
            3,
            (MemberRemoval(MEMBER, "why", 12),),
            4,
            RequestClient("admin", "/h"),
        ),
        GenerationBegunEntry(
            "g", 5, 2, "consumer", "range", "m-1", 1, (JoinedMember(MEMBER, 0),), 0, ()
        ),
        OffsetsMovedEntry("g", 5, OffsetsBy.EXPIRY, (OffsetChange("t", 0, 0, None),)),
    ],
)
def test_what_is_nested_is_read_back(event: HistoryEntry) -> None:
    assert decode(encode(event)[1]) == event


@given(
    st.text(), st.integers(0, 1 << 50), st.text(), st.none() | st.text(), st.none() | st.integers(0)
)
def test_whatever_the_strings_are(
    group_id: str, at_ms: int, client_id: str, instance_id: str | None, old: int | None
) -> None:
    if old is not None:
        old %= 1 << 63
    member = MemberIdentity("m", instance_id, client_id, "")
    for event in (
        MembersRemovedEntry(group_id, at_ms, members=(MemberRemoval(member),)),
        OffsetsMovedEntry(group_id, at_ms, changes=(OffsetChange("t", 1, old, None),)),
    ):
        key, value = encode(event)
        assert key == group_id.encode()
        assert decode(value) == event


def test_numbers_and_causes_are_always_there_for_other_readers() -> None:
    rebalance = plain_of(RebalanceEndedEntry("g", 5, REBALANCE))["rebalance"]
    assert isinstance(rebalance, dict)
    assert rebalance["cause"] == "session_expired"
    assert rebalance["generation_before"] == 0
    assert (rebalance["partitions_moved"], rebalance["unowned_partition_seconds"]) == (0, 0.0)
    assert "began_by" not in rebalance  # null is left out


def test_a_later_version_of_a_type_may_have_more() -> None:
    value = msgpack.packb({**plain_of(RebalanceEndedEntry("g", 5, REBALANCE)), "more": [1, 2]})
    assert decode(value) == RebalanceEndedEntry("g", 5, REBALANCE)


def test_an_earlier_one_had_less() -> None:
    assert decode(msgpack.packb(REMOVED)) == MembersRemovedEntry("g", 5)


@pytest.mark.parametrize(
    "plain",
    [
        {"v": ENTRY_VERSION + 1, "type": "group_created", "group_id": "g", "at_ms": 5},
        {"v": ENTRY_VERSION, "type": "from_the_future", "group_id": "g", "at_ms": 5},
    ],
)
def test_what_is_from_the_future_is_passed_over(plain: dict[str, object]) -> None:
    assert decode(msgpack.packb(plain)) is None
    assert decode(None) is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xc1",
        b"no msgpack at all",
        msgpack.packb([1, 2]),
        msgpack.packb({"type": "group_created"}),
        msgpack.packb({"v": 1, "type": "group_created", "at_ms": 5}),
        msgpack.packb({"v": 1, "type": "group_created", "group_id": 7, "at_ms": 5}),
        msgpack.packb(
            {"v": 1, "type": "members_removed", "group_id": "g", "at_ms": 5, "members": 1}
        ),
        msgpack.packb(
            {"v": 1, "type": "members_removed", "group_id": "g", "at_ms": 5, "cause": "x"}
        ),
    ],
)
def test_what_is_no_event_is_refused(value: bytes) -> None:
    with pytest.raises(UnreadableEntry):
        decode(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(value: bytes) -> None:
    try:
        decode(value)
    except UnreadableEntry:
        return


def test_as_json_everything_is_there() -> None:
    plain = as_plain(RebalanceEndedEntry("g", 5, REBALANCE))
    assert isinstance(plain, dict)
    assert json.loads(json.dumps(plain)) == plain
    assert plain["rebalance"]["began_by"] is None
    assert plain["rebalance"]["trigger"]["group_instance_id"] == "i-1"
    assert plain["rebalance"]["waited_for"][1]["join_delay_ms"] is None
