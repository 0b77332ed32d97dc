"""JoinGroup: is this member part of the next generation, and is there to be one?

Route: dispatch -> GroupCoordinator -> Shard.turn -> decide_join_group -> Outcome -> evolve. Reads a
GroupView, writes nothing. A join that is accepted is parked in its member (`awaiting_join`) and is
answered by complete_join.py; what is answered at once is a refusal, an id to come back with, or the
generation that stands already. Static members who come back are in static_members.py.
Kafka's counterpart: `GroupMetadataManager.classicGroupJoinToClassicGroup` and what it calls.
"""

from collections.abc import Callable, Sequence

from coordinator.classic import events
from coordinator.classic.commands import BeginRebalance, ClassicCommand, Join, RebalanceCause
from coordinator.classic.decide.checks import (
    check_member,
    fenced,
    has_place_for,
    supports_protocols,
)
from coordinator.classic.decide.join_answers import join_answer, members_for_leader, refuse_join
from coordinator.classic.decide.join_request import (
    join_reason,
    offered_protocols,
    rebalance_timeout_ms,
    supersede_join,
)
from coordinator.classic.decide.lapsed_members import resolve_lapses
from coordinator.classic.decide.sessions import new_member_op
from coordinator.classic.decide.static_members import decide_static_return
from coordinator.classic.delayed import DelayedHeartbeat
from coordinator.classic.events import JoinKind, RemovalCause, RemovedMember
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.events import GroupCreated
from coordinator.member_identity import MemberIdentity, shared_text
from coordinator.outcome import Outcome
from coordinator.records import new_group_record
from coordinator.settings import GroupSettings
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GroupState,
    MemberId,
)
from seams.now import Now
from seams.reply_token import ReplyToken

NewMemberId = Callable[[str], MemberId]
"""prefix -> "prefix-<a new uuid>"; the one thing a decision cannot think up by itself."""


def decide_join_group(
    group: ClassicGroupView | None,
    command: Join,
    now: Now,
    settings: GroupSettings,
    new_member_id: NewMemberId,
) -> Outcome:
    """Refuse, answer with what stands, or park the member for the next generation."""
    request, token = command.request, command.token
    if group is None:
        return _create_group(command, now)
    if group.lapsed_member_ids:
        return resolve_lapses(group, _named(group, request), command, now)
    if not has_place_for(group, request.member_id, settings.group_max_size):
        return _turn_away(group, request, token, now)
    refused_id = request.member_id
    if group.state is GroupState.DEAD:
        return Outcome(
            replies=(refuse_join(token, ErrorCode.COORDINATOR_NOT_AVAILABLE, refused_id),)
        )
    if any(len(protocol.metadata) > settings.max_batch_bytes for protocol in request.protocols):
        # Kafka differs: it lets such a member in, and then fails to store every generation with it.
        return Outcome(replies=(refuse_join(token, ErrorCode.MESSAGE_TOO_LARGE, refused_id),))
    names = [protocol.name for protocol in request.protocols]
    if not supports_protocols(group, request.protocol_type, names):
        refused = events.JoinRefused(
            group.group_id,
            now.wall_ms,
            token.client_id,
            token.client_host,
            tuple(names),
            tuple(n for n, count in group.protocol_counts.items() if count == len(group.members)),
            token.named_principal,
        )
        refusal = refuse_join(token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, refused_id)
        return Outcome(replies=(refusal,), events=(refused,))
    if request.member_id == UNKNOWN_MEMBER_ID:
        return _join_without_id(group, command, now, settings, new_member_id)
    return _join_with_id(group, command, now, settings)


def _named(group: ClassicGroupView, request: JoinGroupRequest) -> MemberId:
    """Whom the request speaks for: a static member that restarted is known by its instance id."""
    if request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is not None:
        return group.static_members.get(request.group_instance_id, UNKNOWN_MEMBER_ID)
    if check_member(group, request.member_id, request.group_instance_id) is not ErrorCode.NONE:
        return UNKNOWN_MEMBER_ID
    return request.member_id


