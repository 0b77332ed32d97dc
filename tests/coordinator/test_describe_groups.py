"""DescribeGroups: a group as it is now, in the words of each version."""

import pytest

from coordinator.classic.decide.describe_group import (
    describe_group,
    refuse_describe_group,
)
from coordinator.classic.group import ClassicGroup
from coordinator.describe_groups import GROUP_OPERATIONS
from protocol.codec import decode_response, encode_response
from protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
    ApiKey,
    ErrorCode,
    GroupState,
)
from tests.coordinator.offset_givens import GROUP, INSTANCE, MEMBER, STATIC_MEMBER, given_group

ALL_VERSIONS = DescribeGroupsResponse.VERSIONS


def describe(
    group: ClassicGroup | None, version: int, *, operations: bool = False
) -> DescribedGroup:
    allowed = GROUP_OPERATIONS if operations else OPERATIONS_NOT_REQUESTED
    return describe_group(group, GROUP, version, operations=allowed)


def over_the_wire(described: DescribedGroup, version: int) -> DescribedGroup:
    answer = DescribeGroupsResponse(groups=[described])
    frame = encode_response(ApiKey.DESCRIBE_GROUPS, version, 1, answer)
    _, read = decode_response(ApiKey.DESCRIBE_GROUPS, version, frame, 4, len(frame))
    assert isinstance(read, DescribeGroupsResponse)
    return read.groups[0]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_stable_group_shows_its_protocol_and_what_each_member_said_and_got(version: int) -> None:
    described = over_the_wire(describe(given_group(GroupState.STABLE), version), version)

    assert described.error_code is ErrorCode.NONE
    assert (described.group_id, described.group_state) == (GROUP, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    dynamic, static = described.members
    assert (dynamic.member_id, dynamic.group_instance_id) == (MEMBER, None)
    assert (dynamic.client_id, dynamic.client_host) == ("c", "/127.0.0.1")
    assert dynamic.member_metadata == b"subscription of m-1"
    assert dynamic.member_assignment == b"assignment of m-1"
    assert static.member_id == STATIC_MEMBER
    assert static.group_instance_id == (INSTANCE if version >= 4 else None)


@pytest.mark.parametrize("state", [GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE])
def test_while_it_rebalances_only_the_assignments_are_shown(state: GroupState) -> None:
    described = describe(given_group(state), 6)

    assert (described.group_state, described.protocol_data) == (state.value, "")
    assert [m.member_metadata for m in described.members] == [b"", b""]
    assert [m.member_assignment for m in described.members] == [
        b"assignment of m-1",
        b"assignment of m-static",
    ]


@pytest.mark.parametrize(("kind", "shown"), [("connect", "connect"), (None, "")])
def test_an_empty_group_shows_its_type_and_no_members(kind: str | None, shown: str) -> None:
    described = describe(given_group(GroupState.EMPTY, kind), 6)

    assert (described.error_code, described.group_state) == (ErrorCode.NONE, "Empty")
    assert (described.protocol_type, list(described.members)) == (shown, [])


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_unknown_group_is_dead_and_since_v6_an_error(version: int) -> None:
    described = over_the_wire(describe(None, version), version)

    assert (described.group_id, described.group_state) == (GROUP, "Dead")
    assert list(described.members) == []
    if version >= 6:
        assert described.error_code is ErrorCode.GROUP_ID_NOT_FOUND
        assert described.error_message == "Group g not found."
    else:
        assert described.error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("group", "version", "requested", "expected"),
    [
        (given_group(GroupState.EMPTY), 6, True, GROUP_OPERATIONS),
        (given_group(GroupState.EMPTY), 6, False, OPERATIONS_NOT_REQUESTED),
        (None, 5, True, GROUP_OPERATIONS),
        (None, 6, True, OPERATIONS_NOT_REQUESTED),
    ],
)
def test_the_authorized_operations_are_returned_on_request_unless_there_is_an_error(
    group: ClassicGroup | None, version: int, requested: bool, expected: int
) -> None:
    assert describe(group, version, operations=requested).authorized_operations == expected


def test_a_coordinator_without_the_group_answers_the_error_and_nothing_else() -> None:
    assert refuse_describe_group(GROUP, ErrorCode.NOT_COORDINATOR) == DescribedGroup(
        ErrorCode.NOT_COORDINATOR, group_id=GROUP
    )
