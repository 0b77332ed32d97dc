"""Reconcile: the next step of a member from what it owns to what it is to own.

First a member gives back what it may not keep, in its old epoch. Then it goes to the epoch of the
target and gets what is free; for the rest it waits until others have given it back. So no partition
has two owners. Kafka's counterpart: `CurrentAssignmentBuilder`.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec import Struct

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.member import (
    NOTHING_OWNED,
    ConsumerMemberState,
    CurrentAssignment,
    OwnedPartitions,
)
from protocol.messages.consumer_group_heartbeat import HeartbeatTopicPartitions
from protocol.names import MemberId, TopicId

Reported = Sequence[HeartbeatTopicPartitions] | None
"""What a client says that it owns; None if it says nothing."""

_NO_EPOCHS: Mapping[int, int] = {}


class Goal(Struct, frozen=True):
    """Where a member is to go.

    `subscribed` are the topics that exist; `has_topics`: it subscribes to one, which may not exist.
    `owners` has the members that own partitions, also while they are to give them back.
    """

    target_epoch: int
    target: Assignment
    subscribed: AbstractSet[TopicId]
    has_topics: bool
    has_subscription_changed: bool
    reported: Reported
    owners: Mapping[TopicId, Mapping[int, MemberId]]


def is_reconciled(current: CurrentAssignment, target_epoch: int) -> bool:
    return current.state is ConsumerMemberState.STABLE and current.member_epoch == target_epoch


def reconcile_member(current: CurrentAssignment, goal: Goal) -> CurrentAssignment | None:
    """The member after this step, the same if it cannot move.

    None: the member is in a state that this version does not know, and has to join again.
    """
    match current.state:
        case ConsumerMemberState.STABLE:
            if current.member_epoch != goal.target_epoch:
                return _next(current, current.member_epoch, goal)
            return _drop_unsubscribed(current, goal)
        case ConsumerMemberState.UNREVOKED_PARTITIONS:
            if _still_owns(goal.reported, current.pending_revocation):
                return _drop_unsubscribed(current, goal)
            return _next(current, current.member_epoch, goal)
        case ConsumerMemberState.UNRELEASED_PARTITIONS:
            return _next(current, current.member_epoch, goal)
        case ConsumerMemberState.UNKNOWN:
            if goal.reported is None or goal.reported:
                return None
            return _next(current, goal.target_epoch, goal)


class _Shares(NamedTuple):
    """What a member owns and is to own, in parts."""

    kept: dict[TopicId, Mapping[int, int]]
    revoked: dict[TopicId, Mapping[int, int]]
    free: dict[TopicId, AbstractSet[int]]
    has_unreleased: bool


def _next(current: CurrentAssignment, member_epoch: int, goal: Goal) -> CurrentAssignment:
    shares = _shares(current, goal)
    if shares.revoked and _still_owns(goal.reported, shares.revoked):
        return CurrentAssignment(
            member_epoch,
            current.member_epoch,
            ConsumerMemberState.UNREVOKED_PARTITIONS,
            shares.kept,
            shares.revoked,
        )
    for topic_id, partitions in shares.free.items():
        given = dict.fromkeys(partitions, goal.target_epoch)
        shares.kept[topic_id] = {**shares.kept.get(topic_id, _NO_EPOCHS), **given}
    state = ConsumerMemberState.STABLE
    if shares.has_unreleased:
        state = ConsumerMemberState.UNRELEASED_PARTITIONS
    return CurrentAssignment(
        goal.target_epoch, current.member_epoch, state, shares.kept, NOTHING_OWNED
    )


def _shares(current: CurrentAssignment, goal: Goal) -> _Shares:
    shares = _Shares({}, {}, {}, has_unreleased=False)
    has_unreleased = False
    for topic_id, owned in current.assigned.items():
        target = goal.target.get(topic_id) if topic_id in goal.subscribed else None
        kept = {p: epoch for p, epoch in owned.items() if p in target} if target else {}
        if kept:
            shares.kept[topic_id] = kept
        if len(kept) < len(owned):
            shares.revoked[topic_id] = {p: e for p, e in owned.items() if p not in kept}
    for topic_id, partitions in goal.target.items():
        if topic_id not in goal.subscribed:
            continue
        kept_here = shares.kept.get(topic_id)
        wanted = partitions - kept_here.keys() if kept_here else partitions
        if not wanted:
            continue
        free: AbstractSet[int] = wanted
        owners = goal.owners.get(topic_id)
        if owners:
            own = current.pending_revocation.get(topic_id, _NO_EPOCHS)
            free = {p for p in wanted if p not in owners or p in own}
        if free:
            shares.free[topic_id] = free
        has_unreleased = has_unreleased or len(free) < len(wanted)
    return shares._replace(has_unreleased=has_unreleased)


def _drop_unsubscribed(current: CurrentAssignment, goal: Goal) -> CurrentAssignment:
    """The member subscribes to other topics: it gives the others back before a target says so."""
    if not goal.has_subscription_changed:
        return current
    dropped = {t: owned for t, owned in current.assigned.items() if t not in goal.subscribed}
    # A member that is left with no topic takes a step even if it owns nothing, as in Kafka: its
    # epoch becomes the previous one, too, and is recorded.
    if not dropped and (goal.has_topics or current.pending_revocation):
        return current
    kept = {t: owned for t, owned in current.assigned.items() if t not in dropped}
    pending = _merged(current.pending_revocation, dropped)
    if pending and _still_owns(goal.reported, pending):
        state = ConsumerMemberState.UNREVOKED_PARTITIONS
        return CurrentAssignment(current.member_epoch, current.member_epoch, state, kept, pending)
    return CurrentAssignment(
        current.member_epoch,
        current.member_epoch,
        current.state,
        kept,
        current.pending_revocation,
    )


def _merged(first: OwnedPartitions, second: OwnedPartitions) -> OwnedPartitions:
    merged = dict(first)
    for topic_id, owned in second.items():
        merged[topic_id] = {**merged.get(topic_id, _NO_EPOCHS), **owned}
    return merged


def _still_owns(reported: Reported, revoked: OwnedPartitions) -> bool:
    """Whether the client still owns any of these, as far as one knows."""
    if reported is None:
        return True
    return any(
        number in revoked.get(of_topic.topic_id, _NO_EPOCHS)
        for of_topic in reported
        for number in of_topic.partitions
    )
