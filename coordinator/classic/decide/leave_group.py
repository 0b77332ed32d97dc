"""LeaveGroup: who goes, and do the others have to rebalance?

Route: dispatch -> GroupCoordinator -> Shard.turn -> decide_leave_group -> Outcome -> evolve. Up to
version 2 a member leaves; since then one request may name many, by member id or, as operators do,
by instance id alone. Each gets an answer of its own; one rebalance serves them all.
Kafka's counterpart: `GroupMetadataManager.classicGroupLeaveToClassicGroup`.
"""

from collections.abc import Sequence

from coordinator.classic import events
from coordinator.classic.commands import BeginRebalance, ClassicCommand, Leave, RebalanceCause
from coordinator.classic.decide.checks import check_member, fenced
from coordinator.classic.decide.join_answers import refuse_join
from coordinator.classic.events import RemovalCause, RemovedMember
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.outcome import Outcome, Reply
from protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import UNKNOWN_MEMBER_ID, ApiKey, ErrorCode, GroupState, MemberId
from protocol.primitives import echoed
from seams.now import Now
from seams.reply_token import ReplyToken

MANY_MEMBERS_SINCE = 3


def decide_leave_group(group: ClassicGroupView | None, command: Leave, now: Now) -> Outcome:
    """Answer for each member, remove those who may go, and rebalance once if any did."""
    token = command.token
    leaving = named_in(command.request, token.api_version)
    if group is None:
        answers = [_answer(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving]
        return Outcome(replies=(leave_answer(token, answers),))
    if group.state is GroupState.DEAD:
        dead = LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Outcome(replies=(Reply(token, dead),))
    leave = _Leave(group, token, now)
    for member in leaving:
        leave.consider(member)
    return leave.outcome()


def named_in(request: LeaveGroupRequest, api_version: int) -> Sequence[MemberIdentity]:
    if api_version < MANY_MEMBERS_SINCE:
        return (MemberIdentity(member_id=request.member_id),)
    return request.members


def leave_answer(token: ReplyToken, answers: Sequence[MemberResponse]) -> Reply:
    """Up to version 2 the one member's error is the error of the whole."""
    if token.api_version < MANY_MEMBERS_SINCE:
        return Reply(token, LeaveGroupResponse(error_code=answers[0].error_code))
    return Reply(token, LeaveGroupResponse(members=answers))


def _answer(leaving: MemberIdentity, error_code: ErrorCode = ErrorCode.NONE) -> MemberResponse:
    instance_id = leaving.group_instance_id
    if instance_id is not None:
        instance_id = echoed(instance_id)
    return MemberResponse(echoed(leaving.member_id), instance_id, error_code)


class _Leave:
    """One request's members, considered one after the other: a second naming finds nobody."""

    def __init__(self, group: ClassicGroupView, token: ReplyToken, now: Now) -> None:
        self.group = group
        self.token = token
        self.now = now
        self.answers: list[MemberResponse] = []
        self.replies: list[Reply] = []
        self.gone: dict[MemberId, RemovedMember] = {}
        self.gone_pending: set[MemberId] = set()
        self.happened: list[events.ClassicEvent] = []

    def consider(self, leaving: MemberIdentity) -> None:
        error_code = self._refusal(leaving)
        self.answers.append(_answer(leaving, error_code))
        if error_code is not ErrorCode.NONE:
            return
        member_id = leaving.member_id
        if member_id == UNKNOWN_MEMBER_ID and leaving.group_instance_id is not None:
            member_id = self.group.static_members[leaving.group_instance_id]
        if member_id in self.group.pending_member_ids:
            self.gone_pending.add(member_id)
            self.happened.append(
                events.PendingMemberRemoved(
                    self.group.group_id,
                    self.now.wall_ms,
                    member_id,
                    RemovalCause.LEFT,
                    leaving.reason,
                    self.token.client_id,
                    self.token.client_host,
                    self.token.named_principal,
                )
            )
            return
        member = self.group.members[member_id]
        self._dismiss(member)
        by_instance = leaving.member_id == UNKNOWN_MEMBER_ID
        self.gone[member_id] = RemovedMember(member.caller, leaving.reason, by_instance)

    def _refusal(self, leaving: MemberIdentity) -> ErrorCode:
        group = self.group
        if leaving.member_id == UNKNOWN_MEMBER_ID:
            # An operator removes the member that holds the instance id.
            if leaving.group_instance_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            holder = group.static_members.get(leaving.group_instance_id)
            known = holder is not None and holder not in self.gone
            return ErrorCode.NONE if known else ErrorCode.UNKNOWN_MEMBER_ID
        if leaving.member_id in group.pending_member_ids:
            again = leaving.member_id in self.gone_pending
            return ErrorCode.UNKNOWN_MEMBER_ID if again else ErrorCode.NONE
        if leaving.group_instance_id is not None:
            holder = group.static_members.get(leaving.group_instance_id)
            if holder in self.gone:
                return ErrorCode.UNKNOWN_MEMBER_ID
        error_code = check_member(group, leaving.member_id, leaving.group_instance_id)
        if error_code is ErrorCode.FENCED_INSTANCE_ID:
            self.happened.append(
                fenced(
                    group,
                    leaving.member_id,
                    leaving.group_instance_id,
                    ApiKey.LEAVE_GROUP,
                    self.now.wall_ms,
                )
            )
        if error_code is ErrorCode.NONE and leaving.member_id in self.gone:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return error_code

    def _dismiss(self, member: ClassicMemberView) -> None:
        if member.awaiting_join is not None:
            self.replies.append(refuse_join(member.awaiting_join, ErrorCode.UNKNOWN_MEMBER_ID))
        if member.awaiting_sync is not None:
            # Kafka differs: it leaves the parked sync of a removed member without any answer.
            gone = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            self.replies.append(Reply(member.awaiting_sync, gone))

    def outcome(self) -> Outcome:
        group = self.group
        if self.gone:
            self.happened.append(
                events.MembersRemoved(
                    group.group_id,
                    self.now.wall_ms,
                    group.state,
                    group.generation_id,
                    RemovalCause.LEFT,
                    tuple(self.gone.values()),
                    self.token.client_id,
                    self.token.client_host,
                    self.token.named_principal,
                )
            )
        then: tuple[ClassicCommand, ...] = ()
        # A pending id that leaves is a member that leaves, to Kafka: the group rebalances for it.
        if (self.gone or self.gone_pending) and group.state in (
            GroupState.STABLE,
            GroupState.COMPLETING_REBALANCE,
        ):
            named = [a.member_id for a in self.answers if a.error_code is ErrorCode.NONE]
            reason = f"explicit `LeaveGroup` request for ({', '.join(named)}) members."
            trigger_ids = (*self.gone, *sorted(self.gone_pending))
            then = (
                BeginRebalance(group.group_id, RebalanceCause.MEMBER_LEFT, reason, trigger_ids),
            )
        return Outcome(
            replies=(*self.replies, leave_answer(self.token, self.answers)),
            events=self.happened,
            then=then,
        )
