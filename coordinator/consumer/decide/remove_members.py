"""Remove members: they are gone, and the group epoch rises, so that others get their partitions.

Kafka's counterpart: `GroupMetadataManager.consumerGroupFenceMembers`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.subscriptions import (
    Subscriptions,
    subscriptions_after,
    topics_subscribed_to,
)
from coordinator.consumer.events import ConsumerRemovalCause, EpochCause
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import CurrentAssignment, without_epochs
from protocol.names import MemberId
from seams.now import Now

_EPOCH_CAUSES: Final = {
    ConsumerRemovalCause.LEFT: EpochCause.MEMBER_LEFT,
    ConsumerRemovalCause.SESSION_EXPIRED: EpochCause.SESSION_EXPIRED,
    ConsumerRemovalCause.REBALANCE_TIMED_OUT: EpochCause.REBALANCE_TIMED_OUT,
    ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT: EpochCause.REBALANCE_TIMED_OUT,
    ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT: EpochCause.REBALANCE_TIMED_OUT,
}


def remove_members(
    group: ConsumerGroupView,
    members: Sequence[ConsumerMemberView],
    cause: ConsumerRemovalCause,
    now: Now,
    context: ConsumerContext,
    leave_reasons: Mapping[MemberId, str] | None = None,
) -> list[events.ConsumerEvent]:
    """What happens when these go; at least one does. `leave_reasons`: of a LeaveGroup."""
    group_id, at_ms = group.group_id, now.wall_ms
    happened: list[events.ConsumerEvent] = []
    for member in members:
        session_ms = silent_ms = None
        if cause is ConsumerRemovalCause.SESSION_EXPIRED:
            classic = member.metadata.classic
            session_ms = context.configs.session_timeout_ms(group_id)
            if classic is not None:
                session_ms = classic.session_timeout_ms
            silent_ms = session_ms + now.mono_ms - member.session_deadline_ms
        happened.append(
            events.ConsumerMemberRemoved(
                group_id,
                at_ms,
                member.metadata.identity,
                cause,
                member.current.member_epoch,
                everything_owned(member.current),
                silent_ms,
                session_ms,
                member.metadata.rebalance_timeout_ms,
                None if leave_reasons is None else leave_reasons[member.member_id],
            )
        )
    left = subscriptions_after(group, [member.metadata for member in members], ())
    happened += [
        events.RegularExpressionRemoved(group_id, at_ms, pattern)
        for pattern in group.subscribed_regexes
        if pattern not in left.regexes
    ]
    happened.append(
        events.GroupEpochBumped(
            group_id,
            at_ms,
            group.epoch + 1,
            _hash_of(group, left, context),
            (_EPOCH_CAUSES[cause],),
            tuple(member.member_id for member in members),
        )
    )
    return happened


def _hash_of(group: ConsumerGroupView, left: Subscriptions, context: ConsumerContext) -> int:
    return context.topics.metadata_hash(topics_subscribed_to(left, group.regexes))


def everything_owned(current: CurrentAssignment) -> Assignment:
    """What a member owns, with what it is to give back."""
    owned = dict(without_epochs(current.assigned))
    for topic_id, partitions in without_epochs(current.pending_revocation).items():
        owned[topic_id] = partitions | owned.get(topic_id, frozenset())
    return owned
