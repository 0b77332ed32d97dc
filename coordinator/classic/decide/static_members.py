"""Static member restart (KIP-345): a new process takes over its instance id and its place.

Part of JoinGroup (KIP-345): the holder of an instance id starts again, is given a new member id,
and takes over everything of the old one, the role of leader included; a client that still uses the
old id is fenced. In a Stable group whose protocol does not change by it, nobody else is disturbed.
Kafka's counterpart: `GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin`.
"""

from typing import assert_never

from msgspec.structs import replace

from coordinator.classic import events
from coordinator.classic.commands import BeginRebalance, Join, RebalanceCause
from coordinator.classic.decide.join_answers import join_answer, members_for_leader, refuse_join
from coordinator.classic.decide.join_request import (
    join_reason,
    offered_protocols,
    rebalance_timeout_ms,
)
from coordinator.classic.decide.protocol_choice import choose_protocol
from coordinator.classic.decide.stored_members import snapshot
from coordinator.classic.delayed import DelayedHeartbeat
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.member_identity import MemberIdentity, shared_text
from coordinator.outcome import Outcome, Reply
from coordinator.records import batch_bytes_at_most, group_metadata_record
from coordinator.settings import GroupSettings
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode, GroupState, MemberId
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Record

SKIP_ASSIGNMENT_SINCE = 9
"""KIP-814: a leader that restarts is told that it leads, and that there is nothing to assign."""


def decide_static_return(
    group: ClassicGroupView, command: Join, new_id: MemberId, now: Now, settings: GroupSettings
) -> Outcome:
    """Give the instance its new id; disturb the others only if what they agreed on changes."""
    request, token = command.request, command.token
    assert request.group_instance_id is not None
    old = group.members[group.static_members[request.group_instance_id]]
    begin = _rebalance(group, old, command, new_id)
    without_rebalance = group.state is GroupState.STABLE and begin is None
    records: tuple[Record, ...] = ()
    replies = _fence(old)
    if without_rebalance:
        record = _record(group, old, command, new_id)
        if batch_bytes_at_most((record,)) > settings.max_batch_bytes:
            # It cannot be stored, so it did not happen; Kafka takes it back in the same way.
            return Outcome(replies=(_too_large(group, token),))
        records = (record,)
        replies += (_rejoin_answer(group, old, command, new_id),)
    deadline_ms = now.mono_ms + old.session_timeout_ms
    replaced = events.StaticMemberReplaced(
        group_id=group.group_id,
        at_ms=now.wall_ms,
        now_ms=now.mono_ms,
        state=group.state,
        old_member_id=old.member_id,
        member=MemberIdentity(
            new_id,
            old.group_instance_id,
            shared_text(token.client_id),
            token.client_host,
            token.named_principal,
        ),
        was_leader=group.leader_id == old.member_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms(request, token),
        protocols=offered_protocols(request),
        session_deadline_ms=deadline_ms,
        token=None if without_rebalance else token,
        without_rebalance=without_rebalance,
        reason=join_reason(request),
    )
    return Outcome(
        replies=replies,
        events=(replaced,),
        records=records,
        ops=(DelayedHeartbeat(group.group_id, new_id, deadline_ms),),
        then=() if begin is None else (begin,),
    )


def _rebalance(
    group: ClassicGroupView, old: ClassicMemberView, command: Join, new_id: MemberId
) -> BeginRebalance | None:
    """What the return starts: nothing while a rebalance is prepared, or if all stays as it is."""
    client_reason = f"client reason: {join_reason(command.request)}"
    instance = f"{new_id} with instance id {old.group_instance_id}"
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            return None
        case GroupState.COMPLETING_REBALANCE:
            # The leader may be assigning to the old id at this moment: the new one would go empty.
            reason = f"Updating metadata for static member {instance}; {client_reason}"
        case GroupState.STABLE:
            offers = [m.protocols for m in group.members.values() if m is not old]
            offers.append(offered_protocols(command.request))
            if choose_protocol(offers) == group.protocol_name:
                return None
            reason = (
                f"Group's selectedProtocol will change because static member {instance} joined "
                f"with change of protocol; {client_reason}"
            )
        case GroupState.EMPTY | GroupState.DEAD | GroupState.ASSIGNING | GroupState.RECONCILING:
            raise AssertionError(f"{group.state} has no static members")
        case _:
            assert_never(group.state)
    return BeginRebalance(group.group_id, RebalanceCause.STATIC_MEMBER_CHANGED, reason, (new_id,))


def _fence(old: ClassicMemberView) -> tuple[Reply, ...]:
    """Requests that wait under the old id are answered with FENCED_INSTANCE_ID."""
    replies: tuple[Reply, ...] = ()
    if old.awaiting_join is not None:
        replies += (refuse_join(old.awaiting_join, ErrorCode.FENCED_INSTANCE_ID, old.member_id),)
    if old.awaiting_sync is not None:
        fenced = SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)
        replies += (Reply(old.awaiting_sync, fenced),)
    return replies


def _rejoin_answer(
    group: ClassicGroupView, old: ClassicMemberView, command: Join, new_id: MemberId
) -> Reply:
    """The current generation. Without KIP-814 the old id is named as the leader, so that a leader
    that restarts does not compute a new assignment.
    """
    token = command.token
    if token.api_version < SKIP_ASSIGNMENT_SINCE:
        return join_answer(group, token, new_id)
    if group.leader_id != old.member_id:
        return join_answer(group, token, new_id)
    members = members_for_leader(
        (m for m in group.members.values() if m is not old), group.protocol_name
    )
    members.append(_as_listed(group, command, new_id))
    return join_answer(
        group, token, new_id, leader_id=new_id, members=members, skip_assignment=True
    )


def _as_listed(group: ClassicGroupView, command: Join, new_id: MemberId) -> JoinGroupResponseMember:
    request = command.request
    metadata = next(p.metadata for p in request.protocols if p.name == group.protocol_name)
    return JoinGroupResponseMember(new_id, request.group_instance_id, bytes(metadata))


def _record(
    group: ClassicGroupView, old: ClassicMemberView, command: Join, new_id: MemberId
) -> Record:
    """The group with the new id in the place of the old one, each with its assignment."""
    members = [
        snapshot(member, group.protocol_name, member.assignment)
        for member in group.members.values()
        if member is not old
    ]
    back = replace(
        snapshot(old, group.protocol_name, old.assignment),
        member_id=new_id,
        session_timeout_ms=command.request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms(command.request, command.token),
        subscription=_as_listed(group, command, new_id).metadata,
    )
    members.append(back)
    return group_metadata_record(
        group.group_id,
        protocol_type=group.protocol_type,
        generation_id=group.generation_id,
        protocol_name=group.protocol_name,
        leader_id=new_id if group.leader_id == old.member_id else group.leader_id,
        state_since_ms=group.state_since_ms,
        members=members,
    )


def _too_large(group: ClassicGroupView, token: ReplyToken) -> Reply:
    return Reply(
        token,
        JoinGroupResponse(
            error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id,
        ),
    )
