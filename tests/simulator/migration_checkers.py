"""Checkers of migration: classic and consumer members of one group, and its conversions.

A member of the classic protocol holds what its SyncGroup answers gave it until it joins again
without that, or is not a member any more. Across all members, of either protocol, a partition has
one holder. Where the classic protocol itself gives partitions of a member away, the member holds
them no more: of a static member that did not rejoin in time. Group epochs and generations do not
fall when a group with members is converted.

A downgraded group is stored Stable with the target assignments, and its rebalance is not stored, as
in Kafka (`ClassicGroup.fromConsumerGroup`; `onLoaded` prepares none). A restart before the first
generation is complete forgets the rebalance, so what a member had still to give back is free then.
A real Kafka 4.3.1 did the same: with all four partitions, a member that had not joined again since
the downgrade was told REBALANCE_IN_PROGRESS, and after `kill -9` and a start its heartbeat was
answered NONE, and its SyncGroup with the target, which were two.
"""

from typing import Final, NamedTuple

from coordinator.classic.events import (
    ConsumerGroupDowngraded,
    GenerationBegun,
    MembersRemoved,
    StaticMemberReplaced,
)
from coordinator.classic.group import ClassicGroup
from coordinator.consumer.events import (
    ClassicGroupUpgraded,
    ClassicJoinAnswered,
    ClassicRejoinRequested,
    ConsumerMemberRemoved,
    ConsumerRemovalCause,
    ConsumerStaticMemberReplaced,
)
from coordinator.consumer.group import ConsumerGroup
from coordinator.events import AnyEvent, GroupConverted
from protocol.consumer_protocol import read_assignment, read_subscription
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.names import ErrorCode, GroupId, MemberId
from tests.simulator.consumer_checkers import ConsumerCheckers
from tests.simulator.consumer_clients import REBALANCE_MS, Owned
from tests.simulator.migration_clients import by_id
from tests.simulator.node import Node
from tests.simulator.sockets import Token

_WAITS: Final = {
    ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT: ClassicRejoinRequested,
    ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT: ClassicJoinAnswered,
}


class Downgraded(NamedTuple):
    """What was stored of a downgrade, and by which memory of the node."""

    memory: tuple[int, int]
    generation_id: int
    targets: dict[MemberId, Owned]


