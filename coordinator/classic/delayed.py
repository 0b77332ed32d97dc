"""Delayed operations of classic groups: rejoin, sync, session and partition-change timeouts.

An op is a question plus a deadline. It reads a `GroupView` and returns a `Command`; it never
changes state and never replies, so it may be asked any number of times. `Purgatory` owns the
bookkeeping and promises that each op yields exactly one command. An op whose rebalance or
generation is over ends at the next question; the decision that gets its command drops it as stale.

`slot` names what there may be only one of: parking an op ends the one in its slot, as scheduling a
timer under a key that is taken does in Kafka. A slot opens with its kind: the names of groups and
members are the clients' own, and a group may be called "join".
Kafka's counterpart: `DelayedJoin`, `InitialDelayedJoin`, `DelayedSync`, `DelayedHeartbeat`, and the
timer keys of `GroupMetadataManager`.
"""

from collections.abc import Hashable
from typing import Final

from msgspec import Struct

from coordinator.classic.commands import (
    CompleteJoin,
    EndInitialDelay,
    EndPartitionDelay,
    EndSyncPhase,
    ExpireSession,
)
from coordinator.classic.group_view import ClassicGroupView
from protocol.names import GenerationId, GroupId, GroupState, MemberId


class DelayedJoin(Struct, frozen=True, eq=False):
    """Waits until every known member has rejoined, and nobody who was given an id is outstanding.

    Its command carries the rebalance it was parked in (a number of its own: a rebalance can end
    without a new generation), so that a stale one does not complete another rebalance.
    """

    group: ClassicGroupView
    rebalance_id: int
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return join_slot(self.group.group_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.group.group_id, self.slot)

    def try_complete(self) -> CompleteJoin | None:
        if is_in_rebalance(self.group, self.rebalance_id) and not self.group.all_members_joined:
            return None
        return CompleteJoin(self.group.group_id, self.rebalance_id, expired=False)

    def on_expiration(self) -> CompleteJoin:
        return CompleteJoin(self.group.group_id, self.rebalance_id, expired=True)


class InitialDelayedJoin(Struct, frozen=True, eq=False):
    """Gives a group that was empty time to gather: it never completes early, even if all came."""

    group: ClassicGroupView
    rebalance_id: int
    delay_ms: int
    remaining_ms: int
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return join_slot(self.group.group_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.group.group_id, self.slot)

    def try_complete(self) -> EndInitialDelay | None:
        return None if is_in_rebalance(self.group, self.rebalance_id) else self.on_expiration()

    def on_expiration(self) -> EndInitialDelay:
        return EndInitialDelay(
            self.group.group_id, self.rebalance_id, self.delay_ms, self.remaining_ms
        )


class DelayedSync(Struct, frozen=True, eq=False):
    """Waits until every member of a generation has synced; then only the waiting is over."""

    group: ClassicGroupView
    generation_id: GenerationId
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return sync_slot(self.group.group_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.group.group_id, self.slot)

    def try_complete(self) -> EndSyncPhase | None:
        if self.group.generation_id == self.generation_id and self.group.pending_sync_ids:
            return None
        return EndSyncPhase(self.group.group_id, self.generation_id, expired=False)

    def on_expiration(self) -> EndSyncPhase:
        return EndSyncPhase(self.group.group_id, self.generation_id, expired=True)


class DelayedHeartbeat(Struct, frozen=True, eq=False, gc=False):  # of each member: 16 bytes less
    """Waits for the silence of a member, or of an id that was handed out, to last too long.

    A heartbeat does not move this op: it moves `Member.session_deadline_ms`, one integer. On expiry
    `decide_expire_session` sees a later deadline and parks a new op there, so a beat costs O(1). A
    deadline that moves *earlier* (a new member's five minutes become its session) re-files the op.
    """

    group_id: GroupId
    member_id: MemberId
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return session_slot(self.group_id, self.member_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.slot,)

    def try_complete(self) -> None:
        return None  # Silence is only ever ended by time.

    def on_expiration(self) -> ExpireSession:
        return ExpireSession(self.group_id, self.member_id)


class DelayedPartitionChange(Struct, frozen=True, eq=False):
    """Gathers changes to the topics of a group for a while (rollcall.partition.change.delay.ms)."""

    group_id: GroupId
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return partitions_slot(self.group_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.slot,)

    def try_complete(self) -> None:
        return None  # It waits for time, so that one rebalance serves many changes.

    def on_expiration(self) -> EndPartitionDelay:
        return EndPartitionDelay(self.group_id)


class HeldPartitionChange(Struct, frozen=True, eq=False):
    """Holds gathered changes until a rebalance that runs is over and the group is Stable."""

    group: ClassicGroupView
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return partitions_slot(self.group.group_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.group.group_id, self.slot)

    def try_complete(self) -> EndPartitionDelay | None:
        if self.group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
            return None
        return EndPartitionDelay(self.group.group_id)

    def on_expiration(self) -> EndPartitionDelay:
        return EndPartitionDelay(self.group.group_id)


ClassicOp = (
    DelayedJoin
    | InitialDelayedJoin
    | DelayedSync
    | DelayedHeartbeat
    | DelayedPartitionChange
    | HeldPartitionChange
)


def join_slot(group_id: GroupId) -> Hashable:
    return ("join", group_id)


def sync_slot(group_id: GroupId) -> Hashable:
    return ("sync", group_id)


def session_slot(group_id: GroupId, member_id: MemberId) -> Hashable:
    return ("session", group_id, member_id)


def partitions_slot(group_id: GroupId) -> Hashable:
    return ("partitions", group_id)


_PREPARING: Final = GroupState.PREPARING_REBALANCE
"""Found once: in Python to look it up takes as long as the rest of the question."""


def is_in_rebalance(group: ClassicGroupView, rebalance_id: int) -> bool:
    """Whether this rebalance still waits for members: a later one has another number."""
    return group.state is _PREPARING and group.rebalance_id == rebalance_id
