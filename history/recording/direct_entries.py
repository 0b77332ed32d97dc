"""Direct entries: events of the coordinator that become one history entry each, without state.

recorder.py handles the other events, and lists those that are not recorded.
"""

from typing import Final, assert_never

from coordinator.classic.events import (
    AssignmentRefused,
    LapseForgiven,
    LeaderChanged,
    MemberAdded,
    MemberFenced,
    MemberLapsed,
)
from coordinator.classic.group_view import ClassicGroupView
from coordinator.events import GroupCreated
from history.entries import (
    AssignmentRefusedEntry,
    GroupCreatedEntry,
    HistoryEntry,
    LapseForgivenEntry,
    LeaderChangedEntry,
    MemberAddedEntry,
    MemberFencedEntry,
    MemberLapsedEntry,
)

WAITING_FOR_MAX: Final = 200
"""Members in one entry that says whom a group waits for."""

Direct = (
    GroupCreated
    | MemberAdded
    | MemberFenced
    | MemberLapsed
    | LapseForgiven
    | LeaderChanged
    | AssignmentRefused
)


def direct_entry(group: ClassicGroupView | None, event: Direct) -> HistoryEntry:
    """`group` is as it was before the event."""
    match event:
        case GroupCreated():
            return GroupCreatedEntry(event.group_id, event.at_ms, event.simple)
        case MemberAdded():
            assert group is not None
            return MemberAddedEntry(
                event.group_id,
                event.at_ms,
                event.member,
                str(event.join_kind),
                group.generation_id,
                event.reason,
                event.session_timeout_ms,
                event.rebalance_timeout_ms,
            )
        case MemberFenced():
            return MemberFencedEntry(
                event.group_id,
                event.at_ms,
                event.member_id,
                event.group_instance_id,
                event.current_member_id,
                event.api_key.name,
            )
        case MemberLapsed():
            return MemberLapsedEntry(
                event.group_id,
                event.at_ms,
                event.member,
                event.generation_id,
                event.session_timeout_ms,
            )
        case LapseForgiven():
            return LapseForgivenEntry(
                event.group_id, event.at_ms, event.member, event.generation_id, event.late_by_ms
            )
        case LeaderChanged():
            return LeaderChangedEntry(
                event.group_id, event.at_ms, event.old_leader, event.new_leader
            )
        case AssignmentRefused():
            return AssignmentRefusedEntry(
                event.group_id,
                event.at_ms,
                event.generation_id,
                event.leader_id,
                event.error_code.name,
            )
        case _:
            assert_never(event)
