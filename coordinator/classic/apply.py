"""Apply classic events: evolve the group, and keep the session timers of its members.

Called by the group store, event by event, in log order. A member that is removed needs no timer; a
session deadline that moves earlier needs a new one. A deadline that moves later is a number: the op
that is scheduled at the earlier one finds it there when it fires.
"""

from collections.abc import Callable, Hashable
from typing import Final, Protocol

from coordinator.classic import events
from coordinator.classic.delayed import (
    ClassicOp,
    DelayedHeartbeat,
    join_slot,
    session_slot,
    sync_slot,
)
from coordinator.classic.evolve import evolve
from coordinator.classic.group import ClassicGroup
from coordinator.classic.group_view import SESSION_PAUSED
from protocol.names import GroupState, MemberId


class Timers(Protocol):
    """The part of the group store that schedules ops and cancels them."""

    def schedule(self, op: ClassicOp) -> None: ...
    def cancel(self, key: Hashable) -> None: ...


_WITH_TIMERS: Final = frozenset(
    (
        events.LapseForgiven,
        events.MembersRemoved,
        events.PendingMemberRemoved,
        events.StaticMemberReplaced,
        events.ConsumerGroupDowngraded,
    )
)
"""Most events are none of these: one look in place of five."""


def apply_classic_event(group: ClassicGroup, event: events.ClassicEvent, timers: Timers) -> None:
    if isinstance(event, events.SessionExtended):  # first: it comes with every commit
        _watch_session(group, event.member_id, event.session_deadline_ms, timers)
    elif type(event) in _WITH_TIMERS:
        _keep_timers(group, event, timers)
    evolve(group, event)


def _keep_timers(group: ClassicGroup, event: events.ClassicEvent, timers: Timers) -> None:
    if isinstance(event, events.LapseForgiven):
        _watch_session(group, event.member.member_id, event.session_deadline_ms, timers)
    elif isinstance(event, events.MembersRemoved):
        for removed in event.removed:
            timers.cancel(session_slot(group.group_id, removed.member.member_id))
    elif isinstance(event, events.PendingMemberRemoved):
        timers.cancel(session_slot(group.group_id, event.member_id))
    elif isinstance(event, events.StaticMemberReplaced):
        timers.cancel(session_slot(group.group_id, event.old_member_id))
    elif isinstance(event, events.ConsumerGroupDowngraded):
        for member in event.members:
            member_id, deadline_ms = member.member.member_id, member.session_deadline_ms
            timers.schedule(DelayedHeartbeat(group.group_id, member_id, deadline_ms))


def _watch_session(
    group: ClassicGroup, member_id: MemberId, deadline_ms: int, timers: Timers
) -> None:
    scheduled_ms = group.members[member_id].session_deadline_ms
    if deadline_ms < scheduled_ms and scheduled_ms != SESSION_PAUSED:
        timers.schedule(DelayedHeartbeat(group.group_id, member_id, deadline_ms))


def cancel_timers(group: ClassicGroup, timers: Timers) -> None:
    """The group was deleted: nothing waits on it any more."""
    timers.cancel(group.group_id)
    for member_id in (*group.pending_member_ids, *group.members):
        timers.cancel(session_slot(group.group_id, member_id))


def check_timers(group: ClassicGroup, watching: Callable[[Hashable], bool]) -> None:
    """Assert that each phase and each session has its op; called by tests and the simulator."""
    group_id = group.group_id
    preparing = group.state is GroupState.PREPARING_REBALANCE
    waits = watching(join_slot(group_id))
    assert waits or not preparing, f"no op completes the rebalance of {group_id}"
    waits = watching(sync_slot(group_id))
    assert waits is bool(group.pending_sync_ids), f"pending syncs of {group_id} and their op differ"
    for member_id, member in group.members.items():
        waits = watching(session_slot(group_id, member_id))
        parked = member.awaiting_join is not None or member.awaiting_sync is not None
        paused = member.session_deadline_ms == SESSION_PAUSED
        assert waits or paused, f"{member_id} would never expire"
        assert parked or not paused, f"no answer will start the session of {member_id}"
    for member_id in group.pending_member_ids:
        waits = watching(session_slot(group_id, member_id))
        assert waits, f"the id {member_id} would never expire"
