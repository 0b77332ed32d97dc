"""How is an event of the history told to a person? One line each; those of `rollcall history`.

Pure text from facts, with the forms of time, duration and names that rebalance_text.py uses.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from coordinator.member_identity import MemberIdentity
from history.causes import Removal
from history.entries import (
    AssignmentReceivedEntry,
    AssignmentRefusedEntry,
    GenerationBegunEntry,
    GroupCreatedEntry,
    GroupDeletedEntry,
    GroupEmptiedEntry,
    GroupLoadedEntry,
    HistoryEntry,
    LapseForgivenEntry,
    LeaderChangedEntry,
    MemberAddedEntry,
    MemberFencedEntry,
    MemberLapsedEntry,
    MemberRemoval,
    MembersRemovedEntry,
    NobodyRejoinedEntry,
    OffsetChange,
    OffsetsMovedEntry,
    PartitionMove,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    RequestClient,
    StaticMemberReplacedEntry,
    TopicsChangedEntry,
    VerdictBegunEntry,
    VerdictEndedEntry,
)
from history.text.rebalance_json import duration, instant, with_times
from history.text.rebalance_text import NAMED_MAX, name_of, short, tell, topic_change

CHANGES_NAMED_MAX: Final = 3

T = TypeVar("T")

_REMOVALS: Final[dict[Removal, str]] = {
    Removal.LEFT: "left",
    Removal.OPERATOR: "removed by an operator",
    Removal.SESSION_EXPIRED: "expired",
    Removal.NEW_MEMBER_TIMED_OUT: "expired: the first join waited for too long",
    Removal.REBALANCE_TIMEOUT: "dropped at the rebalance timeout",
    Removal.SYNC_TIMEOUT: "removed: did not fetch the assignment in time",
    Removal.GROUP_FULL: "turned away: the group is full",
}


def words(event: HistoryEntry) -> str:
    """What happened, without the time and the group."""
    tell_it = _WORDS.get(type(event))
    assert tell_it is not None, type(event)
    return tell_it(event)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _name(who: MemberIdentity) -> str:
    return name_of(who, is_short=True)


def _some(things: Sequence[T], say: Callable[[T], str], left_out: int = 0) -> str:
    """The first ones by name, the others counted."""
    shown = ", ".join(say(one) for one in things[:NAMED_MAX])
    more = max(0, len(things) - NAMED_MAX) + left_out
    return f"{shown} and {more} more" if more else shown


def _by(asker: RequestClient | None) -> str:
    if asker is None:
        return ""
    place = f" at {asker.client_host.lstrip('/')}" if asker.client_host else ""
    return f" by {asker.client_id or 'a client'}{place}"


def _said(reason: str | None) -> str:
    return "" if not reason or reason == "not provided" else f"; its reason: {with_times(reason)}"


def _created(event: HistoryEntry) -> str:
    assert isinstance(event, GroupCreatedEntry)
    return "by a commit of a client that is no member" if event.simple else "by its first member"


def _loaded(event: HistoryEntry) -> str:
    assert isinstance(event, GroupLoadedEntry)
    how = {"killed": " after a kill or a crash", "stopped": " after a clean stop"}
    away = ""
    if event.away_ms is not None:
        most = "at most " if event.stopped == "killed" else ""
        away = f", away for {most}{duration(event.away_ms)}"
    cut_off = "; a rebalance was cut off" if event.interrupted else ""
    return (
        f"the daemon loaded it{how.get(event.stopped, '')}{away}: {event.state}, generation "
        f"{event.generation}, {_count(event.members, 'member')}{cut_off}"
    )


def _deleted(event: HistoryEntry) -> str:
    assert isinstance(event, GroupDeletedEntry)
    return "expired with its last offset" if event.expired else f"deleted{_by(event.client)}"


def _joined(event: HistoryEntry) -> str:
    assert isinstance(event, MemberAddedEntry)
    return (
        f"{_name(event.member)} in generation {event.generation}; session.timeout.ms "
        f"{duration(event.session_timeout_ms)}, rebalance timeout "
        f"{duration(event.rebalance_timeout_ms)}{_said(event.reason)}"
    )


def _gone(one: MemberRemoval) -> str:
    silent = "" if one.silent_ms is None else f", last heard {duration(one.silent_ms)} before"
    return f"{_name(one.member)}{silent}{_said(one.reason)}"


def _removed(event: HistoryEntry) -> str:
    assert isinstance(event, MembersRemovedEntry)
    asker = _by(event.client) if event.cause is Removal.OPERATOR else ""
    named = _some(event.members, _gone, event.members_left_out)
    return f"{_REMOVALS[event.cause]}{asker} in generation {event.generation}: {named}"


def _replaced(event: HistoryEntry) -> str:
    assert isinstance(event, StaticMemberReplacedEntry)
    old = short(event.old_member_id) if event.replaced is None else _name(event.replaced)
    silent = "" if event.silent_ms is None else f", last heard {duration(event.silent_ms)} before"
    settled = "; nobody had to rejoin" if event.without_rebalance else ""
    return f"{_name(event.member)} took the place of {old}{silent}{settled}{_said(event.reason)}"


def _fenced(event: HistoryEntry) -> str:
    assert isinstance(event, MemberFencedEntry)
    return (
        f"{event.request} of {short(event.member_id)} refused: {short(event.current_member_id)} "
        f"has the instance id {event.group_instance_id}"
    )


def _lapsed(event: HistoryEntry) -> str:
    assert isinstance(event, MemberLapsedEntry)
    return (
        f"{_name(event.member)} was silent for its session.timeout.ms "
        f"({duration(event.session_timeout_ms)}); nobody was told yet"
    )


def _forgiven(event: HistoryEntry) -> str:
    assert isinstance(event, LapseForgivenEntry)
    return f"{_name(event.member)} was heard {duration(event.late_by_ms)} late, and stays"


def _began(event: HistoryEntry) -> str:
    assert isinstance(event, RebalanceBegunEntry)
    who = "" if event.trigger is None else f" by {_name(event.trigger)}"
    waits = len(event.waiting_for) + event.waiting_for_left_out
    waiting = f"; waits for {_count(waits, 'member')}" if waits else ""
    note = f"; {event.note}" if event.note else ""
    return (
        f"{event.cause}{who} in generation {event.generation}{waiting}"
        f"{note}{_said(event.client_reason)}"
    )


def _nobody(event: HistoryEntry) -> str:
    assert isinstance(event, NobodyRejoinedEntry)
    times = f" ({event.times} times in a row)" if event.times else ""
    return f"still waits for {_some(event.waiting_for, _name)}{times}"


def _leader(event: HistoryEntry) -> str:
    assert isinstance(event, LeaderChangedEntry)
    return f"{_name(event.new)} instead of {_name(event.old)}"


def _generation(event: HistoryEntry) -> str:
    assert isinstance(event, GenerationBegunEntry)
    absent = f"; absent: {_some(event.absent, _name)}" if event.absent else ""
    kind = f"{event.protocol_type or 'no type'}/{event.protocol or 'no protocol'}"
    return (
        f"{event.generation} with {_count(event.members, 'member')}, {kind}, "
        f"leader {short(event.leader_id)}{absent}"
    )


def _move(move: PartitionMove) -> str:
    where = f"{move.topic}-{move.partition}"
    return f"{where} {short(move.from_member)} -> {short(move.to_member)}"


def _assigned(event: HistoryEntry) -> str:
    assert isinstance(event, AssignmentReceivedEntry)
    parts = [f"{event.generation} to {_count(event.members, 'member')}"]
    if event.partitions is not None:
        parts.append(_count(event.partitions, "partition"))
    if event.without_assignment:
        parts.append(f"{_count(event.without_assignment, 'member')} got nothing")
    if event.moves:
        parts.append(f"moved: {_some(event.moves, _move, event.moves_left_out)}")
    if event.held:
        tasks = _some(event.held, lambda one: f"{_name(one.member)} {one.standby}")
        parts.append(f"standby tasks: {tasks}")
    if event.described:
        parts.append(event.described)
    return "; ".join(parts)


def _refused(event: HistoryEntry) -> str:
    assert isinstance(event, AssignmentRefusedEntry)
    return f"of generation {event.generation} by {short(event.leader_id)}: {event.error}"


def _emptied(event: HistoryEntry) -> str:
    assert isinstance(event, GroupEmptiedEntry)
    return f"generation {event.generation}"


def _ended(event: HistoryEntry) -> str:
    """The first line of its story, without the time: that is when it began."""
    assert isinstance(event, RebalanceEndedEntry)
    head, *_ = tell(event.rebalance)
    began = instant(event.rebalance.began_at_ms)
    return f"{event.rebalance.cause}, {head.removeprefix(began).strip()}"


def _topics(event: HistoryEntry) -> str:
    assert isinstance(event, TopicsChangedEntry)
    named = _some(event.changes, topic_change) if event.changes else _some(event.topics, str)
    return f"partitions changed: {named}"


def _change(change: OffsetChange) -> str:
    old = "none" if change.old is None else change.old
    new = "none" if change.new is None else change.new
    return f"{change.topic}-{change.partition} {old} -> {new}"


def _offsets(event: HistoryEntry) -> str:
    assert isinstance(event, OffsetsMovedEntry)
    shown = ", ".join(map(_change, event.changes[:CHANGES_NAMED_MAX]))
    more = len(event.changes) - CHANGES_NAMED_MAX
    last = f" and {_count(more, 'partition')} more (--offsets)" if more > 0 else ""
    times = f" ({event.commits} times)" if event.commits else ""
    return f"{event.by}{_by(event.client)}{times}: {shown}{last}"


def _verdict(event: HistoryEntry) -> str:
    assert isinstance(event, VerdictBegunEntry)
    return f"{event.verdict}: {event.summary}"


def _verdict_ended(event: HistoryEntry) -> str:
    assert isinstance(event, VerdictEndedEntry)
    return f"{event.verdict} ({event.subject or 'the group'}) after {duration(event.lasted_ms)}"


_WORDS: Final[dict[type, Callable[[HistoryEntry], str]]] = {
    GroupCreatedEntry: _created,
    GroupLoadedEntry: _loaded,
    GroupDeletedEntry: _deleted,
    MemberAddedEntry: _joined,
    MembersRemovedEntry: _removed,
    StaticMemberReplacedEntry: _replaced,
    MemberFencedEntry: _fenced,
    MemberLapsedEntry: _lapsed,
    LapseForgivenEntry: _forgiven,
    RebalanceBegunEntry: _began,
    NobodyRejoinedEntry: _nobody,
    LeaderChangedEntry: _leader,
    GenerationBegunEntry: _generation,
    AssignmentReceivedEntry: _assigned,
    AssignmentRefusedEntry: _refused,
    GroupEmptiedEntry: _emptied,
    RebalanceEndedEntry: _ended,
    TopicsChangedEntry: _topics,
    OffsetsMovedEntry: _offsets,
    VerdictBegunEntry: _verdict,
    VerdictEndedEntry: _verdict_ended,
}
