"""Consumer group entries as text: their lines of `rollcall history`.

Pure; entry_text.py has the other entries, and asks here for these.
"""

from collections.abc import Sequence
from typing import assert_never

from history.causes import WaitEnd
from history.consumer_entries import (
    ConsumerEntry,
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
from history.entry_values import OwnedTopic, PartitionHandover, PartitionMove
from history.text.rebalance_text import NAMED_MAX, format_member, shorten_id
from protocol.printable import printable
from seams.text import duration, first_of

_REVOCATION_ENDS = {
    WaitEnd.REVOKED: "gave back {what}",
    WaitEnd.LEFT: "left while it was to give back {what}",
    WaitEnd.EXPIRED: "expired while it was to give back {what}",
    WaitEnd.DROPPED: "was removed at its rebalance timeout: it had not given back {what}",
    WaitEnd.REPLACED: "was replaced while it was to give back {what}",
}


def format_consumer_entry(entry: ConsumerEntry) -> str:
    """What happened, without the instant and the group."""
    match entry:
        case GroupConvertedEntry():
            return _converted(entry)
        case ConsumerMemberUpdatedEntry():
            return _updated(entry)
        case StaticMemberLeftEntry():
            return _static_left(entry)
        case GroupEpochBumpedEntry():
            return _bumped(entry)
        case TargetAssignmentUpdatedEntry():
            return _target(entry)
        case TargetAssignmentRefusedEntry():
            times = f" ({entry.times} times in a row)" if entry.times else ""
            return f"of epoch {entry.epoch} by the assignor {entry.assignor}: {entry.reason}{times}"
        case RevocationRequestedEntry():
            return _revocation(entry)
        case RevocationEndedEntry():
            return _revoked(entry)
        case PartitionsAssignedEntry():
            return _assigned(entry)
        case RegularExpressionResolvedEntry():
            return _resolved(entry)
        case _:
            assert_never(entry)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _first(texts: Sequence[str], left_out: int = 0) -> str:
    return first_of(texts[:NAMED_MAX], NAMED_MAX, len(texts) + left_out)


def format_subscription(topics: Sequence[str], left_out: int, regex: str) -> str:
    """`t, u and the regular expression "v.*"`."""
    named = _first(topics, left_out) if topics else ""
    expression = f'the regular expression "{printable(regex)}"' if regex else ""
    return " and ".join(filter(None, [named, expression])) or "nothing"


def _converted(entry: GroupConvertedEntry) -> str:
    number = "generation" if entry.from_type == "classic" else "epoch"
    reason = f": {entry.reason}" if entry.reason else ""
    return (
        f"from a {entry.from_type} group ({number} {entry.generation}, "
        f"{_count(entry.members, 'member')}) to a {entry.to_type} group{reason}"
    )


def _updated(entry: ConsumerMemberUpdatedEntry) -> str:
    changed = ", ".join(entry.changed)
    subscribed = format_subscription(entry.topics, entry.topics_left_out, entry.topic_regex)
    name = format_member(entry.member, is_short=True)
    return f"{name} in epoch {entry.generation}: {changed}; subscribed to {subscribed}"


def _static_left(entry: StaticMemberLeftEntry) -> str:
    name = format_member(entry.member, is_short=True)
    return (
        f"{name} left for a while in epoch {entry.generation}, and keeps "
        f"{_count(entry.partitions, 'partition')} until its session expires"
    )


def _bumped(entry: GroupEpochBumpedEntry) -> str:
    why = ", ".join(entry.causes) or "no cause"
    names = [format_member(member, is_short=True) for member in entry.triggers]
    by = f" by {_first(names, entry.triggers_left_out)}" if names else ""
    topics = f"; topics: {_first(entry.topics, entry.topics_left_out)}" if entry.topics else ""
    return f"{entry.epoch}: {why}{by}; {_count(entry.members, 'member')}{topics}"


def _move(move: PartitionMove) -> str:
    where = f"{move.topic}-{move.partition}"
    return f"{where} {shorten_id(move.from_member)} -> {shorten_id(move.to_member)}"


def _target(entry: TargetAssignmentUpdatedEntry) -> str:
    parts = [
        f"{entry.epoch} by {entry.assignor or 'an assignor'} in {duration(entry.took_ms)}",
        f"{_count(entry.members, 'member')} with another target",
    ]
    if entry.partitions_moved is not None:
        parts.append(f"{_count(entry.partitions_moved, 'partition')} to move")
    if entry.moves:
        parts.append(_first([_move(move) for move in entry.moves], entry.moves_left_out))
    return "; ".join(parts)


def format_owned(owned: Sequence[OwnedTopic], left_out: int = 0) -> str:
    """`t-0, t-3 and 7 more`."""
    names = [f"{topic}-{index}" for topic, indexes in owned for index in indexes]
    return _first(names, left_out)


def _revocation(entry: RevocationRequestedEntry) -> str:
    name = format_member(entry.member, is_short=True)
    return (
        f"{name} is to give back {format_owned(entry.partitions, entry.partitions_left_out)} "
        f"for epoch {entry.target_epoch}, within {duration(entry.timeout_ms)}"
    )


def _revoked(entry: RevocationEndedEntry) -> str:
    name = format_member(entry.member, is_short=True)
    how = _REVOCATION_ENDS.get(entry.end, f"{entry.end}: {{what}}")
    after = "" if entry.waited_ms is None else f", after {duration(entry.waited_ms)}"
    return f"{name} {how.format(what=_count(entry.partitions, 'partition'))}{after}"


def _handover(handover: PartitionHandover) -> str:
    where = f"{handover.topic}-{handover.partition}"
    if not handover.from_member:
        return where
    unowned = ""
    if handover.unowned_ms:
        unowned = f" after {duration(handover.unowned_ms)} without an owner"
    return f"{where} from {shorten_id(handover.from_member)}{unowned}"


def _assigned(entry: PartitionsAssignedEntry) -> str:
    name = format_member(entry.member, is_short=True)
    handed = _first([_handover(part) for part in entry.handed_over], entry.handed_over_left_out)
    waits = ""
    if entry.waits_for:
        waits = f"; waits for {_count(entry.waits_for, 'partition')} that others still own"
    elif entry.member_epoch == entry.target_epoch:
        waits = "; it has reached its target"
    return f"{name} in epoch {entry.member_epoch}: {handed}{waits}"


def _resolved(entry: RegularExpressionResolvedEntry) -> str:
    topics = _first(entry.topics, entry.topics_left_out) if entry.topics else "no topic"
    return f'"{printable(entry.pattern)}" matches {topics}'
