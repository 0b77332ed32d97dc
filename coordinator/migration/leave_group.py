"""LeaveGroup at a consumer group: members of either protocol go, by member id or by instance id.

Kafka's counterpart: `GroupMetadataManager.classicGroupLeaveToConsumerGroup`.
"""

from coordinator.classic.commands import Leave
from coordinator.classic.decide.leave_group import leave_answer, named_in
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.remove_members import remove_members
from coordinator.consumer.events import ConsumerEvent, ConsumerRemovalCause
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.records import turn_records
from coordinator.migration.classic_members import Found, find_named_member, instance_fenced
from coordinator.migration.downgrade import downgrade_after_removal
from coordinator.outcome import Outcome
from protocol.messages.leave_group import MemberIdentity, MemberResponse
from protocol.names import NO_GENERATION, UNKNOWN_MEMBER_ID, ErrorCode, MemberId
from protocol.primitives import echoed
from seams.now import Now


def decide_leave_of_classic_members(
    group: ConsumerGroupView, command: Leave, now: Now, context: ConsumerContext
) -> Outcome:
    """Answer for each; those who may go are removed together, so that the epoch rises once."""
    token = command.token
    answers: list[MemberResponse] = []
    leaving: dict[MemberId, ConsumerMemberView] = {}
    reasons: dict[MemberId, str] = {}
    happened: list[ConsumerEvent] = []
    for named in named_in(command.request, token.api_version):
        found = _find(group, named)
        if isinstance(found, ErrorCode):
            answers.append(_answer(named, found))
        else:
            # As in Kafka, a member that is named twice has left twice.
            answers.append(_answer(named, ErrorCode.NONE))
            leaving[found.member_id] = found
            reasons[found.member_id] = named.reason or ""
        if found is ErrorCode.FENCED_INSTANCE_ID:
            member_id, instance_id = named.member_id, named.group_instance_id
            happened.append(instance_fenced(group, member_id, instance_id, NO_GENERATION, now))
    if leaving:
        gone = [*leaving.values()]
        happened += remove_members(group, gone, ConsumerRemovalCause.LEFT, now, context, reasons)
    outcome = Outcome(
        replies=(leave_answer(token, answers),), events=happened, records=turn_records(happened)
    )
    return downgrade_after_removal(group, outcome, now, context)


def _find(group: ConsumerGroupView, named: MemberIdentity) -> Found:
    """An operator names the instance id alone."""
    instance_id = named.group_instance_id
    if named.member_id == UNKNOWN_MEMBER_ID and instance_id is not None:
        holder_id = group.static_members.get(instance_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if holder_id is None else group.members[holder_id]
    return find_named_member(group, named.member_id, instance_id)


def _answer(named: MemberIdentity, error_code: ErrorCode) -> MemberResponse:
    instance_id = named.group_instance_id
    echoed_instance_id = None if instance_id is None else echoed(instance_id)
    return MemberResponse(echoed(named.member_id), echoed_instance_id, error_code)
