"""Apply consumer group events: evolve the group, and keep the timers of its members.

Called by the group store, event by event, in log order. A member's session deadline that moves
later is a number; its op finds it when it fires.
"""

from collections.abc import Callable, Hashable
from typing import Protocol, cast

from coordinator.consumer import events
from coordinator.consumer.delayed import (
    ClassicRejoinTimeout,
    ClassicSyncTimeout,
    ConsumerOp,
    ConsumerSessionTimeout,
    RebalanceTimeout,
    classic_rejoin_slot,
    classic_sync_slot,
    consumer_session_slot,
    rebalance_slot,
)
from coordinator.consumer.evolve import evolve_consumer_group
from coordinator.consumer.group import ConsumerGroup
from protocol.names import GroupId, MemberId


class ConsumerTimers(Protocol):
    """The part of the group store that schedules ops and cancels them."""

    def schedule(self, op: ConsumerOp) -> None: ...
    def cancel(self, key: Hashable) -> None: ...


class _Dated(Protocol):
    at_ms: int


def apply_consumer_event(
    group: ConsumerGroup, event: events.ConsumerEvent, timers: ConsumerTimers
) -> None:
    match event:
        case events.ConsumerSessionExtended():
            _watch_session(group, event, timers)
        case events.CurrentAssignmentUpdated():
            _watch_rebalance(group, event, timers)
        case events.ClassicRejoinRequested():
            deadline_ms = event.rejoin_deadline_ms
            timers.schedule(ClassicRejoinTimeout(group.group_id, event.member_id, deadline_ms))
        case events.ClassicJoinAnswered():
            timers.cancel(classic_rejoin_slot(group.group_id, event.member_id))
            deadline_ms = event.sync_deadline_ms
            timers.schedule(ClassicSyncTimeout(group.group_id, event.member_id, deadline_ms))
        case events.ClassicMemberSynced():
            timers.cancel(classic_sync_slot(group.group_id, event.member_id))
        case events.ConsumerMemberUpdated():
            if event.member.classic is None and not event.is_new:
                _cancel_classic(group.group_id, event.member.member_id, timers)
        case events.ConsumerMemberRemoved():
            _cancel_member(group.group_id, event.member.member_id, timers)
        case events.ConsumerStaticMemberReplaced():
            _cancel_member(group.group_id, event.old_member_id, timers)
        case _:
            pass
    state = group.state
    evolve_consumer_group(group, event)
    if group.state is not state:
        group.state_since_ms = cast("_Dated", event).at_ms  # events without one leave the state


def _watch_session(
    group: ConsumerGroup, event: events.ConsumerSessionExtended, timers: ConsumerTimers
) -> None:
    """The first deadline of a member, or one that is earlier than its op's, needs an op."""
    scheduled_ms = group.members[event.member_id].session_deadline_ms
    deadline_ms = event.session_deadline_ms
    if scheduled_ms == 0 or deadline_ms < scheduled_ms:
        timers.schedule(ConsumerSessionTimeout(group.group_id, event.member_id, deadline_ms))


def _watch_rebalance(
    group: ConsumerGroup, event: events.CurrentAssignmentUpdated, timers: ConsumerTimers
) -> None:
    deadline_ms = event.rebalance_deadline_ms
    if deadline_ms is None:
        timers.cancel(rebalance_slot(group.group_id, event.member_id))
    elif deadline_ms != group.members[event.member_id].rebalance_deadline_ms:
        epoch = event.current.member_epoch
        timers.schedule(RebalanceTimeout(group.group_id, event.member_id, epoch, deadline_ms))


def _cancel_member(group_id: GroupId, member_id: MemberId, timers: ConsumerTimers) -> None:
    timers.cancel(consumer_session_slot(group_id, member_id))
    timers.cancel(rebalance_slot(group_id, member_id))
    _cancel_classic(group_id, member_id, timers)


def _cancel_classic(group_id: GroupId, member_id: MemberId, timers: ConsumerTimers) -> None:
    """The member is gone, or it uses the consumer protocol now."""
    timers.cancel(classic_rejoin_slot(group_id, member_id))
    timers.cancel(classic_sync_slot(group_id, member_id))


def cancel_consumer_timers(group: ConsumerGroup, timers: ConsumerTimers) -> None:
    """The group was deleted or converted: nothing waits on its members any more."""
    for member_id in group.members:
        _cancel_member(group.group_id, member_id, timers)


def check_consumer_timers(group: ConsumerGroup, watching: Callable[[Hashable], bool]) -> None:
    """Assert that each deadline has its op; called by tests and the simulator."""
    for member_id, member in group.members.items():
        waits = watching(consumer_session_slot(group.group_id, member_id))
        assert waits, f"{member_id} would never expire"
        for slot, deadline_ms in (
            (rebalance_slot, member.rebalance_deadline_ms),
            (classic_rejoin_slot, member.rejoin_deadline_ms),
            (classic_sync_slot, member.sync_deadline_ms),
        ):
            waits = watching(slot(group.group_id, member_id))
            is_due = deadline_ms is not None
            assert waits is is_due, f"{slot.__name__} of {member_id} and its op differ"
