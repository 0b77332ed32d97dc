"""Which of the coordinator's events are facts of the history as they are? One for one, by table.

Those that need more than themselves are made in recorder.py; those that are neither there nor
here are no history: a session that moves, an id that is handed out, a sync that is parked.
"""

from collections.abc import Callable
from typing import Final

from coordinator.classic.events import (
    AssignmentRefused,
    LapseForgiven,
    LeaderChanged,
    MemberAdded,
    MemberFenced,
    MemberLapsed,
    NobodyRejoined,
    TopicsChanged,
)
from coordinator.classic.group_view import ClassicGroupView
from coordinator.events import Event, GroupCreated
from history.entries import (
    AssignmentRefusedEntry,
    GroupCreatedEntry,
    HistoryEntry,
    LapseForgivenEntry,
    LeaderChangedEntry,
    MemberAddedEntry,
    MemberFencedEntry,
    MemberLapsedEntry,
    NobodyRejoinedEntry,
    TopicsChangedEntry,
)
from history.recording.attribution import who_of


def fact_of(group: ClassicGroupView | None, event: Event) -> HistoryEntry | None:
    """The fact; None if this is no history. The group is as it was before."""
    translate = _TRANSLATIONS.get(type(event))
    return None if translate is None else translate(group, event)


def _group_created(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, GroupCreated)
    return GroupCreatedEntry(event.group_id, event.at_ms, event.simple)


def _member_joined(group: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, MemberAdded)
    assert group is not None
    return MemberAddedEntry(
        event.group_id,
        event.at_ms,
        who_of(event.member),
        str(event.join_kind),
        group.generation_id,
        event.reason,
        event.session_timeout_ms,
        event.rebalance_timeout_ms,
    )


def _member_fenced(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, MemberFenced)
    return MemberFencedEntry(
        event.group_id,
        event.at_ms,
        event.member_id,
        event.group_instance_id,
        event.current_member_id,
        event.api_key.name,
    )


def _member_lapsed(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, MemberLapsed)
    return MemberLapsedEntry(
        event.group_id,
        event.at_ms,
        who_of(event.member),
        event.generation_id,
        event.session_timeout_ms,
    )


def _lapse_forgiven(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, LapseForgiven)
    return LapseForgivenEntry(
        event.group_id, event.at_ms, who_of(event.member), event.generation_id, event.late_by_ms
    )


def _nobody_rejoined(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, NobodyRejoined)
    waiting_for = tuple(who_of(name) for name in event.waiting_for[:_NAMED_MAX])
    return NobodyRejoinedEntry(event.group_id, event.at_ms, waiting_for)


def _leader_changed(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, LeaderChanged)
    old, new = who_of(event.old_leader), who_of(event.new_leader)
    return LeaderChangedEntry(event.group_id, event.at_ms, old, new)


def _assignment_refused(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, AssignmentRefused)
    return AssignmentRefusedEntry(
        event.group_id, event.at_ms, event.generation_id, event.leader_id, event.error_code.name
    )


def _topics_changed(_: ClassicGroupView | None, event: Event) -> HistoryEntry:
    assert isinstance(event, TopicsChanged)
    return TopicsChangedEntry(event.group_id, event.at_ms, tuple(sorted(event.topics)))


_NAMED_MAX: Final = 200

_TRANSLATIONS: Final[dict[type, Callable[[ClassicGroupView | None, Event], HistoryEntry]]] = {
    GroupCreated: _group_created,
    MemberAdded: _member_joined,
    MemberFenced: _member_fenced,
    MemberLapsed: _member_lapsed,
    LapseForgiven: _lapse_forgiven,
    NobodyRejoined: _nobody_rejoined,
    LeaderChanged: _leader_changed,
    AssignmentRefused: _assignment_refused,
    TopicsChanged: _topics_changed,
}
