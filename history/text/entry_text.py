"""History entry as text: the lines of `rollcall history`, one for each entry.

Pure. Instants, durations and member names have the forms of rebalance_text.py.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, assert_never

from coordinator.member_identity import MemberIdentity
from history.causes import Removal
from history.consumer_entries import (
    ConsumerMemberUpdatedEntry,
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RegularExpressionResolvedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
    TargetAssignmentRefusedEntry,
    TargetAssignmentUpdatedEntry,
)
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
    MembersRemovedEntry,
    NoMemberRejoinedEntry,
    OffsetsMovedEntry,
    PendingOffsetsEndedEntry,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
    TopicsChangedEntry,
    VerdictBegunEntry,
    VerdictEndedEntry,
)
from history.entry_values import (
    MemberRemoval,
    OffsetChange,
    PartitionMove,
    RequestClient,
)
from history.text.consumer_text import format_consumer_entry, format_subscription
from history.text.rebalance_json import replace_epoch_times
from history.text.rebalance_text import (
    NAMED_MAX,
    as_principal,
    format_member,
    format_number,
    format_rebalance,
    format_topic_change,
    shorten_id,
)
from seams.text import duration, first_of, instant

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


def format_entry(entry: HistoryEntry) -> str:
    """What happened, without the instant and the group."""
    match entry:
        case GroupCreatedEntry():
            return _created(entry)
        case GroupLoadedEntry():
            return _loaded(entry)
        case GroupDeletedEntry():
            return _deleted(entry)
        case MemberAddedEntry():
            return _joined(entry)
        case MembersRemovedEntry():
            return _removed(entry)
        case StaticMemberReplacedEntry():
            return _replaced(entry)
        case MemberFencedEntry():
            return _fenced(entry)
        case MemberLapsedEntry():
            return _lapsed(entry)
        case LapseForgivenEntry():
            return _forgiven(entry)
        case RebalanceBegunEntry():
            return _began(entry)
        case NoMemberRejoinedEntry():
            return _not_rejoined(entry)
        case LeaderChangedEntry():
            return _leader(entry)
        case GenerationBegunEntry():
            return _generation(entry)
        case AssignmentReceivedEntry():
            return _assigned(entry)
        case AssignmentRefusedEntry():
            return _refused(entry)
        case GroupEmptiedEntry():
            return _emptied(entry)
        case RebalanceEndedEntry():
            return _ended(entry)
        case TopicsChangedEntry():
            return _topics(entry)
        case OffsetsMovedEntry():
            return _offsets(entry)
        case PendingOffsetsEndedEntry():
            return _aborted(entry)
        case VerdictBegunEntry():
            return _verdict(entry)
        case VerdictEndedEntry():
            return _verdict_ended(entry)
        case (
            GroupConvertedEntry()
            | ConsumerMemberUpdatedEntry()
            | StaticMemberLeftEntry()
            | GroupEpochBumpedEntry()
            | TargetAssignmentUpdatedEntry()
            | TargetAssignmentRefusedEntry()
            | RevocationRequestedEntry()
            | RevocationEndedEntry()
            | PartitionsAssignedEntry()
            | RegularExpressionResolvedEntry()
        ):
            return format_consumer_entry(entry)
        case _:
            assert_never(entry)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _name(member: MemberIdentity) -> str:
    return format_member(member, is_short=True)


def _first(values: Sequence[T], text: Callable[[T], str], left_out: int = 0) -> str:
    """The first values as text, the others counted."""
    shown = [text(value) for value in values[:NAMED_MAX]]
    return first_of(shown, NAMED_MAX, len(values) + left_out)


def _by(client: RequestClient | None) -> str:
    if client is None:
        return ""
    place = f" at {client.client_host.lstrip('/')}" if client.client_host else ""
    return f" by {client.client_id or 'a client'}{as_principal(client.principal)}{place}"


def _reason(reason: str | None) -> str:
    return (
        ""
        if not reason or reason == "not provided"
        else f"; its reason: {replace_epoch_times(reason)}"
    )


def _created(event: GroupCreatedEntry) -> str:
    return "by a commit of a client that is no member" if event.simple else "by its first member"


def _loaded(event: GroupLoadedEntry) -> str:
    how = {"killed": " after a kill or a crash", "stopped": " after a clean stop"}
    away = ""
    if event.away_ms is not None:
        most = "at most " if event.stopped == "killed" else ""
        away = f", away for {most}{duration(event.away_ms)}"
    cut_off = "; a rebalance was cut off" if event.interrupted else ""
    number = f"{format_number(event.group_type)} {event.generation}"
    return (
        f"the daemon loaded it{how.get(event.stopped, '')}{away}: {event.state}, {number}, "
        f"{_count(event.members, 'member')}{cut_off}"
    )


def _deleted(event: GroupDeletedEntry) -> str:
    return "expired with its last offset" if event.expired else f"deleted{_by(event.client)}"


def _joined(event: MemberAddedEntry) -> str:
    if event.group_type:
        subscribed = format_subscription(event.topics, event.topics_left_out, event.topic_regex)
        protocol = " with the classic protocol" if event.protocol == "classic" else ""
        return (
            f"{_name(event.member)}{protocol} in epoch {event.generation}; subscribed to "
            f"{subscribed}; rebalance timeout {duration(event.rebalance_timeout_ms)}"
        )
    return (
        f"{_name(event.member)} in generation {event.generation}; session.timeout.ms "
        f"{duration(event.session_timeout_ms)}, rebalance timeout "
        f"{duration(event.rebalance_timeout_ms)}{_reason(event.reason)}"
    )


def _removal(removal: MemberRemoval) -> str:
    silent = (
        "" if removal.silent_ms is None else f", last heard {duration(removal.silent_ms)} before"
    )
    return f"{_name(removal.member)}{silent}{_reason(removal.reason)}"


def _removed(event: MembersRemovedEntry) -> str:
    client = _by(event.client) if event.cause is Removal.OPERATOR else ""
    named = _first(event.members, _removal, event.members_left_out)
    number = format_number(event.group_type)
    return f"{_REMOVALS[event.cause]}{client} in {number} {event.generation}: {named}"


def _replaced(event: StaticMemberReplacedEntry) -> str:
    old = shorten_id(event.old_member_id) if event.replaced is None else _name(event.replaced)
    silent = "" if event.silent_ms is None else f", last heard {duration(event.silent_ms)} before"
    kept = "; nobody had to rejoin" if event.without_rebalance else ""
    return f"{_name(event.member)} took the place of {old}{silent}{kept}{_reason(event.reason)}"


def _fenced(event: MemberFencedEntry) -> str:
    if event.error:
        times = f" ({event.times} times in a row)" if event.times else ""
        known = "" if event.member_epoch is None else f"; the member's is {event.member_epoch}"
        return (
            f"{event.request} of {shorten_id(event.member_id)} with epoch {event.received_epoch} "
            f"refused with {event.error}{known}{times}"
        )
    return (
        f"{event.request} of {shorten_id(event.member_id)} refused: "
        f"{shorten_id(event.current_member_id)} has the instance id {event.group_instance_id}"
    )


def _lapsed(event: MemberLapsedEntry) -> str:
    return (
        f"{_name(event.member)} was silent for its session.timeout.ms "
        f"({duration(event.session_timeout_ms)}); nobody was told yet"
    )


def _forgiven(event: LapseForgivenEntry) -> str:
    return f"{_name(event.member)} was heard {duration(event.late_by_ms)} late, and stays"


def _began(event: RebalanceBegunEntry) -> str:
    trigger = "" if event.trigger is None else f" by {_name(event.trigger)}"
    waits = len(event.waiting_for) + event.waiting_for_left_out
    waiting = f"; waits for {_count(waits, 'member')}" if waits else ""
    note = f"; {event.note}" if event.note else ""
    return (
        f"{event.cause}{trigger} in {format_number(event.group_type)} {event.generation}{waiting}"
        f"{note}{_reason(event.client_reason)}"
    )


def _not_rejoined(event: NoMemberRejoinedEntry) -> str:
    times = f" ({event.times} times in a row)" if event.times else ""
    return f"still waits for {_first(event.waiting_for, _name)}{times}"


def _leader(event: LeaderChangedEntry) -> str:
    return f"{_name(event.new)} instead of {_name(event.old)}"


def _generation(event: GenerationBegunEntry) -> str:
    absent = f"; absent: {_first(event.absent, _name)}" if event.absent else ""
    kind = f"{event.protocol_type or 'no type'}/{event.protocol or 'no protocol'}"
    return (
        f"{event.generation} with {_count(event.members, 'member')}, {kind}, "
        f"leader {shorten_id(event.leader_id)}{absent}"
    )


def _move(move: PartitionMove) -> str:
    where = f"{move.topic}-{move.partition}"
    return f"{where} {shorten_id(move.from_member)} -> {shorten_id(move.to_member)}"


def _assigned(event: AssignmentReceivedEntry) -> str:
    parts = [f"{event.generation} to {_count(event.members, 'member')}"]
    if event.partitions is not None:
        parts.append(_count(event.partitions, "partition"))
    if event.without_assignment:
        parts.append(f"{_count(event.without_assignment, 'member')} got nothing")
    if event.moves:
        parts.append(f"moved: {_first(event.moves, _move, event.moves_left_out)}")
    if event.held:
        tasks = _first(event.held, lambda member: f"{_name(member.member)} {member.standby}")
        parts.append(f"standby tasks: {tasks}")
    if event.described:
        parts.append(event.described)
    return "; ".join(parts)


def _refused(event: AssignmentRefusedEntry) -> str:
    return f"of generation {event.generation} by {shorten_id(event.leader_id)}: {event.error}"


def _emptied(event: GroupEmptiedEntry) -> str:
    return f"{format_number(event.group_type)} {event.generation}"


def _ended(event: RebalanceEndedEntry) -> str:
    """The first line about the rebalance, without the instant at which it began."""
    head, *_ = format_rebalance(event.rebalance)
    began = instant(event.rebalance.began_at_ms)
    return f"{event.rebalance.cause}, {head.removeprefix(began).strip()}"


def _topics(event: TopicsChangedEntry) -> str:
    named = (
        _first(event.changes, format_topic_change) if event.changes else _first(event.topics, str)
    )
    return f"partitions changed: {named}"


def _change(change: OffsetChange) -> str:
    old = "none" if change.old is None else change.old
    new = "none" if change.new is None else change.new
    return f"{change.topic}-{change.partition} {old} -> {new}"


def _offsets(event: OffsetsMovedEntry) -> str:
    shown = ", ".join(map(_change, event.changes[:CHANGES_NAMED_MAX]))
    more = len(event.changes) - CHANGES_NAMED_MAX
    last = f" and {_count(more, 'partition')} more (--offsets)" if more > 0 else ""
    times = f" ({event.commits} times)" if event.commits else ""
    return f"{event.by}{_by(event.client)}{times}: {shown}{last}"


def _aborted(event: PendingOffsetsEndedEntry) -> str:
    count = _count(len(event.changes), "offset")
    dropped = _first(event.changes, lambda each: f"{each.topic}-{each.partition} {each.new}")
    return f"of producer {event.producer_id}{_by(event.client)}: {count} dropped: {dropped}"


def _verdict(event: VerdictBegunEntry) -> str:
    return f"{event.verdict}: {event.summary}"


def _verdict_ended(event: VerdictEndedEntry) -> str:
    return f"{event.verdict} ({event.subject or 'the group'}) after {duration(event.lasted_ms)}"
