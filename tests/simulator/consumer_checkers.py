"""Checkers of consumer groups: the promises of KIP-848 that are kept in every simulated world.

They hear of each request as it is handled, of each answer as it is sent and of each event, and look
at the groups after each step. Of partitions they know what members were told and what members said:
a partition that one member was given goes to another one only when the first has confirmed that it
gave it back, or is not a member any more.
"""

from collections import defaultdict
from collections.abc import Container
from typing import Final

from coordinator.classic.group import ClassicGroup
from coordinator.consumer.events import (
    ConsumerMemberRemoved,
    ConsumerRemovalCause,
    ConsumerStaticMemberReplaced,
    CurrentAssignmentUpdated,
)
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import ConsumerMemberState
from coordinator.events import AnyEvent, GroupDeleted
from coordinator.group_types import AnyGroupView
from protocol.messages import Response
from protocol.messages.consumer_group_heartbeat import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.names import ZERO_TOPIC_ID, ErrorCode, GroupId, MemberId, TopicId, TopicName
from tests.simulator.consumer_clients import REBALANCE_MS, SESSION_MS, Owned, owned_of
from tests.simulator.consumer_history_checker import ConsumerHistory
from tests.simulator.node import Node
from tests.simulator.registers import NOTHING as NOTHING_COMMITTED
from tests.simulator.registers import Registers
from tests.simulator.sim import Broken
from tests.simulator.sockets import Token