class MigrationCheckers(ConsumerCheckers):
    def __init__(self) -> None:
        super().__init__()
        self.conversions = 0  # of groups with members
        self._asked_ms: dict[tuple[type, MemberId], int] = {}
        self._before_conversion: dict[GroupId, tuple[int, int]] = {}
        self._downgraded: dict[GroupId, Downgraded] = {}  # until it is loaded

    # ------------------------------------------------------------ what is asked

    def handling(self, node: Node, token: Token) -> None:
        self._forget_rebalances(node)
        super().handling(node, token)
        request = token.request
        match request:
            case JoinGroupRequest():
                self.owners[request.group_id].confirm(request.member_id, _owned(node, request))
            case HeartbeatRequest() | SyncGroupRequest():
                token.claim_holds = self._holds(
                    node, request.group_id, request.member_id, request.generation_id
                )
            case OffsetCommitRequest():
                group_id, epoch = request.group_id, request.generation_id_or_member_epoch
                if isinstance(node.coordinator.group(group_id), ClassicGroup):
                    token.claim_holds = self._holds(node, group_id, request.member_id, epoch)
            case _:
                return

    def _holds(self, node: Node, group_id: GroupId, member_id: MemberId, epoch: int) -> bool:
        """Whether the member is one, in this generation or epoch, right now."""
        if node.coordinator.partition_for(group_id) in node.loading:
            return True
        group = node.coordinator.group(group_id)
        if isinstance(group, ConsumerGroup):
            member = group.members.get(member_id)
            return member is not None and member.current.member_epoch == epoch
        assert group is None or isinstance(group, ClassicGroup)
        return group is not None and member_id in group.members and group.generation_id == epoch

    # ------------------------------------------------------------ what is answered

    def replied(self, node: Node, token: Token, response: Response) -> None:
        super().replied(node, token, response)
        match response:
            case HeartbeatResponse():
                if response.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
                    self._accepted(token)
            case JoinGroupResponse() if response.error_code is ErrorCode.NONE:
                self._joined(node, token, response)
            case SyncGroupResponse() if response.error_code is ErrorCode.NONE:
                self._accepted(token)
                self._synced(node, token, response)
            case _:
                return

    def _accepted(self, token: Token) -> None:
        self.demand(token.claim_holds, f"a claim that does not hold was accepted: {token.request}")
        request = token.request
        assert isinstance(request, HeartbeatRequest | SyncGroupRequest)
        if isinstance(request, HeartbeatRequest):
            self._hear(request.member_id, token.handled_ms)

    def _hear(self, member_id: MemberId, at_ms: int) -> None:
        self.heard_ms[member_id] = max(self.heard_ms.get(member_id, 0), at_ms)

    def _joined(self, node: Node, token: Token, response: JoinGroupResponse) -> None:
        request = token.request
        assert isinstance(request, JoinGroupRequest)
        if not request.member_id:
            self.owners[request.group_id].confirm(response.member_id, _owned(node, request))
        self.join_answered(request.group_id, response.member_id)
        generation = response.generation_id
        before = self.answered_epochs.get(request.group_id, 0)
        if not response.leader:  # a consumer group: it is the member's epoch
            if generation > 0:  # else it is to join once more
                self.epochs.add((request.group_id, generation))
            self._hear(response.member_id, token.handled_ms)
        elif token.handled_at >= self.converted_at.get(request.group_id, (0, 0)):
            self.demand(generation >= before, f"generation {generation} after {before} was told")
        self.hear_of_epoch(token, request.group_id, generation)

    def _synced(self, node: Node, token: Token, response: SyncGroupResponse) -> None:
        request = token.request
        assert isinstance(request, SyncGroupRequest)
        if not response.assignment or token.handled_at < self.removed_at.get(
            request.member_id, (0, 0)
        ):
            return
        self.answers_with_assignment += 1
        named = read_assignment(bytes(response.assignment)).assigned_partitions
        assigned = by_id(named, node.topics)
        holder = self.owners[request.group_id].give(request.member_id, assigned, None)
        self.demand(
            holder is None, f"{request.member_id} is given what {holder} still has: {assigned}"
        )

    # ------------------------------------------------------------ what happens

    def happened(self, node: Node, event: AnyEvent) -> None:
        if isinstance(event, ConsumerMemberRemoved):
            self._check_wait(event, node.sim.now_ms)
        super().happened(node, event)
        match event:
            case MembersRemoved():
                for removed in event.removed:
                    self.removed_at[removed.member.member_id] = self.moment(node)
                    self.owners[event.group_id].drop(removed.member.member_id)
            case GenerationBegun():
                for absent in event.absent:
                    self.owners[event.group_id].drop(absent.member_id)
            case StaticMemberReplaced():
                self.removed_at[event.old_member_id] = self.moment(node)
                new_id = event.member.member_id
                said = self.said_at_join(node)
                self.replaced(event.group_id, event.old_member_id, new_id, said)
                self._new_process(node, event.group_id, new_id)
            case ConsumerStaticMemberReplaced():
                self._new_process(node, event.group_id, event.member.member_id)
            case ClassicRejoinRequested() | ClassicJoinAnswered():
                self._asked_ms[type(event), event.member_id] = node.sim.now_ms
            case GroupConverted() | ClassicGroupUpgraded() | ConsumerGroupDowngraded():
                self._converted(node, event)
            case _:
                return

    def _forget_rebalances(self, node: Node) -> None:
        """After a load the members of a downgraded group have what was stored: their targets.

        A write that failed may be on the disk all the same, and be read by a later load.
        """
        for group_id, downgraded in [*self._downgraded.items()]:
            partition = node.coordinator.partition_for(group_id)
            if downgraded.memory == node.memory or partition in node.loading:
                continue
            group = node.coordinator.group(group_id)
            if isinstance(group, ClassicGroup) and group.generation_id == downgraded.generation_id:
                for member_id, target in downgraded.targets.items():
                    self.owners[group_id].confirm(member_id, target)
                del self._downgraded[group_id]

    def _new_process(self, node: Node, group_id: GroupId, member_id: MemberId) -> None:
        """It has said in its JoinGroup what it owns."""
        said = self.said_at_join(node)
        if isinstance(self.request, JoinGroupRequest) and said is not None:
            self.owners[group_id].confirm(member_id, said)

    def said_at_join(self, node: Node) -> Owned | None:
        request = self.request
        if isinstance(request, JoinGroupRequest):
            return None if request.member_id else _owned(node, request)
        return super().said_at_join(node)

    def _check_wait(self, event: ConsumerMemberRemoved, now_ms: int) -> None:
        kind = _WAITS.get(event.cause)
        if kind is not None:
            waited_ms = now_ms - self._asked_ms.get((kind, event.member.member_id), 0)
            self.demand(waited_ms >= REBALANCE_MS, f"waited only {waited_ms} ms: {event}")

    def _converted(
        self, node: Node, event: GroupConverted | ClassicGroupUpgraded | ConsumerGroupDowngraded
    ) -> None:
        """An empty group starts over with its epochs, as in Kafka; one with members goes on."""
        group_id = event.group_id
        if isinstance(event, GroupConverted):
            self.converted_at[group_id] = self.moment(node)
            self._before_conversion[group_id] = (
                self.in_memory.pop(group_id, 0),
                self.answered_epochs.pop(group_id, 0),
            )
            return
        self.conversions += 1
        if isinstance(event, ConsumerGroupDowngraded):
            targets = {
                member.member.member_id: by_id(
                    read_assignment(member.assignment).assigned_partitions, node.topics
                )
                for member in event.members
            }
            self._downgraded[group_id] = Downgraded(node.memory, event.generation_id, targets)
        self.in_memory[group_id], self.answered_epochs[group_id] = self._before_conversion.pop(
            group_id
        )


def _owned(node: Node, request: JoinGroupRequest) -> Owned:
    """What a member says that it owns when it joins."""
    subscription = read_subscription(bytes(request.protocols[0].metadata))
    return by_id(subscription.owned_partitions, node.topics)
