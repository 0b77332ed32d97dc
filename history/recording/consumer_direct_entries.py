"""Consumer direct entries: events of consumer groups that become at most one entry, by themselves.

consumer_turn_recorder.py handles the events that a rebalance consists of. What clients and
assignors repeat is limited (repeats.py).
"""

from collections.abc import Iterator
from typing import Final

from coordinator.consumer.events import (
    ConsumerMemberFenced,
    RegularExpressionResolved,
    TargetAssignmentRefused,
)
from history.consumer_entries import RegularExpressionResolvedEntry, TargetAssignmentRefusedEntry
from history.entries import HistoryEntry, MemberFencedEntry
from history.recording.consumer_state import ConsumerRecordingState
from history.recording.consumer_turn import ConsumerTurn
from seams.now import Now

_REQUEST: Final = "CONSUMER_GROUP_HEARTBEAT"


def fenced_entries(
    event: ConsumerMemberFenced, turn: ConsumerTurn, state: ConsumerRecordingState, now: Now
) -> Iterator[HistoryEntry]:
    times = state.repeats.count((event.group_id, event.member_id), now.mono_ms)
    if times is None:
        return
    current = ""
    if event.instance_id is not None and turn.group is not None:
        current = turn.group.static_members.get(event.instance_id, "")
    yield MemberFencedEntry(
        event.group_id,
        event.at_ms,
        event.member_id,
        event.instance_id or "",
        current,
        _REQUEST,
        event.error_code.name,
        event.received_epoch,
        event.member_epoch,
        None if times == 1 else times,
    )


def target_refused_entries(
    event: TargetAssignmentRefused, state: ConsumerRecordingState, now: Now
) -> Iterator[HistoryEntry]:
    """Each heartbeat of a member may try again."""
    times = state.repeats.count(event.group_id, now.mono_ms)
    if times is not None:
        yield TargetAssignmentRefusedEntry(
            event.group_id,
            event.at_ms,
            event.group_epoch,
            event.assignor,
            event.reason,
            None if times == 1 else times,
        )


def resolved_entries(
    event: RegularExpressionResolved, turn: ConsumerTurn, most: int
) -> Iterator[HistoryEntry]:
    """A refresh that finds the same topics has no entry."""
    known = None if turn.group is None else turn.group.regexes.get(event.pattern)
    if known is None or known.topics != event.topics:
        names = sorted(event.topics)
        yield RegularExpressionResolvedEntry(
            event.group_id,
            event.at_ms,
            event.pattern,
            tuple(map(str, names[:most])),
            max(0, len(names) - most),
        )