def _create_group(command: Join, now: Now) -> Outcome:
    """A join without an id brings a group into being, durably, even if the join is then refused."""
    if command.request.member_id != UNKNOWN_MEMBER_ID:
        refusal = refuse_join(command.token, ErrorCode.UNKNOWN_MEMBER_ID, command.request.member_id)
        return Outcome(replies=(refusal,))
    record = new_group_record(command.group_id, now.wall_ms)
    created = GroupCreated(command.group_id, now.wall_ms, simple=False)
    return Outcome(events=(created,), records=(record,), then=(command,))


def _turn_away(
    group: ClassicGroupView, request: JoinGroupRequest, token: ReplyToken, now: Now
) -> Outcome:
    """The group is full: the join is refused, and a member that was in it before is removed."""
    happened: tuple[events.MembersRemoved | events.PendingMemberRemoved, ...] = ()
    member = group.members.get(request.member_id)
    if member is not None:
        happened = (
            events.MembersRemoved(
                group.group_id,
                now.wall_ms,
                group.state,
                group.generation_id,
                RemovalCause.GROUP_FULL,
                (RemovedMember(member.caller),),
            ),
        )
    elif request.member_id in group.pending_member_ids:
        happened = (
            events.PendingMemberRemoved(
                group.group_id, now.wall_ms, request.member_id, RemovalCause.GROUP_FULL
            ),
        )
    refusal = refuse_join(token, ErrorCode.GROUP_MAX_SIZE_REACHED)
    return Outcome(replies=(refusal,), events=happened)


def _join_without_id(
    group: ClassicGroupView,
    command: Join,
    now: Now,
    settings: GroupSettings,
    new_member_id: NewMemberId,
) -> Outcome:
    request, token = command.request, command.token
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = new_member_id(instance_id)
        if instance_id in group.static_members:
            return decide_static_return(group, command, member_id, now, settings)
        return _add_member(group, command, member_id, JoinKind.STATIC, now, settings)
    member_id = new_member_id(token.client_id)
    if token.api_version < 4:
        return _add_member(group, command, member_id, JoinKind.DYNAMIC, now, settings)

    # KIP-394: a client that dies before it learns its id leaves no member behind.
    happened: list[events.ClassicEvent] = []
    if len(group.pending_member_ids) >= settings.pending_members_max:
        # The one that has been out for longest has the least chance to be used.
        happened.append(
            events.PendingMemberRemoved(
                group.group_id,
                now.wall_ms,
                next(iter(group.pending_member_ids)),
                RemovalCause.TOO_MANY_IDS,
            )
        )
    deadline_ms = now.mono_ms + request.session_timeout_ms
    happened.append(
        events.MemberIdAssigned(
            group.group_id,
            now.wall_ms,
            group.state,
            member_id,
            token.client_id,
            token.client_host,
            token.named_principal,
        )
    )
    return Outcome(
        replies=(refuse_join(token, ErrorCode.MEMBER_ID_REQUIRED, member_id),),
        events=happened,
        ops=(DelayedHeartbeat(group.group_id, member_id, deadline_ms),),
    )


def _join_with_id(
    group: ClassicGroupView, command: Join, now: Now, settings: GroupSettings
) -> Outcome:
    request, token = command.request, command.token
    member_id = request.member_id
    handed_out = group.pending_member_ids.get(member_id)
    if handed_out is not None:
        if request.group_instance_id is not None:
            # An id that was handed out belongs to a dynamic member: the client contradicts itself.
            refusal = refuse_join(token, ErrorCode.UNKNOWN_SERVER_ERROR)
            return Outcome(replies=(refusal,))
        return _add_member(group, command, handed_out, JoinKind.PENDING, now, settings)

    error_code = check_member(group, member_id, request.group_instance_id)
    if error_code is not ErrorCode.NONE:
        happened: tuple[events.MemberFenced, ...] = ()
        if error_code is ErrorCode.FENCED_INSTANCE_ID:
            happened = (
                fenced(group, member_id, request.group_instance_id, ApiKey.JOIN_GROUP, now.wall_ms),
            )
        return Outcome(replies=(refuse_join(token, error_code, member_id),), events=happened)
    return _rejoin(group, group.members[member_id], command, now)