REFUSED_FOR_GOOD: Final = frozenset(
    {
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

Place = tuple[TopicId, int]


class GroupOwners:
    """Who was given each partition of a group, by what was answered and asked."""

    def __init__(self) -> None:
        self.holders: dict[Place, MemberId] = {}
        self.last_assigned: dict[
            MemberId, Owned
        ] = {}  # what the last answer with an assignment said

    def give(self, member_id: MemberId, assigned: Owned, said: Owned | None) -> MemberId | None:
        """An answer gives these; returns another member that still has one of them.

        `said` is what the member owned by the request that is answered: it had not begun with the
        rest of what it was told before.
        """
        self.last_assigned[member_id] = assigned
        if said is not None:
            self.confirm(member_id, said)
        for place in assigned:
            holder = self.holders.setdefault(place, member_id)
            if holder != member_id:
                return holder
        return None

    def confirm(self, member_id: MemberId, owned: Owned) -> None:
        """The member says what it owns: the rest may be given away.

        As in Kafka that holds for what it was assigned and has not begun with, too: if the answer
        that takes it away is lost, the member is fenced by its epoch.
        """
        for place in [p for p, holder in self.holders.items() if holder == member_id]:
            if place not in owned:
                del self.holders[place]
        for place in owned & self.last_assigned.get(member_id, frozenset()):
            self.holders.setdefault(place, member_id)

    def drop(self, member_id: MemberId) -> None:
        self.last_assigned.pop(member_id, None)
        for place in [p for p, holder in self.holders.items() if holder == member_id]:
            del self.holders[place]

    def pass_on(self, old_id: MemberId, new_id: MemberId) -> None:
        if old_id in self.last_assigned:
            self.last_assigned[new_id] = self.last_assigned.pop(old_id)
        for place, holder in self.holders.items():
            if holder == old_id:
                self.holders[place] = new_id


class StaticMember:
    """The processes of a static member in their order, and which of them is the member."""

    def __init__(self, group_id: GroupId, first: MemberId) -> None:
        self.group_id = group_id
        self.processes = [first]
        self.member_id = first
        self.said: dict[MemberId, Owned] = {}  # what each owned by its join, until that is answered

    def replace(self, new_id: MemberId, said: Owned | None) -> None:
        del self.processes[self.processes.index(self.member_id) + 1 :]
        self.processes.append(new_id)
        self.member_id = new_id
        if said is not None:
            self.said[new_id] = said


class ConsumerCheckers:
    """`Watcher` of a node whose groups are consumer groups."""

    def __init__(self) -> None:
        self.registers = Registers()
        self.asked: dict[Token, None] = {}  # handled and not yet answered
        self.answered_epochs: dict[GroupId, int] = {}  # the newest that a client heard of
        self.answers_with_assignment = 0
        self.owners: dict[GroupId, GroupOwners] = defaultdict(GroupOwners)
        self.request: object = None  # that is being handled
        self._static: list[StaticMember] = []  # those that were replaced
        self._compared: dict[GroupId, tuple[int, int]] = {}  # with what was loaded into this memory
        self._member_epochs: dict[MemberId, int] = {}
        self.heard_ms: dict[MemberId, int] = {}
        self.removed_at: dict[MemberId, tuple[int, int]] = {}
        self.converted_at: dict[GroupId, tuple[int, int]] = {}  # older: of the former group
        # Since when a member has to give something back; None: it has not. Nothing: not known since
        # the last load.
        self._revoking_ms: dict[MemberId, int | None] = {}
        self.in_memory: dict[GroupId, int] = {}
        self._memory = (0, 0)
        self._history = ConsumerHistory()
        self._history_is_checked = False  # since the last load
        self.epochs: set[tuple[GroupId, int]] = set()  # all that clients heard of
        self._turn = 0
        self._handled = 0  # requests, so far

    def moment(self, node: Node) -> tuple[int, int]:
        """The step, and the request in it: after a standstill many are handled in one step."""
        return (node.sim.steps, self._handled)

    # ------------------------------------------------------------ what is asked

    def handling(self, node: Node, token: Token) -> None:
        self._compare_with_loaded(node)
        self.asked[token] = None
        self.request = token.request
        token.handled_ms = node.sim.now_ms
        self._handled += 1
        token.handled_at = self.moment(node)
        request = token.request
        if isinstance(request, OffsetCommitRequest):
            for topic in request.topics:
                for partition in topic.partitions:
                    topic_id = _topic_id(node, topic.topic_id, topic.name)
                    key = (request.group_id, _register(topic_id, partition.partition_index))
                    self.registers.begin(key, partition.committed_offset, node.sim.steps)
            token.claim_holds = self._may_commit(node, request)
        elif isinstance(request, ConsumerGroupHeartbeatRequest):
            token.claim_holds = self._is_member(node, request)
            if token.claim_holds and request.topic_partitions is not None:
                owned = owned_of(request.topic_partitions)
                self.owners[request.group_id].confirm(request.member_id, owned)
            elif token.claim_holds and request.member_epoch == LEAVE_STATIC_EPOCH:
                # It has closed: what it was to give back is free, the rest stays its own.
                self.owners[request.group_id].confirm(request.member_id, frozenset())

    def _group(self, node: Node, group_id: GroupId) -> ConsumerGroup | None:
        group = node.coordinator.group(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _is_member(self, node: Node, request: ConsumerGroupHeartbeatRequest) -> bool:
        """Whether the member is one, in an epoch that it may name."""
        if node.coordinator.partition_for(request.group_id) in node.loading:
            return True  # nobody can know
        group = self._group(node, request.group_id)
        member = None if group is None else group.members.get(request.member_id)
        if request.member_epoch <= 0:
            return True
        return member is not None and request.member_epoch in (
            member.current.member_epoch,
            member.current.previous_member_epoch,
        )

    def _may_commit(self, node: Node, request: OffsetCommitRequest) -> bool:
        if node.coordinator.partition_for(request.group_id) in node.loading:
            return True
        group = self._group(node, request.group_id)
        member = None if group is None else group.members.get(request.member_id)
        if member is None:
            return False
        current, epoch = member.current, request.generation_id_or_member_epoch
        if epoch == current.member_epoch:
            return True
        owned = (current.assigned, current.pending_revocation)
        return epoch < current.member_epoch and all(
            any(
                epoch
                >= part.get(_topic_id(node, topic.topic_id, topic.name), {}).get(
                    partition.partition_index, 1 << 31
                )
                for part in owned
            )
            for topic in request.topics
            for partition in topic.partitions
        )

    # ------------------------------------------------------------ what is answered

    def replied(self, node: Node, token: Token, response: Response) -> None:
        token.answers += 1
        self.demand(token.answers == 1, f"answered twice: {token.request}")
        self.demand(token.incarnation == node.incarnation, "answered by another process")
        del self.asked[token]
        match response:
            case ConsumerGroupHeartbeatResponse() if response.error_code is ErrorCode.NONE:
                self._heartbeat_answered(token, response)
            case OffsetCommitResponse():
                self._commit_answered(node, token, response)
            case _:
                return

    def _heartbeat_answered(self, token: Token, response: ConsumerGroupHeartbeatResponse) -> None:
        request = token.request
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        group_id, member_id = request.group_id, request.member_id
        self.demand(token.claim_holds, f"a claim that does not hold was accepted: {request}")
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self._member_epochs.pop(member_id, None)
            return
        self.heard_ms[member_id] = max(self.heard_ms.get(member_id, 0), token.handled_ms)
        epoch = response.member_epoch
        before = self._member_epochs.get(member_id, 0) if request.member_epoch else 0
        self.demand(epoch >= before, f"{member_id} falls from epoch {before} to {epoch}")
        self._member_epochs[member_id] = epoch
        self.hear_of_epoch(token, group_id, epoch)
        self.epochs.add((group_id, epoch))
        self.join_answered(group_id, member_id)
        if response.assignment is None:
            return
        self.answers_with_assignment += 1
        if token.handled_at < self.removed_at.get(member_id, (0, 0)):
            return  # the answer is older than the end of its member
        assigned = owned_of(response.assignment.topic_partitions)
        owned = request.topic_partitions
        said = None if owned is None else owned_of(owned)
        holder = self.owners[group_id].give(member_id, assigned, said)
        self.demand(holder is None, f"{member_id} is given what {holder} still has: {assigned}")

    def hear_of_epoch(self, token: Token, group_id: GroupId, epoch: int) -> None:
        if token.handled_at >= self.converted_at.get(group_id, (0, 0)):
            before = self.answered_epochs.get(group_id, 0)
            self.answered_epochs[group_id] = max(before, epoch)

    def _commit_answered(self, node: Node, token: Token, response: OffsetCommitResponse) -> None:
        request = token.request
        assert isinstance(request, OffsetCommitRequest)
        answers = {
            (
                _topic_id(node, topic.topic_id, topic.name),
                partition.partition_index,
            ): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        is_taken = False
        for topic in request.topics:
            for partition in topic.partitions:
                topic_id = _topic_id(node, topic.topic_id, topic.name)
                place = (topic_id, partition.partition_index)
                key = (request.group_id, _register(*place))
                error_code = answers[place]
                if error_code is ErrorCode.NONE:
                    is_taken = True
                    value = partition.committed_offset
                    self.registers.acknowledge(key, value, node.sim.steps)
                elif error_code in REFUSED_FOR_GOOD:
                    self.registers.refuse(key, partition.committed_offset)
        if is_taken:
            self.demand(token.claim_holds, f"a commit without a right to it: {request}")

    # ------------------------------------------------------------ what happens

    def happened(self, node: Node, event: AnyEvent) -> None:
        now_ms = node.sim.now_ms
        match event:
            case CurrentAssignmentUpdated():
                self._current_updated(event, now_ms)
            case ConsumerMemberRemoved():
                self.removed_at[event.member.member_id] = self.moment(node)
                self._removed(event, now_ms)
            case ConsumerStaticMemberReplaced():
                old_id, new_id = event.old_member_id, event.member.member_id
                self.removed_at[old_id] = self.moment(node)
                self.replaced(event.group_id, old_id, new_id, self.said_at_join(node))
                self.heard_ms[new_id] = now_ms
            case GroupDeleted():
                self.owners.pop(event.group_id, None)
            case _:
                return

    def replaced(
        self,
        group_id: GroupId,
        old_id: MemberId,
        new_id: MemberId,
        said: Owned | None,
    ) -> None:
        """A process took the place of another one, with what that one had; it said what it owns."""
        static = next(
            (s for s in self._static if s.group_id == group_id and s.member_id == old_id), None
        )
        if static is None:
            static = StaticMember(group_id, old_id)
            self._static.append(static)
        static.replace(new_id, said)
        self.owners[group_id].pass_on(old_id, new_id)

    def join_answered(self, group_id: GroupId, member_id: MemberId) -> None:
        """From now on a process has what it is given, not only what it said."""
        for static in self._static:
            if static.group_id == group_id:
                static.said.pop(member_id, None)

    def said_at_join(self, node: Node) -> Owned | None:
        """What a new process owns by the request that is being handled."""
        request = self.request
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return None
        return None if request.topic_partitions is None else owned_of(request.topic_partitions)

    def _compare_with_loaded(self, node: Node) -> None:
        """After a load: who is a member by what was stored.

        A crash may undo what happened before it is stored; and what was undone since its write had
        failed may be on the disk all the same, and be read by a later load.
        """
        for group_id, owners in self.owners.items():
            if self._compared.get(group_id) == node.memory:
                continue
            if node.coordinator.partition_for(group_id) in node.loading:
                continue
            self._compared[group_id] = node.memory
            group = node.coordinator.group(group_id)
            members = () if group is None else group.members
            for static in self._static:
                if static.group_id == group_id:
                    _find_process(static, owners, members)
            for member_id in {*owners.holders.values(), *owners.last_assigned}:
                if member_id in self.removed_at and member_id not in members:
                    owners.drop(member_id)

    def _current_updated(self, event: CurrentAssignmentUpdated, now_ms: int) -> None:
        member_id = event.member_id
        if event.current.state is not ConsumerMemberState.UNREVOKED_PARTITIONS:
            self._revoking_ms[member_id] = None
        elif self._revoking_ms.get(member_id) is None:
            self._revoking_ms[member_id] = now_ms

    def _removed(self, event: ConsumerMemberRemoved, now_ms: int) -> None:
        """Nobody is removed before the time that it was promised."""
        member_id = event.member.member_id
        self.owners[event.group_id].drop(member_id)
        match event.cause:
            case ConsumerRemovalCause.SESSION_EXPIRED:
                silent_ms = now_ms - self.heard_ms.get(member_id, 0)
                self.demand(
                    silent_ms >= SESSION_MS, f"{member_id} was removed after {silent_ms} ms"
                )
            case ConsumerRemovalCause.REBALANCE_TIMED_OUT:
                since_ms = self._revoking_ms.get(member_id, 0)
                if since_ms is None:
                    raise Broken(f"{member_id} was removed and had nothing to give back")
                waited_ms = now_ms - since_ms
                self.demand(
                    waited_ms >= REBALANCE_MS,
                    f"waited only {waited_ms} ms for the partitions of {member_id}",
                )
            case _:
                pass
        self._revoking_ms.pop(member_id, None)

    # ------------------------------------------------------------ what there is

    def cleaning(self, node: Node, partition: int) -> None:
        """A log is about to lose what newer records have replaced."""
        self._history.read(node)

    def check_step(self, node: Node | None) -> None:
        """After each step: one group at a time, all of them within a few steps."""
        if node is None or not node.alive:
            return
        if node.memory != self._memory:
            self._memory = node.memory
            self.in_memory.clear()
            self._history_is_checked = False
            self._revoking_ms.clear()  # a load begins the wait again
            self.asked = {t: None for t in self.asked if t.incarnation == node.incarnation}
        if node.loading:
            return
        if not self._history_is_checked and not node.journal_failed:
            self._history_is_checked = True
            self._history.check(node, self.epochs)
        groups = list(node.coordinator.groups())
        if not groups:
            return
        self._turn += 1
        self._check_group(node, groups[self._turn % len(groups)])
        if self._turn % 8 == 0:
            for purgatory in node.coordinator.purgatories():
                purgatory.check()

    def check_all(self, node: Node) -> None:
        self._history.check(node, self.epochs)
        self._history.check_ended()
        for group in node.coordinator.groups():
            self._check_group(node, group)
        for purgatory in node.coordinator.purgatories():
            purgatory.check()
        found: dict[tuple[GroupId, int], int] = {}
        for group in node.coordinator.groups():
            found |= _committed(node, group)
        for key, register in self.registers.items():
            register.judge(found.get(key, NOTHING_COMMITTED))

    def _check_group(self, node: Node, group: AnyGroupView) -> None:
        assert isinstance(group, ConsumerGroup | ClassicGroup)
        group.check()
        assert not group.lock.held
        group_id = group.group_id
        epoch = group.epoch if isinstance(group, ConsumerGroup) else group.generation_id
        before = self.in_memory.get(group_id, self.answered_epochs.get(group_id, 0))
        self.demand(epoch >= before, f"epoch {epoch} of {group_id} follows {before}")
        self.in_memory[group_id] = epoch
        committed = _committed(node, group)
        for key, value in committed.items():
            self.registers.judge(key, value)
        for key, register in self.registers.items():
            if key[0] == group_id and key not in committed:
                register.judge(NOTHING_COMMITTED)

    def demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Broken(otherwise)


def _committed(node: Node, group: AnyGroupView) -> dict[tuple[GroupId, int], int]:
    """The offsets of a group by their registers."""
    return {
        (group.group_id, _register(node.topics.id_of(name), partition)): offset.committed_offset
        for name, topic in group.offsets.items()
        for partition, offset in topic.items()
    }


def _find_process(static: StaticMember, owners: GroupOwners, members: Container[MemberId]) -> None:
    """Which process of a static member was loaded; it has what the one before had, or less.

    Its join may have been stored although it was not answered, as the write seemed to fail.
    """
    found = next((p for p in (static.member_id, *static.processes) if p in members), None)
    if found is None:
        return
    if found != static.member_id:
        owners.pass_on(static.member_id, found)
        static.member_id = found
    said = static.said.get(found)
    if said is not None:
        owners.confirm(found, said)


def _topic_id(node: Node, topic_id: TopicId, name: TopicName) -> TopicId:
    """Of a topic that a commit names by one or the other."""
    return topic_id if topic_id != ZERO_TOPIC_ID else node.topics.id_of(name)


def _register(topic_id: TopicId, partition: int) -> int:
    """A partition of a topic as a number, as the registers take it."""
    return (topic_id.int << 16) + partition
