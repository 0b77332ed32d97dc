"""SyncGroup: what is this member assigned to, and if it leads, what are all the others?

Route: dispatch -> GroupCoordinator -> Shard.turn -> decide_sync_group -> Outcome -> evolve. Members
of a new generation are parked until the leader's assignments are stored; see assignment_stored.py.
Kafka's counterpart: `GroupMetadataManager.classicGroupSyncToClassicGroup`.
"""

from coordinator.classic import events
from coordinator.classic.commands import AssignmentStored, RefuseAssignment, Sync
from coordinator.classic.decide.checks import check_member, fenced
from coordinator.classic.decide.lapsed_members import resolve_lapses
from coordinator.classic.events import Protocols
from coordinator.classic.generation_record import end_generation_record
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.outcome import Outcome, Reply
from coordinator.records import (
    batch_bytes_at_most,
    bytes_part,
    group_record_of_parts,
    length_part,
    member_part,
    members_in_order,
)
from coordinator.settings import GroupSettings
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.names import ApiKey, ErrorCode, GroupState, MemberId
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Record


def decide_sync_group(
    group: ClassicGroupView | None, command: Sync, now: Now, settings: GroupSettings
) -> Outcome:
    """Refuse, hand out what is stored, or park; the leader's request stores the assignments."""
    request, token = command.request, command.token
    error_code = judge_sync(group, request)
    if group is None or error_code is not ErrorCode.NONE:
        happened: tuple[events.MemberFenced, ...] = ()
        if group is not None and error_code is ErrorCode.FENCED_INSTANCE_ID:
            instance_id = request.group_instance_id
            happened = (
                fenced(group, request.member_id, instance_id, ApiKey.SYNC_GROUP, now.wall_ms),
            )
        return Outcome(replies=(_refuse(token, error_code),), events=happened)
    member = group.members[request.member_id]
    if group.state is GroupState.COMPLETING_REBALANCE:
        return _park(group, member, command, now, settings)
    if group.lapsed_member_ids:
        return resolve_lapses(group, member.member_id, command, now)
    answer = SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
    synced: tuple[events.MemberSynced, ...] = ()
    if member.member_id in group.pending_sync_ids:
        synced = (events.MemberSynced(group.group_id, member.member_id),)
    return Outcome(replies=(Reply(token, answer),), events=synced)


def judge_sync(group: ClassicGroupView | None, request: SyncGroupRequest) -> ErrorCode:
    """The first reason to refuse, in Kafka's order; NONE when there is none."""
    if group is None or group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error_code = check_member(group, request.member_id, request.group_instance_id)
    if error_code is not ErrorCode.NONE:
        return error_code
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _contradicts(request.protocol_type, group.protocol_type) or _contradicts(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _contradicts(from_request: str | None, of_group: str | None) -> bool:
    return from_request is not None and of_group is not None and from_request != of_group


def _park(
    group: ClassicGroupView,
    member: ClassicMemberView,
    command: Sync,
    now: Now,
    settings: GroupSettings,
) -> Outcome:
    request, token = command.request, command.token
    replies: tuple[Reply, ...] = ()
    if member.awaiting_sync is not None:
        # Kafka differs: it forgets the older request, whose client has most often gone away.
        replies = (_refuse(member.awaiting_sync, ErrorCode.REBALANCE_IN_PROGRESS),)
    parked = events.SyncParked(group.group_id, member.member_id, token)
    if member.member_id != group.leader_id or group.assignment_is_stored_now:
        # Kafka differs: it would store what came second, and hand out what came first.
        return Outcome(replies=replies, events=(parked,))

    assignments = {a.member_id: bytes(a.assignment) for a in request.assignments}
    without: list[MemberId] = []
    if assignments.keys() != group.members.keys():
        without = [member_id for member_id in group.members if member_id not in assignments]
    record = _record(group, assignments)
    fits = batch_bytes_at_most((record,)) <= settings.max_batch_bytes
    received = events.AssignmentReceived(
        group_id=group.group_id,
        at_ms=now.wall_ms,
        generation_id=group.generation_id,
        leader_id=member.member_id,
        member_count=len(group.members),
        static_member_count=len(group.static_members),
        without_assignment=tuple(without),
        assignment_bytes=sum(map(len, assignments.values())),
        assignments=assignments,
        fits=fits,
    )
    if not fits:
        refuse = RefuseAssignment(
            group.group_id,
            group.generation_id,
            member.member_id,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        )
        return Outcome(replies=replies, events=(parked, received), then=(refuse,))
    return Outcome(
        replies=replies,
        events=(parked, received),
        records=(record, *end_generation_record(group)),
        when_stored=AssignmentStored(
            group.group_id, group.generation_id, member.member_id, assignments
        ),
    )


def _record(group: ClassicGroupView, assignments: dict[MemberId, bytes]) -> Record:
    """The generation with all its members: one record, stored whole or not at all."""
    members, protocol_name = group.members, group.protocol_name
    protocols: Protocols | None = None
    subscription = between = b""
    length = -1
    parts: list[bytes] = []
    for member_id in members_in_order(members):
        member = members[member_id]
        assignment = assignments.get(member_id, b"")
        if member.protocols is not protocols:  # most members offer the same
            protocols = member.protocols
            subscription = bytes_part(member.metadata_for(protocol_name))
            length = -1
        if len(assignment) != length:  # and get as many partitions as the one before
            length = len(assignment)
            between = subscription + length_part(length)
        written = member.parts
        parts.append(member_part(member) if written is None else written[1])
        parts.append(between)
        parts.append(assignment)
    return group_record_of_parts(
        group.group_id,
        protocol_type=group.protocol_type,
        generation_id=group.generation_id,
        protocol_name=protocol_name,
        leader_id=group.leader_id,
        state_since_ms=group.state_since_ms,
        members=len(members),
        parts=parts,
    )


def _refuse(token: ReplyToken, error_code: ErrorCode) -> Reply:
    return Reply(token, SyncGroupResponse(error_code=error_code))
