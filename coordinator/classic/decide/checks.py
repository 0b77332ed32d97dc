"""Member checks: may this member act, do its protocols match, is there room for it?

The questions that several requests ask in the same way. Each answers with the error code that the
client gets, in the order in which Kafka asks.
Kafka's counterpart: `ClassicGroup.validateMember` and `supportsProtocols`, and
`GroupMetadataManager.acceptJoiningMember`.
"""

from collections.abc import Iterable

from coordinator.classic import events
from coordinator.classic.group_view import ClassicGroupView
from protocol.names import ApiKey, ErrorCode, GroupInstanceId, GroupState, MemberId


def check_member(
    group: ClassicGroupView, member_id: MemberId, group_instance_id: GroupInstanceId | None
) -> ErrorCode:
    """NONE if this id is a member and, for a static one, still the holder of its instance id."""
    if group_instance_id is not None:
        holder = group.static_members.get(group_instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def fenced(
    group: ClassicGroupView,
    member_id: MemberId,
    group_instance_id: GroupInstanceId | None,
    api_key: ApiKey,
    at_ms: int,
) -> events.MemberFenced:
    """The event for a FENCED_INSTANCE_ID of `check_member`."""
    assert group_instance_id is not None
    return events.MemberFenced(
        group_id=group.group_id,
        at_ms=at_ms,
        member_id=member_id,
        group_instance_id=group_instance_id,
        current_member_id=group.static_members[group_instance_id],
        api_key=api_key,
    )


def supports_protocols(group: ClassicGroupView, protocol_type: str, names: Iterable[str]) -> bool:
    """An empty group takes any type and any list; others want theirs, and one that all share."""
    if group.state is GroupState.EMPTY:
        return bool(protocol_type) and any(True for _ in names)
    if group.protocol_type is None or protocol_type != group.protocol_type:
        return False
    size = len(group.members)
    return any(group.protocol_counts.get(name, 0) == size for name in names)


def has_place_for(group: ClassicGroupView, member_id: MemberId, max_size: int) -> bool:
    """May this id join a group of at most `max_size` members?

    While a rebalance is prepared the parked joins are counted, not the members: a group that is too
    large (the limit was lowered) then sheds those who rejoin last.
    """
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            parked = member is not None and member.awaiting_join is not None
            return parked or group.awaiting_join_count < max_size
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return member_id in group.members or len(group.members) < max_size
        case GroupState.ASSIGNING | GroupState.RECONCILING:
            raise AssertionError(f"{group.state} is no state of a classic group")
