"""Beginning of a rebalance: by what cause is it named, and what else is known of why it began?

Asked once for each rebalance, by recorder.py, with what the turns before it brought. Pure.
docs/history.md tells people the rules.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import RebalanceBegun
from coordinator.classic.group_view import ClassicGroupView
from coordinator.member_identity import MemberIdentity
from history.causes import Cause
from history.entries import RebalanceBegunEntry, TopicPartitionCounts
from history.recording.attribution import CAUSES, client_reason, owner_of, trigger_of
from history.recording.running_rebalance import Came, Offered, Removed
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import MemberId
from seams.now import Now

LOST_US: Final = ("cached metadata has changed", "rebalance failed due to")
"""How the reason of a Java client begins that rejoins because its coordinator was away."""

REVOKED: Final = "need to revoke partitions and re-join"
"""A Java client's reason for the second step of a cooperative rebalance."""

_REJOINS: Final = (RebalanceCause.LEADER_REJOINED, RebalanceCause.METADATA_CHANGED)


class Circumstances(Struct, frozen=True):
    """What was known when a rebalance began. `gave_up`: the owners, by instance id or member id,
    that the last assignment told to give up partitions which nobody has taken yet.
    """

    removed: Removed | None
    offered: Offered | None
    came: Came | None
    changed: tuple[TopicPartitionCounts, ...]
    gave_up: frozenset[str]
    was_cut_off: bool
    is_loaded_now: bool


def began(
    group: ClassicGroupView, event: RebalanceBegun, known: Circumstances, now: Now
) -> RebalanceBegunEntry:
    """The fact, without the members that are waited for."""
    removed, came = known.removed, known.came
    reason = client_reason(event.reason, {} if removed is None else removed.reasons)
    cause = _cause(group, event, known, reason)
    began_by = None
    if known.was_cut_off or (known.is_loaded_now and _lost_us(group, event, known, cause, reason)):
        cause, began_by = Cause.COORDINATOR_MOVED, cause
    whos = {} if removed is None else removed.whos
    trigger = trigger_of(group, event, whos)
    silent_ms = session_ms = None
    if removed is not None and trigger is not None:
        silent_ms, session_ms = removed.silent.get(MemberId(trigger.member_id), (None, None))
    settled = sum(not member.is_new for member in group.members.values())
    is_about_topics = Cause.PARTITIONS_CHANGED in (cause, began_by)
    return RebalanceBegunEntry(
        group.group_id,
        now.wall_ms,
        cause,
        began_by,
        trigger,
        event.reason,
        reason,
        str(event.from_state),
        event.old_generation_id,
        settled + (0 if removed is None else removed.members),
        timeout_ms=event.rebalance_timeout_ms,
        with_trigger=_with(trigger, whos),
        replaced=None if came is None else came.replaced,
        note=_note(group, event, known, cause, reason),
        silent_ms=silent_ms,
        session_timeout_ms=session_ms,
        topics=known.changed if is_about_topics else (),
        protocol_type=group.protocol_type or "",
    )


def _cause(
    group: ClassicGroupView, event: RebalanceBegun, known: Circumstances, reason: str
) -> Cause:
    if event.cause is RebalanceCause.MEMBER_LEFT:
        by_operator = known.removed is not None and known.removed.by_operator
        return Cause.OPERATOR if by_operator else Cause.MEMBER_LEFT
    if event.cause in _REJOINS:
        if known.offered is not None and known.offered.other_topics:
            return Cause.SUBSCRIPTION_CHANGED
        if _is_second_step(group, event, known, reason):
            return Cause.SUBSCRIPTION_CHANGED
        if known.changed:
            return Cause.PARTITIONS_CHANGED
    return CAUSES[event.cause]


def _is_second_step(
    group: ClassicGroupView, event: RebalanceBegun, known: Circumstances, reason: str
) -> bool:
    """Does a cooperative member rejoin because it gave up what it was told to?"""
    if event.cause not in _REJOINS:
        return False
    owners = {owner_of(group.members[one]) for one in event.trigger_ids if one in group.members}
    return bool(known.gave_up & owners) or reason.startswith(REVOKED)


def _lost_us(
    group: ClassicGroupView,
    event: RebalanceBegun,
    known: Circumstances,
    cause: Cause,
    reason: str,
) -> bool:
    """Soon after a load: did a member rejoin because it had lost its coordinator?

    A consumer's reason of its own speaks against it: a Streams client's follow-up rebalance is its
    own. Workers of Connect and nodes of Schema Registry give reasons that say nothing of it.
    """
    is_other = known.offered is not None and known.offered.other_topics
    if event.cause not in _REJOINS or is_other:
        return False
    is_consumer = group.protocol_type == PROTOCOL_TYPE
    if is_consumer and cause is not Cause.LEADER_REJOINED:
        return False
    return not is_consumer or not reason or reason.startswith(LOST_US)


def _with(
    trigger: MemberIdentity | None, whos: Mapping[MemberId, MemberIdentity]
) -> tuple[MemberIdentity, ...]:
    """Who went together with the trigger."""
    together = tuple(whos.values())
    return tuple(who for who in together if who != trigger) if trigger in together else ()


def _note(
    group: ClassicGroupView,
    event: RebalanceBegun,
    known: Circumstances,
    cause: Cause,
    reason: str,
) -> str:
    if known.offered is not None and known.offered.note:
        return known.offered.note
    if _is_second_step(group, event, known, reason):
        return (
            "the second step of a cooperative rebalance: what it gave up is free to be assigned now"
        )
    timeout_ms = None if known.removed is None else known.removed.poll_ms
    if cause is Cause.MEMBER_LEFT and not reason and timeout_ms is not None:
        return (
            "it gave no reason: a client leaves like this when it is closed, or when it did not "
            f"call poll for max.poll.interval.ms ({timeout_ms // 1000} s)"
        )
    return ""
