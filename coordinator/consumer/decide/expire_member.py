"""Expire member: one was silent for its session timeout, or has not given partitions back in time.

Kafka's counterpart: `scheduleConsumerGroupSessionTimeout`, `scheduleConsumerGroupRebalanceTimeout`
of `GroupMetadataManager`, and what they run.
"""

from coordinator.consumer.commands import (
    ExpireClassicRejoin,
    ExpireClassicSync,
    ExpireConsumerSession,
    ExpireRebalanceTimeout,
)
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.remove_members import remove_members
from coordinator.consumer.delayed import ConsumerSessionTimeout
from coordinator.consumer.events import ConsumerRemovalCause
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.records import turn_records
from coordinator.outcome import Outcome
from protocol.names import MemberId
from seams.now import Now


def decide_expire_consumer_session(
    group: ConsumerGroupView | None,
    command: ExpireConsumerSession,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    member = _member(group, command.member_id)
    if group is None or member is None:
        return Outcome()
    if member.session_deadline_ms > now.mono_ms:
        op = ConsumerSessionTimeout(group.group_id, member.member_id, member.session_deadline_ms)
        return Outcome(ops=(op,))
    return _removed(group, member, ConsumerRemovalCause.SESSION_EXPIRED, now, context)


def decide_expire_rebalance(
    group: ConsumerGroupView | None,
    command: ExpireRebalanceTimeout,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    """The member is still where it was when it was told to give partitions back."""
    member = _member(group, command.member_id)
    if group is None or member is None or member.current.member_epoch != command.member_epoch:
        return Outcome()
    return _removed(group, member, ConsumerRemovalCause.REBALANCE_TIMED_OUT, now, context)


def decide_expire_rejoin(
    group: ConsumerGroupView | None,
    command: ExpireClassicRejoin,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    """A member of the classic protocol was told to join again, and did not."""
    member = _member(group, command.member_id)
    if group is None or member is None or member.rejoin_deadline_ms is None:
        return Outcome()
    return _removed(group, member, ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT, now, context)


def decide_expire_sync(
    group: ConsumerGroupView | None, command: ExpireClassicSync, now: Now, context: ConsumerContext
) -> Outcome:
    """A member of the classic protocol joined, and did not sync."""
    member = _member(group, command.member_id)
    if group is None or member is None or member.sync_deadline_ms is None:
        return Outcome()
    return _removed(group, member, ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT, now, context)


def _member(group: ConsumerGroupView | None, member_id: MemberId) -> ConsumerMemberView | None:
    return None if group is None else group.members.get(member_id)


def _removed(
    group: ConsumerGroupView,
    member: ConsumerMemberView,
    cause: ConsumerRemovalCause,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    happened = remove_members(group, (member,), cause, now, context)
    return Outcome(events=happened, records=turn_records(happened))
