"""DescribeGroups: in which state is this group, and who is in it?

Answers one group at a time; the facade collects the answers of a request. Changes nothing.
Kafka's counterpart: `GroupMetadataManager.describeGroups`, `ClassicGroupMember.describe`.
"""

from typing import Final

from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from protocol.names import ErrorCode, GroupId, GroupState
from protocol.primitives import echoed

_GROUP_ID_NOT_FOUND_SINCE: Final = 6

DESCRIBED_BYTES: Final = 100
"""A group without its members, and a member without what it and its leader say."""


def describe_group(
    group: ClassicGroupView | None,
    group_id: GroupId,
    api_version: int,
    *,
    operations: int,
    absence: str = "not found.",
) -> DescribedGroup:
    """The group as it is now; one that does not exist is "Dead", which only v6 calls an error.

    `operations`: what the client may do with the group. `absence`: what v6 says of a group that
    does not exist, or is of another type.
    """
    if group is None:
        if api_version >= _GROUP_ID_NOT_FOUND_SINCE:
            return DescribedGroup(
                ErrorCode.GROUP_ID_NOT_FOUND,
                echoed(f"Group {group_id} {absence}"),
                group_id,
                GroupState.DEAD.value,
            )
        return DescribedGroup(
            group_id=group_id, group_state=GroupState.DEAD.value, authorized_operations=operations
        )
    # Outside Stable the protocol is not settled; assignments are shown as far as they are known.
    stable = group.state is GroupState.STABLE
    protocol_name = group.protocol_name if stable else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol_name or "",
        members=[_describe_member(member, protocol_name) for member in group.members.values()],
        authorized_operations=operations,
    )


def refuse_describe_group(group_id: GroupId, error_code: ErrorCode) -> DescribedGroup:
    """The answer of a coordinator that cannot look at the group."""
    return DescribedGroup(error_code, group_id=echoed(group_id))


def described_bytes(described: DescribedGroup) -> int:
    """About what it takes in an answer."""
    return DESCRIBED_BYTES + sum(
        DESCRIBED_BYTES + len(member.member_metadata) + len(member.member_assignment)
        for member in described.members
    )


def _describe_member(member: ClassicMemberView, protocol_name: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        b"" if protocol_name is None else member.metadata_for(protocol_name),
        member.assignment,
    )