def _rejoin(group: ClassicGroupView, member: ClassicMemberView, command: Join, now: Now) -> Outcome:
    """A member is back. Does that ask for another generation, or does the present one stand?"""
    request, token = command.request, command.token
    offers_the_same = offered_protocols(request, member.protocols) is member.protocols
    is_leader = group.leader_id == member.member_id
    if group.state is GroupState.PREPARING_REBALANCE:
        return _park(group, member, command, now, ())
    assert group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    if group.state is GroupState.STABLE and is_leader:
        # The leader may know of changes that its own metadata does not show: new partitions.
        cause = RebalanceCause.LEADER_REJOINED
        reason = f"Leader {member.member_id} re-joining group during {group.state}"
    elif offers_the_same:
        # It may have missed the answer to its join: here it is again.
        listed: Sequence[JoinGroupResponseMember] = ()
        if is_leader:
            listed = members_for_leader(group.members.values(), group.protocol_name)
        return Outcome(replies=(join_answer(group, token, member.member_id, members=listed),))
    else:
        cause = RebalanceCause.METADATA_CHANGED
        reason = f"Updating metadata for member {member.member_id} during {group.state}"
    begin = BeginRebalance(
        group.group_id,
        cause,
        f"{reason}; client reason: {join_reason(request)}",
        (member.member_id,),
    )
    return _park(group, member, command, now, (begin,))


def _park(
    group: ClassicGroupView,
    member: ClassicMemberView,
    command: Join,
    now: Now,
    then: tuple[ClassicCommand, ...],
) -> Outcome:
    request, token = command.request, command.token
    rejoined = events.MemberRejoined(
        group.group_id,
        now.wall_ms,
        now.mono_ms,
        member.caller,
        request.session_timeout_ms,
        rebalance_timeout_ms(request, token),
        offered_protocols(request, member.protocols),
        token,
        join_reason(request),
    )
    ops: tuple[DelayedHeartbeat, ...] = ()
    if member.is_new and request.session_timeout_ms < member.session_timeout_ms:
        deadline_ms = member.session_deadline_ms
        ops = (
            new_member_op(group, member.member_id, request.session_timeout_ms, deadline_ms, now),
        )
    return Outcome(replies=supersede_join(member), events=(rejoined,), ops=ops, then=then)


def _add_member(
    group: ClassicGroupView,
    command: Join,
    member_id: MemberId,
    join_kind: JoinKind,
    now: Now,
    settings: GroupSettings,
) -> Outcome:
    request, token = command.request, command.token
    leader = group.members.get(group.leader_id)
    # A new member cannot beat yet, and may have gone unnoticed: its join is given up after a while.
    deadline_ms = now.mono_ms + settings.new_member_join_timeout_ms
    added = events.MemberAdded(
        group_id=group.group_id,
        at_ms=now.wall_ms,
        now_ms=now.mono_ms,
        state=group.state,
        join_kind=join_kind,
        member=MemberIdentity(
            member_id,
            request.group_instance_id,
            shared_text(token.client_id),
            token.client_host,
            token.named_principal,
        ),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms(request, token),
        protocol_type=shared_text(request.protocol_type),
        protocols=offered_protocols(request, () if leader is None else leader.protocols),
        session_deadline_ms=deadline_ms,
        token=token,
        reason=join_reason(request),
    )
    then: tuple[ClassicCommand, ...] = ()
    if group.state is not GroupState.PREPARING_REBALANCE:
        instance_id = "null" if request.group_instance_id is None else request.group_instance_id
        reason = (
            f"Adding new member {member_id} with group instance id {instance_id}; "
            f"client reason: {join_reason(request)}"
        )
        then = (BeginRebalance(group.group_id, RebalanceCause.MEMBER_JOINED, reason, (member_id,)),)
    op = new_member_op(group, member_id, request.session_timeout_ms, deadline_ms, now)
    return Outcome(events=(added,), ops=(op,), then=then)
