"""Consumer group: one group of the consumer group protocol (KIP-848) and its members.

`ConsumerGroup` and `ConsumerMember` are the mutable state. Events (evolve.py) and records
(restore.py) write it, both through the methods here, so a replay gives the same group. Decisions
see it through the protocols of group_view.py. Kafka's counterpart: `ConsumerGroup`,
`ConsumerGroupMember`.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.decide.offset_commit import (
    validate_earlier_commit,
    validate_offset_commit,
    validate_offset_fetch,
    validate_txn_offset_commit,
)
from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
    OwnedPartitions,
)
from coordinator.consumer.records import group_tombstones
from coordinator.consumer.resolved import ResolvedRegularExpression
from coordinator.events import Event
from coordinator.group import GroupType
from coordinator.group_base import Group
from coordinator.group_view import OffsetExpiration
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.messages.consumer_group_heartbeat import LEAVE_EPOCH
from protocol.names import (
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from seams.now import Now
from storage.api import RecordPair

FIRST_GROUP_EPOCH: Final = 1
"""The group epoch of a new group in memory; the first one in a record is 2, as in Kafka 4.3."""

N = TypeVar("N", bound=str)

NO_ASSIGNMENT: Final[Assignment] = {}


class ConsumerMember:
    """One member: two values, and until when it has to be heard."""

    __slots__ = (
        "current",
        "metadata",
        "rebalance_deadline_ms",
        "rejoin_deadline_ms",
        "session_deadline_ms",
        "sync_deadline_ms",
    )

    def __init__(self, metadata: ConsumerMemberMetadata) -> None:
        self.metadata = metadata
        self.current = CurrentAssignment()
        self.session_deadline_ms = 0  # monotonic
        self.rebalance_deadline_ms: int | None = None  # monotonic; it is to give partitions back
        # Of the classic protocol, monotonic: it is to send a JoinGroup, a SyncGroup.
        self.rejoin_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None

    @property
    def member_id(self) -> MemberId:
        return self.metadata.member_id


class ConsumerGroup(Group):
    """One consumer group, with its offsets (`Group`).

    `owners` has for each partition the member that owns it, also while it is to give it back.
    `subscribed_names` counts the members by topic name, `subscribed_regexes` by expression.
    """

    __slots__ = (
        "_stable_by_epoch",
        "assigned_at_ms",
        "assignment_epoch",
        "changed_topics",
        "classic_member_count",
        "computing_epoch",
        "computing_since_ms",
        "epoch",
        "is_refresh_due",
        "members",
        "metadata_hash",
        "owners",
        "regexes",
        "regexes_requested_at_ms",
        "state",
        "state_since_ms",
        "static_members",
        "subscribed_names",
        "subscribed_regexes",
        "targets",
    )

    def __init__(self, group_id: GroupId, state_since_ms: int) -> None:
        super().__init__(group_id)
        self.state_since_ms = state_since_ms  # wall clock; apply.py
        self.state = GroupState.EMPTY
        self.epoch = FIRST_GROUP_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_GROUP_EPOCH
        self.assigned_at_ms = 0  # wall clock; 0: never
        self.computing_epoch: int | None = None  # for which an assignor computes outside
        self.computing_since_ms = 0  # wall clock
        # In memory only, as in Kafka: a load computes the metadata hash with the first heartbeat.
        self.is_refresh_due = True
        self.changed_topics: frozenset[TopicName] = frozenset()  # since the last look
        self.regexes_requested_at_ms: int | None = None  # monotonic; the last resolution
        self.members: dict[MemberId, ConsumerMember] = {}
        self.static_members: dict[GroupInstanceId, MemberId] = {}
        self.targets: dict[MemberId, Assignment] = {}
        self.owners: dict[TopicId, dict[int, MemberId]] = {}
        self.regexes: dict[str, ResolvedRegularExpression] = {}
        self.subscribed_names: dict[TopicName, int] = {}
        self.subscribed_regexes: dict[str, int] = {}
        self.classic_member_count = 0
        # Members in state STABLE by epoch: an assignment epoch has as many reconciled members.
        self._stable_by_epoch: dict[int, int] = {}

    # ------------------------------------------------------------ writing: one method a record type

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Record type 3."""
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self._update_state()

    def put_member(self, metadata: ConsumerMemberMetadata) -> None:
        """Record type 5: a new member, or new metadata of a known one."""
        member_id = metadata.member_id
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ConsumerMember(metadata)
            self._count_stable(member.current, +1)
        else:
            self._forget_metadata(member.metadata)
            member.metadata = metadata
        if metadata.instance_id is not None:
            self.static_members[metadata.instance_id] = member_id
        if metadata.classic is not None:
            self.classic_member_count += 1
        _count(self.subscribed_names, metadata.subscribed_topic_names, +1)
        if metadata.subscribed_topic_regex:
            _count(self.subscribed_regexes, (metadata.subscribed_topic_regex,), +1)
        self._update_state()

    def remove_member(self, member_id: MemberId) -> None:
        """Tombstone of type 5, after those of types 8 and 7."""
        member = self.members.pop(member_id)
        self._release(member_id, member.current)
        self._forget_metadata(member.metadata)
        self.targets.pop(member_id, None)
        self._count_stable(member.current, -1)
        self._update_state()

    def put_target(self, member_id: MemberId, target: Assignment) -> None:
        """Record type 7."""
        self.targets[member_id] = target

    def remove_target(self, member_id: MemberId) -> None:
        """Tombstone of type 7."""
        self.targets.pop(member_id, None)

    def put_assignment_epoch(self, assignment_epoch: int, assigned_at_ms: int) -> None:
        """Record type 6."""
        self.assignment_epoch = assignment_epoch
        self.assigned_at_ms = assigned_at_ms
        self._update_state()

    def put_current(self, member_id: MemberId, current: CurrentAssignment) -> None:
        """Record type 8. The member must be there."""
        member = self.members[member_id]
        self._release(member_id, member.current)
        self._count_stable(member.current, -1)
        self._count_stable(current, +1)
        member.current = current
        for owned in (current.assigned, current.pending_revocation):
            self._own(member_id, owned)
        self._update_state()

    def remove_current(self, member_id: MemberId) -> None:
        """Tombstone of type 8: the member owns nothing, in the epoch of one that has left."""
        member = self.members.get(member_id)
        if member is not None:
            left = CurrentAssignment(LEAVE_EPOCH, LEAVE_EPOCH, member.current.state)
            self.put_current(member_id, left)

    def put_regex(self, pattern: str, resolved: ResolvedRegularExpression) -> None:
        """Record type 16."""
        self.regexes[pattern] = resolved

    def remove_regex(self, pattern: str) -> None:
        """Tombstone of type 16."""
        self.regexes.pop(pattern, None)

    def _forget_metadata(self, metadata: ConsumerMemberMetadata) -> None:
        instance_id = metadata.instance_id
        if instance_id is not None and (
            self.static_members.get(instance_id) == metadata.member_id
        ):  # another member may hold it by now
            del self.static_members[instance_id]
        if metadata.classic is not None:
            self.classic_member_count -= 1
        _count(self.subscribed_names, metadata.subscribed_topic_names, -1)
        if metadata.subscribed_topic_regex:
            _count(self.subscribed_regexes, (metadata.subscribed_topic_regex,), -1)

    def _own(self, member_id: MemberId, owned: OwnedPartitions) -> None:
        for topic_id, partitions in owned.items():
            owners = self.owners.setdefault(topic_id, {})
            for partition in partitions:
                owners[partition] = member_id

    def _release(self, member_id: MemberId, current: CurrentAssignment) -> None:
        for owned in (current.assigned, current.pending_revocation):
            for topic_id, partitions in owned.items():
                owners = self.owners.get(topic_id)
                if owners is None:
                    continue
                for partition in partitions:
                    if owners.get(partition) == member_id:  # a log may name two owners
                        del owners[partition]
                if not owners:
                    del self.owners[topic_id]

    def _count_stable(self, current: CurrentAssignment, change: int) -> None:
        if current.state is ConsumerMemberState.STABLE:
            epoch = current.member_epoch
            self._stable_by_epoch[epoch] = self._stable_by_epoch.get(epoch, 0) + change
            if not self._stable_by_epoch[epoch]:
                del self._stable_by_epoch[epoch]

    def _update_state(self) -> None:
        if not self.members:
            self.state = GroupState.EMPTY
        elif self.epoch > self.assignment_epoch:
            self.state = GroupState.ASSIGNING
        elif self.stable_count(self.assignment_epoch) < len(self.members):
            self.state = GroupState.RECONCILING
        else:
            self.state = GroupState.STABLE

    def mark_dead(self) -> None:
        """The group was deleted or converted."""
        self.state = GroupState.DEAD

    # ------------------------------------------------------------ reading

    def stable_count(self, epoch: int) -> int:
        return self._stable_by_epoch.get(epoch, 0)

    def target_of(self, member_id: MemberId) -> Assignment:
        return self.targets.get(member_id, NO_ASSIGNMENT)

    # ------------------------------------------------------------ for shared code: GroupView

    @property
    def group_type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str | None:
        return PROTOCOL_TYPE

    def is_subscribed_to(self, topic: TopicName) -> bool:
        return topic in self.subscribed_names or any(
            topic in self.regexes[pattern].topics
            for pattern in self.subscribed_regexes
            if pattern in self.regexes
        )

    def validate_offset_commit(
        self,
        member_id: MemberId,
        _group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
        api_version: int,
    ) -> ErrorCode:
        return validate_offset_commit(self, member_id, generation_id, api_version)

    def validate_txn_offset_commit(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
    ) -> ErrorCode:
        return validate_txn_offset_commit(self, member_id, group_instance_id, generation_id)

    def validate_earlier_commit(
        self,
        member_id: MemberId,
        generation_id: GenerationId,
        partitions: Iterable[tuple[TopicId, Iterable[int]]],
    ) -> ErrorCode:
        return validate_earlier_commit(self, member_id, generation_id, partitions)

    def validate_offset_fetch(self, member_id: MemberId | None, member_epoch: int) -> ErrorCode:
        return validate_offset_fetch(self, member_id, member_epoch)

    def commit_accepted(self, _member_id: MemberId, _now: Now) -> Sequence[Event]:
        """A commit does not extend the session: only a heartbeat does."""
        return ()

    def commit_refused(
        self,
        _member_id: MemberId,
        _group_instance_id: GroupInstanceId | None,
        _error_code: ErrorCode,
        _now: Now,
    ) -> Sequence[Event]:
        return ()

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def validate_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def offset_expiration(self) -> OffsetExpiration | None:
        """From each commit; with members, only those of topics they do not subscribe to."""
        return OffsetExpiration(-1)

    def tombstones(self) -> Sequence[RecordPair]:
        return group_tombstones(self)

    # ------------------------------------------------------------ checks

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        owned: dict[tuple[TopicId, int], MemberId] = {}
        names: dict[TopicName, int] = {}
        regexes: dict[str, int] = {}
        stable_by_epoch: dict[int, int] = {}
        for member_id, member in self.members.items():
            metadata, current = member.metadata, member.current
            assert metadata.member_id == member_id
            assert current.member_epoch <= self.epoch, f"{member_id} is ahead of its group"
            _count(names, metadata.subscribed_topic_names, +1)
            if metadata.subscribed_topic_regex:
                _count(regexes, (metadata.subscribed_topic_regex,), +1)
            for part in (current.assigned, current.pending_revocation):
                for topic_id, partitions in part.items():
                    assert partitions, "an empty set of partitions"
                    for partition in partitions:
                        other = owned.setdefault((topic_id, partition), member_id)
                        assert other == member_id, f"{topic_id}-{partition} has two owners"
            if current.state is ConsumerMemberState.STABLE:
                epoch = current.member_epoch
                stable_by_epoch[epoch] = stable_by_epoch.get(epoch, 0) + 1
        held = {
            (topic_id, partition): owner
            for topic_id, owners in self.owners.items()
            for partition, owner in owners.items()
        }
        assert held == owned, "owners is off"
        assert stable_by_epoch == self._stable_by_epoch, "stable members are counted wrong"
        assert names == self.subscribed_names, "subscribed_names is off"
        assert regexes == self.subscribed_regexes, "subscribed_regexes is off"
        for instance_id, member_id in self.static_members.items():
            assert self.members[member_id].metadata.instance_id == instance_id
        classic = sum(m.metadata.classic is not None for m in self.members.values())
        assert classic == self.classic_member_count, "classic_member_count is off"
        assert self.assignment_epoch <= self.epoch, "a target of a later group epoch"
        assert self.targets.keys() <= self.members.keys(), "a target of nobody"


def _count(counts: dict[N, int], names: Iterable[N], change: int) -> None:
    for name in names:
        left = counts.get(name, 0) + change
        if left:
            counts[name] = left
        else:
            del counts[name]
