"""Delayed operations of consumer groups: session and rebalance timeouts of members.

See classic/delayed.py for what an op is. Kafka's counterpart: the timer keys of
`GroupMetadataManager` (`groupSessionTimeoutKey`, `groupRebalanceTimeoutKey`,
`consumerGroupJoinKey`, `consumerGroupSyncKey`).
"""

from collections.abc import Hashable

from msgspec import Struct

from coordinator.consumer.commands import (
    ExpireClassicRejoin,
    ExpireClassicSync,
    ExpireConsumerSession,
    ExpireRebalanceTimeout,
)
from protocol.names import GroupId, MemberId


class ConsumerSessionTimeout(Struct, frozen=True, eq=False):
    """Waits for the silence of a member to last too long.

    A heartbeat does not move this op: it moves `ConsumerMember.session_deadline_ms`. The decision
    that gets the command finds the later deadline there, and schedules the op again.
    """

    group_id: GroupId
    member_id: MemberId
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return consumer_session_slot(self.group_id, self.member_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.slot,)

    def try_complete(self) -> None:
        return None

    def on_expiration(self) -> ExpireConsumerSession:
        return ExpireConsumerSession(self.group_id, self.member_id)


class RebalanceTimeout(Struct, frozen=True, eq=False):
    """Waits for a member to give partitions back; its command is stale in another epoch."""

    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return rebalance_slot(self.group_id, self.member_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.slot,)

    def try_complete(self) -> None:
        return None

    def on_expiration(self) -> ExpireRebalanceTimeout:
        return ExpireRebalanceTimeout(self.group_id, self.member_id, self.member_epoch)


class ClassicRejoinTimeout(Struct, frozen=True, eq=False):
    """Waits for the JoinGroup of a member of the classic protocol that was told to join again."""

    group_id: GroupId
    member_id: MemberId
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return classic_rejoin_slot(self.group_id, self.member_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.slot,)

    def try_complete(self) -> None:
        return None

    def on_expiration(self) -> ExpireClassicRejoin:
        return ExpireClassicRejoin(self.group_id, self.member_id)


class ClassicSyncTimeout(Struct, frozen=True, eq=False):
    """Waits for the SyncGroup of a member of the classic protocol whose JoinGroup was answered."""

    group_id: GroupId
    member_id: MemberId
    deadline_ms: int

    @property
    def slot(self) -> Hashable:
        return classic_sync_slot(self.group_id, self.member_id)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.slot,)

    def try_complete(self) -> None:
        return None

    def on_expiration(self) -> ExpireClassicSync:
        return ExpireClassicSync(self.group_id, self.member_id)


ConsumerOp = ConsumerSessionTimeout | RebalanceTimeout | ClassicRejoinTimeout | ClassicSyncTimeout


def consumer_session_slot(group_id: GroupId, member_id: MemberId) -> Hashable:
    return ("consumer session", group_id, member_id)


def rebalance_slot(group_id: GroupId, member_id: MemberId) -> Hashable:
    return ("consumer rebalance", group_id, member_id)


def classic_rejoin_slot(group_id: GroupId, member_id: MemberId) -> Hashable:
    return ("classic rejoin", group_id, member_id)


def classic_sync_slot(group_id: GroupId, member_id: MemberId) -> Hashable:
    return ("classic sync", group_id, member_id)
