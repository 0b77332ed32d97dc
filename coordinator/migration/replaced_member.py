"""Replaced member: a JoinGroup takes the place of the last member of the consumer protocol.

A static member that restarts with the classic protocol gets another member id, target and
partitions of the old one. If all others use the classic protocol already, the group is downgraded
with it, without a rebalance where all are reconciled to a target of the present group epoch.
Kafka's counterpart: `GroupMetadataManager.validateOnlineDowngradeWithReplacedMember`, and the
downgrade in `classicGroupJoinToConsumerGroup`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.classic.commands import BeginRebalance, RebalanceCause
from coordinator.classic.decide.join_answers import answered_name
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.advance import (
    UpdatedGroup,
    current_updated,
    reconciled_member,
    update_group,
)
from coordinator.consumer.decide.find_member import FoundMember
from coordinator.consumer.decide.reconcile import Reported, is_reconciled
from coordinator.consumer.decide.refusal import Refusal
from coordinator.consumer.decide.target_assignment import MemberTarget
from coordinator.consumer.events import ConsumerStaticMemberReplaced
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberMetadata, CurrentAssignment
from coordinator.consumer.records import group_tombstones, turn_records
from coordinator.consumer.resolved import ResolvedRegularExpression
from coordinator.events import ConversionRefused
from coordinator.migration.downgrade import (
    RECORD_TOO_LARGE,
    StayingMember,
    conversion_refused,
    convert_to_classic,
    is_unwritable,
    reason_against,
    staying_member,
)
from coordinator.outcome import Outcome, Reply
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.messages.join_group import JoinGroupResponse
from protocol.names import GenerationId, GroupId, GroupInstanceId, MemberId
from seams.now import Now
from seams.reply_token import ReplyToken

LAST_MEMBER_REPLACED: Final = (
    "the last member that used the consumer protocol restarted with the classic protocol"
)


class JoiningMember(NamedTuple):
    """A member as it was, what its JoinGroup says of it, and what it reports to own."""

    found: FoundMember
    metadata: ConsumerMemberMetadata
    reported: Reported
    given_instance_id: GroupInstanceId | None
    """What its request names. A static member may join again by its member id alone."""


class _EndedGroup(NamedTuple):
    """Whose records end: with the id of the joining member, which its own records have named."""

    group_id: GroupId
    members: Mapping[MemberId, object]
    regexes: Mapping[str, ResolvedRegularExpression]


def member_epoch_answer(
    metadata: ConsumerMemberMetadata, current: CurrentAssignment, token: ReplyToken
) -> Reply:
    """Nobody leads, so no client assigns."""
    assert metadata.classic is not None
    return Reply(
        token,
        JoinGroupResponse(
            generation_id=GenerationId(current.member_epoch),
            protocol_type=PROTOCOL_TYPE,
            protocol_name=answered_name(metadata.classic.protocols[0][0], token.api_version),
            member_id=metadata.member_id,
        ),
    )


def downgrade_by_join(
    group: ConsumerGroupView,
    joining: JoiningMember,
    token: ReplyToken,
    now: Now,
    context: ConsumerContext,
) -> Outcome | ConversionRefused | None:
    """Not an outcome if the group stays a consumer group."""
    replaced = _replaced(group, joining)
    if replaced is None or not _are_others_classic(group, replaced):
        return None
    reason = reason_against(len(group.members), context.settings)
    if reason is not None:
        return conversion_refused(group.group_id, reason, now)
    updated = update_group(group, joining.found, joining.metadata, now, context)
    if isinstance(updated, Refusal):
        return None  # the ordinary join is refused for it
    current, happened = joining.found.current, updated.happened
    has_stale_target = group.assignment_epoch < updated.epoch
    if not has_stale_target:
        current = _reconciled(group, joining, updated, context)
        if current != joining.found.current:
            happened.append(current_updated(group.group_id, joining.metadata, current, now))
    conversion = convert_to_classic(
        group,
        _staying(group, replaced),
        LAST_MEMBER_REPLACED,
        now,
        context.topics.view,
        StayingMember(joining.metadata, group.target_of(replaced.member_id), {}),
    )
    if is_unwritable(conversion, context.settings):
        return conversion_refused(group.group_id, RECORD_TOO_LARGE, now)
    ended = _ended(group, joining, replaced)
    facts = (event for event in happened if isinstance(event, ConsumerStaticMemberReplaced))
    return Outcome(
        replies=(member_epoch_answer(joining.metadata, current, token),),
        events=(*facts, conversion.converted, conversion.downgraded),
        records=(*turn_records(happened), *group_tombstones(ended), conversion.record),
        then=_rebalance(group, joining)
        if has_stale_target or not _are_others_reconciled(group, replaced)
        else (),
    )


def _replaced(group: ConsumerGroupView, joining: JoiningMember) -> ConsumerMemberView | None:
    """The static member of the consumer protocol whose place is taken; it may keep its id."""
    instance_id = joining.given_instance_id
    holder_id = None if instance_id is None else group.static_members.get(instance_id)
    holder = None if holder_id is None else group.members[holder_id]
    return None if holder is None or holder.metadata.classic is not None else holder


def _are_others_classic(group: ConsumerGroupView, replaced: ConsumerMemberView) -> bool:
    return group.classic_member_count == len(group.members) - 1 and (
        replaced.metadata.classic is None
    )


def _are_others_reconciled(group: ConsumerGroupView, replaced: ConsumerMemberView) -> bool:
    """Kafka differs: it does not look. A partition of the target may still be another member's."""
    return all(
        is_reconciled(member.current, group.assignment_epoch)
        for member in group.members.values()
        if member is not replaced
    )


def _reconciled(
    group: ConsumerGroupView,
    joining: JoiningMember,
    updated: UpdatedGroup,
    context: ConsumerContext,
) -> CurrentAssignment:
    target = MemberTarget(group.assignment_epoch, joining.found.target)
    current = reconciled_member(group, joining.found, updated, target, joining.reported, context)
    return joining.found.current if current is None else current


def _staying(group: ConsumerGroupView, replaced: ConsumerMemberView) -> list[StayingMember]:
    return [
        staying_member(group, member)
        for member_id, member in group.members.items()
        if member_id != replaced.member_id
    ]


def _ended(
    group: ConsumerGroupView, joining: JoiningMember, replaced: ConsumerMemberView
) -> _EndedGroup:
    ids = (
        joining.metadata.member_id if member_id == replaced.member_id else member_id
        for member_id in group.members
    )
    return _EndedGroup(group.group_id, dict.fromkeys(ids), group.regexes)


def _rebalance(group: ConsumerGroupView, joining: JoiningMember) -> tuple[BeginRebalance, ...]:
    reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
    cause = RebalanceCause.STATIC_MEMBER_CHANGED
    return (BeginRebalance(group.group_id, cause, reason, (joining.metadata.member_id,)),)
