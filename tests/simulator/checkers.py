"""Checkers: the promises that are kept in every simulated world, checked after each step.

The checkers hear of each request as it is handled, of each answer as it is sent and of each event,
and look at the groups after each step. They know nothing of how the coordinator works: what they
know is what was asked and what was answered.
"""

from collections import defaultdict
from typing import Final

from coordinator.classic.events import GenerationBegun, MembersRemoved, RebalanceBegun, RemovalCause
from coordinator.classic.group import ClassicGroup
from coordinator.events import AnyEvent
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.names import (
    NO_GENERATION,
    ErrorCode,
    GenerationId,
    GroupId,
    MemberId,
)
from tests.simulator.clients import PARTITIONS, REBALANCE_MS, TOPIC, decode_assignment
from tests.simulator.history_checker import check_history, stored_generations
from tests.simulator.node import Node
from tests.simulator.registers import Registers
from tests.simulator.sim import Broken
from tests.simulator.sockets import Token

REFUSED_FOR_GOOD: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors that say that a commit was not taken; after others the client cannot know."""

Generation = tuple[GroupId, GenerationId]


class Checkers:
    def __init__(self) -> None:
        self.registers = Registers()
        self.asked: dict[Token, None] = {}  # handled and not yet answered
        self._identities: dict[MemberId, str] = {}  # a static member's ids are one member
        self._listed: dict[Generation, frozenset[str]] = {}
        self._leaders: dict[Generation, str] = {}
        self._owners: dict[Generation, dict[int, str]] = defaultdict(dict)
        # The newest generation of each group in an answer to a client.
        self.answered_generations: dict[GroupId, GenerationId] = {}
        self.generations: set[Generation] = set()  # all that clients heard of
        self._cleaned: set[Generation] = set()  # all that a log had when it was cleaned
        self._in_memory: dict[GroupId, GenerationId] = {}
        self._memory = (0, 0)
        self._history_is_checked = False  # since the last load
        self._sessions: dict[MemberId, int] = {}
        self._heard_ms: dict[MemberId, int] = {}
        self._begun_ms: dict[Generation, int] = {}
        self._begun_step: dict[Generation, int] = {}
        self._rebalance_ms: dict[GroupId, int] = {}
        self._turn = 0

    # ------------------------------------------------------------ what is asked

    def handling(self, node: Node, token: Token) -> None:
        self.asked[token] = None
        token.handled_ms = node.sim.now_ms
        token.handled_at = (node.sim.steps, 0)
        request = token.request
        if isinstance(request, OffsetCommitRequest):
            for topic in request.topics:
                for partition in topic.partitions:
                    key = (request.group_id, partition.partition_index)
                    self.registers.begin(key, partition.committed_offset, node.sim.steps)
            token.claim_holds = request.generation_id_or_member_epoch == NO_GENERATION or (
                self._holds(
                    node,
                    request.group_id,
                    request.member_id,
                    request.generation_id_or_member_epoch,
                )
            )
        elif isinstance(request, HeartbeatRequest | SyncGroupRequest):
            token.claim_holds = self._holds(
                node, request.group_id, request.member_id, request.generation_id
            )

    def _holds(
        self, node: Node, group_id: GroupId, member_id: MemberId, generation_id: GenerationId
    ) -> bool:
        """Whether this member is of this generation, and that is the group's, right now."""
        if node.coordinator.partition_for(group_id) in node.loading:
            return True  # nobody can know; as in Kafka a heartbeat is not troubled with that
        group = node.coordinator.group(group_id)
        return (
            group is not None
            and member_id in group.members
            and group.generation_id == generation_id
        )

    # ------------------------------------------------------------ what is answered

    def replied(self, node: Node, token: Token, response: Response) -> None:
        token.answers += 1
        self._demand(token.answers == 1, f"answered twice: {token.request}")
        self._demand(token.incarnation == node.incarnation, "answered by another process")
        del self.asked[token]
        match response:
            case HeartbeatResponse():
                self._heartbeat_answered(token, response)
            case JoinGroupResponse():
                self._join_answered(node, token, response)
            case SyncGroupResponse():
                self._sync_answered(token, response)
            case OffsetCommitResponse():
                self._commit_answered(node, token, response)
            case OffsetFetchResponse() if response.error_code is ErrorCode.NONE:
                self._fetch_answered(node, token, response)
            case _:
                return

    def _heartbeat_answered(self, token: Token, response: HeartbeatResponse) -> None:
        request = token.request
        assert isinstance(request, HeartbeatRequest)
        if response.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._accepted(token)
            self._hear(request.member_id, token.handled_ms)

    def _accepted(self, token: Token) -> None:
        self._demand(token.claim_holds, f"a claim that does not hold was accepted: {token.request}")

    def _hear(self, member_id: MemberId, at_ms: int) -> None:
        self._heard_ms[member_id] = max(self._heard_ms.get(member_id, 0), at_ms)

    def _join_answered(self, node: Node, token: Token, response: JoinGroupResponse) -> None:
        request = token.request
        assert isinstance(request, JoinGroupRequest)
        if response.error_code is not ErrorCode.NONE:
            return
        member_id = response.member_id
        identity = request.group_instance_id or member_id
        self._identities[member_id] = identity
        self._sessions[member_id] = request.session_timeout_ms
        generation = (request.group_id, response.generation_id)
        if not request.member_id or token.handled_at[0] <= self._begun_step.get(generation, 0):
            # It took part in what began the generation. As in Kafka an answer that is merely given
            # again does not prolong the session.
            self._hear(member_id, token.handled_ms)
        newest = self.answered_generations.get(request.group_id, GenerationId(0))
        self._demand(response.generation_id >= newest, f"{generation} after {newest} was told")
        if not node.settings.generation_records:
            return  # as in Kafka, a generation that nobody has synced may be given out again
        self.answered_generations[request.group_id] = response.generation_id
        self.generations.add(generation)
        listed = frozenset(m.group_instance_id or m.member_id for m in response.members)
        if listed:
            before = self._listed.setdefault(generation, listed)
            self._demand(before == listed, f"{generation} has had {before} and now has {listed}")
            if response.leader == member_id:
                leader = self._leaders.setdefault(generation, identity)
                self._demand(leader == identity, f"{generation} has two leaders")
        if generation in self._listed:
            self._demand(
                identity in self._listed[generation], f"{identity} was not listed in {generation}"
            )

    def _sync_answered(self, token: Token, response: SyncGroupResponse) -> None:
        request = token.request
        assert isinstance(request, SyncGroupRequest)
        if response.error_code is not ErrorCode.NONE:
            return
        # As in Kafka it does not prolong the session: only the answer to a parked one does.
        self._accepted(token)
        generation = (request.group_id, request.generation_id)
        newest = self.answered_generations.get(request.group_id, GenerationId(0))
        self.answered_generations[request.group_id] = max(newest, request.generation_id)
        if not response.assignment:
            return
        assigned_in, partitions = decode_assignment(response.assignment)
        self._demand(
            assigned_in == request.generation_id,
            f"the assignment of generation {assigned_in} was handed out in {generation}",
        )
        identity = request.group_instance_id or request.member_id
        owners = self._owners[generation]
        for partition in partitions:
            owner = owners.setdefault(partition, identity)
            self._demand(
                owner == identity,
                f"partition {partition} has two owners in {generation}: {owner} and {identity}",
            )

    def _commit_answered(self, node: Node, token: Token, response: OffsetCommitResponse) -> None:
        request = token.request
        assert isinstance(request, OffsetCommitRequest)
        taken = False
        for asked, answered in zip(
            request.topics[0].partitions, response.topics[0].partitions, strict=True
        ):
            key = (request.group_id, asked.partition_index)
            if answered.error_code is ErrorCode.NONE:
                taken = True
                self.registers.acknowledge(key, asked.committed_offset, node.sim.steps)
            elif answered.error_code in REFUSED_FOR_GOOD:
                self.registers.refuse(key, asked.committed_offset)
        if taken:
            self._accepted(token)
            self._hear(request.member_id, token.handled_ms)

    def _fetch_answered(self, node: Node, token: Token, response: OffsetFetchResponse) -> None:
        for topic in response.topics:
            for found in topic.partitions:
                key = (token.request.group_id, found.partition_index)  # type: ignore[union-attr]
                self.registers.judge(key, found.committed_offset)
                self.registers.observe(key, found.committed_offset, node.sim.steps)

    # ------------------------------------------------------------ what happens

    def happened(self, node: Node, event: AnyEvent) -> None:
        now_ms = node.sim.now_ms
        match event:
            case RebalanceBegun():
                self._rebalance_ms[event.group_id] = now_ms
            case GenerationBegun():
                generation = (event.group_id, event.generation_id)
                self._begun_ms[generation] = now_ms
                self._begun_step[generation] = node.sim.steps
            case MembersRemoved():
                self._removed(event, now_ms)
            case _:
                return

    def _removed(self, event: MembersRemoved, now_ms: int) -> None:
        """Nobody is put out before the time that it was promised."""
        match event.cause:
            case RemovalCause.SESSION_EXPIRED:
                for removed in event.removed:
                    member_id = removed.member.member_id
                    silent_ms = now_ms - self._heard_ms.get(member_id, 0)
                    session_ms = self._sessions.get(member_id, 0)
                    self._demand(
                        silent_ms >= session_ms,
                        f"{member_id} was put out after {silent_ms} of {session_ms} ms",
                    )
            case RemovalCause.DID_NOT_SYNC:
                begun_ms = self._begun_ms.get((event.group_id, event.generation_id), 0)
                self._waited(now_ms - begun_ms, f"for the syncs of {event.generation_id}")
            case RemovalCause.DID_NOT_REJOIN:
                begun_ms = self._rebalance_ms.get(event.group_id, 0)
                self._waited(now_ms - begun_ms, f"for the joins of {event.group_id}")
            case _:
                return

    def _waited(self, waited_ms: int, what: str) -> None:
        self._demand(waited_ms >= REBALANCE_MS, f"waited only {waited_ms} ms {what}")

    # ------------------------------------------------------------ what there is

    def cleaning(self, node: Node, partition: int) -> None:
        """A log is about to lose what newer records have replaced."""
        self._cleaned.update(stored_generations(node, partition))

    def check_step(self, node: Node | None) -> None:
        """After each step: one group at a time, all of them within a few steps."""
        if node is None or not node.alive:
            return
        if node.memory != self._memory:
            self._memory = node.memory
            self._in_memory.clear()
            self._history_is_checked = False
            self.asked = {t: None for t in self.asked if t.incarnation == node.incarnation}
        if node.loading:
            return
        if not self._history_is_checked and not node.journal_failed:
            self._history_is_checked = True
            check_history(node, self.generations, self._cleaned)
        groups = list(node.coordinator.groups())
        if not groups:
            return
        self._turn += 1
        view = groups[self._turn % len(groups)]
        assert isinstance(view, ClassicGroup)
        self._check_group(view)
        if self._turn % 8 == 0:
            for purgatory in node.coordinator.purgatories():
                purgatory.check()

    def check_all(self, node: Node) -> None:
        check_history(node, self.generations, self._cleaned)
        for view in node.coordinator.groups():
            assert isinstance(view, ClassicGroup)
            self._check_group(view)
        for purgatory in node.coordinator.purgatories():
            purgatory.check()
        for (group_id, partition), committed in self.registers.items():
            group = node.coordinator.group(group_id)
            offsets = {} if group is None else group.offsets.get(TOPIC, {})
            found = offsets.get(partition)
            committed.judge(-1 if found is None else found.committed_offset)

    def _check_group(self, group: ClassicGroup) -> None:
        group.check()
        assert not group.lock.held
        before = self._in_memory.get(
            group.group_id, self.answered_generations.get(group.group_id, 0)
        )
        self._demand(
            group.generation_id >= before,
            f"generation {group.generation_id} of {group.group_id} follows {before}",
        )
        self._in_memory[group.group_id] = group.generation_id
        offsets = group.offsets.get(TOPIC, {})
        for partition in range(PARTITIONS):
            found = offsets.get(partition)
            key = (group.group_id, partition)
            self.registers.judge(key, -1 if found is None else found.committed_offset)

    def _demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Broken(otherwise)
