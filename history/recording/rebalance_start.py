"""Start of a rebalance: the cause that names it, and what else is known of why it began.

Called once for each rebalance by rebalance_tracker.py, with the member changes of the turn before.
Pure. docs/history.md describes the rules for users.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import RebalanceBegun
from coordinator.classic.group_view import ClassicGroupView
from coordinator.member_identity import MemberIdentity
from history.causes import Cause
from history.entries import RebalanceBegunEntry
from history.entry_values import TopicPartitionCounts
from history.recording.attribution import CAUSES, client_reason, owner_of, trigger_of
from history.recording.member_changes import ChangedOffer, RemovedMembers, ReplacedProcess
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import MemberId
from seams.now import Now

LOST_COORDINATOR: Final = ("cached metadata has changed", "rebalance failed due to")
"""Begins the reason of a Java client that rejoins because its coordinator was away."""

REVOKED: Final = "need to revoke partitions and re-join"
"""The reason of a Java client for the second step of a cooperative rebalance."""

_REJOINS: Final = (RebalanceCause.LEADER_REJOINED, RebalanceCause.METADATA_CHANGED)


class Circumstances(Struct, frozen=True):
    """What is known when a rebalance begins. `revoking`: the owners, by instance id or member id,
    that had to revoke partitions in the last assignment which have no new owner yet.
    """

    removed: RemovedMembers | None
    offer: ChangedOffer | None
    replaced: ReplacedProcess | None
    changed: tuple[TopicPartitionCounts, ...]
    revoking: frozenset[str]
    was_interrupted: bool
    is_just_loaded: bool


def rebalance_begun_entry(
    group: ClassicGroupView, event: RebalanceBegun, known: Circumstances, now: Now
) -> RebalanceBegunEntry:
    """The entry, without the members that are waited for."""
    removed = known.removed
    reason = client_reason(event.reason, {} if removed is None else removed.reasons)
    cause = _cause(group, event, known, reason)
    began_by = None
    if known.was_interrupted or (
        known.is_just_loaded and _lost_coordinator(group, event, known, cause, reason)
    ):
        cause, began_by = Cause.COORDINATOR_MOVED, cause
    members = {} if removed is None else removed.members
    trigger = trigger_of(group, event, members)
    silent_ms = session_ms = None
    if removed is not None and trigger is not None:
        silent_ms, session_ms = removed.silent.get(MemberId(trigger.member_id), (None, None))
    generation_members = sum(not member.is_new for member in group.members.values())
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
        generation_members + (0 if removed is None else removed.generation_members),
        timeout_ms=event.rebalance_timeout_ms,
        with_trigger=_with(trigger, members),
        replaced=None if known.replaced is None else known.replaced.replaced,
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
        if known.offer is not None and known.offer.other_topics:
            return Cause.SUBSCRIPTION_CHANGED
        if _is_second_step(group, event, known, reason):
            return Cause.SUBSCRIPTION_CHANGED
        if known.changed:
            return Cause.PARTITIONS_CHANGED
    return CAUSES[event.cause]


def _is_second_step(
    group: ClassicGroupView, event: RebalanceBegun, known: Circumstances, reason: str
) -> bool:
    """Whether a cooperative member rejoins because it has revoked partitions."""
    if event.cause not in _REJOINS:
        return False
    triggers = [group.members.get(member_id) for member_id in event.trigger_ids]
    owners = {owner_of(member) for member in triggers if member is not None}
    return bool(known.revoking & owners) or reason.startswith(REVOKED)


def _lost_coordinator(
    group: ClassicGroupView,
    event: RebalanceBegun,
    known: Circumstances,
    cause: Cause,
    reason: str,
) -> bool:
    """Soon after a load: whether a member rejoined because it had lost its coordinator.

    Not if a consumer gives a reason of its own, such as the follow-up rebalance of Kafka Streams.
    The reasons of Connect workers and Schema Registry nodes do not mention it.
    """
    is_other = known.offer is not None and known.offer.other_topics
    if event.cause not in _REJOINS or is_other:
        return False
    is_consumer = group.protocol_type == PROTOCOL_TYPE
    if is_consumer and cause is not Cause.LEADER_REJOINED:
        return False
    return not is_consumer or not reason or reason.startswith(LOST_COORDINATOR)


def _with(
    trigger: MemberIdentity | None, removed: Mapping[MemberId, MemberIdentity]
) -> tuple[MemberIdentity, ...]:
    """The members that were removed together with the trigger."""
    together = tuple(removed.values())
    if trigger not in together:
        return ()
    return tuple(member for member in together if member != trigger)


def _note(
    group: ClassicGroupView,
    event: RebalanceBegun,
    known: Circumstances,
    cause: Cause,
    reason: str,
) -> str:
    if known.offer is not None and known.offer.note:
        return known.offer.note
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
