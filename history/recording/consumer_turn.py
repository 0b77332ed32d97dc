"""Consumer turn: a consumer group as the events of one turn change it, one after the other.

The recorder sees the events of a turn before they are applied. An event is told with the group as
it is then: this is the group before the turn, with what the events so far have changed.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.events import (
    ConsumerEvent,
    ConsumerMemberRemoved,
    ConsumerMemberUpdated,
    ConsumerStaticMemberReplaced,
    CurrentAssignmentUpdated,
    GroupEpochBumped,
    TargetAssignmentUpdated,
)
from coordinator.consumer.group import FIRST_GROUP_EPOCH
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
)
from coordinator.member_identity import MemberIdentity
from protocol.names import GroupId, GroupState, MemberId, TopicId

OwnedByTopic = Mapping[TopicId, AbstractSet[int]]
"""Partitions by topic. A topic without partitions has no entry."""

_NO_OWNERS: Final[Mapping[TopicId, Mapping[int, MemberId]]] = {}

_FIELDS: Final = (
    "subscribed_topic_names",
    "subscribed_topic_regex",
    "server_assignor",
    "rebalance_timeout_ms",
    "rack_id",
    "client_id",
    "client_host",
)


class TurnMember(NamedTuple):
    """A member at this moment. `session_deadline_ms`: monotonic; 0 if it has none yet."""

    metadata: ConsumerMemberMetadata
    current: CurrentAssignment
    session_deadline_ms: int = 0

    @property
    def owner(self) -> str:
        """What stays when a static member comes back with another id."""
        return self.metadata.instance_id or self.metadata.member_id


class ConsumerTurn:
    def __init__(self, group_id: GroupId, group: ConsumerGroupView | None) -> None:
        """`group` is as it was before the turn; None if it was not there, or of another type."""
        self.group_id = group_id
        self.group = group
        self.epoch = FIRST_GROUP_EPOCH if group is None else group.epoch
        self.assignment_epoch = FIRST_GROUP_EPOCH if group is None else group.assignment_epoch
        self.members_before = 0 if group is None else len(group.members)
        self.member_count = self.members_before
        self.from_state = GroupState.EMPTY if group is None else group.state
        self._changed: dict[MemberId, TurnMember | None] = {}
        self._targets: dict[MemberId, Assignment] = {}
        self._identities: dict[MemberId, MemberIdentity] = {}  # of members that are gone

    def member(self, member_id: MemberId) -> TurnMember | None:
        if member_id in self._changed:
            return self._changed[member_id]
        member = None if self.group is None else self.group.members.get(member_id)
        if member is None:
            return None
        return TurnMember(member.metadata, member.current, member.session_deadline_ms)

    def identity(self, member_id: MemberId) -> MemberIdentity:
        """Of a member that is there, or has left in this turn."""
        member = self.member(member_id)
        if member is not None:
            return member.metadata.identity
        return self._identities.get(member_id) or MemberIdentity(member_id)

    @property
    def owners_before(self) -> Mapping[TopicId, Mapping[int, MemberId]]:
        """Which members owned partitions before this turn."""
        return _NO_OWNERS if self.group is None else self.group.owners

    def owner_of(self, member_id: MemberId) -> str:
        """Under which name a member owns: instance id or else member id."""
        if member_id in self._changed:
            changed = self._changed[member_id]
            return member_id if changed is None else changed.owner
        return self.owner_before(member_id)

    def owner_before(self, member_id: MemberId) -> str:
        """The same before this turn."""
        member = None if self.group is None else self.group.members.get(member_id)
        return member_id if member is None else member.metadata.instance_id or member_id

    def target_of(self, member_id: MemberId) -> Assignment:
        if member_id in self._targets:
            return self._targets[member_id]
        return {} if self.group is None else self.group.target_of(member_id)

    def unreconciled(self) -> set[MemberId]:
        """Members that have not reached the target assignment."""
        epoch = self.assignment_epoch
        found = set[MemberId]() if self.group is None else not_reconciled(self.group, epoch)
        for member_id, changed in self._changed.items():
            if changed is None or reconciled(changed.current, epoch):
                found.discard(member_id)
            else:
                found.add(member_id)
        return found

    def apply(self, event: ConsumerEvent) -> None:
        match event:
            case CurrentAssignmentUpdated():
                member = self.member(event.member_id)
                if member is not None:
                    self._changed[event.member_id] = member._replace(current=event.current)
            case ConsumerMemberUpdated():
                self._put(event.member)
            case ConsumerMemberRemoved():
                self._remove(event.member)
            case ConsumerStaticMemberReplaced():
                old = self.member(event.old_member_id)
                if old is not None:
                    self._remove(old.metadata.identity)
                self._put(event.member, event.current)
                self._targets[event.member.member_id] = event.target
            case GroupEpochBumped():
                self.epoch = event.epoch
            case TargetAssignmentUpdated():
                self.assignment_epoch = event.assignment_epoch
                self._targets.update(event.changed)
            case _:
                pass  # what the history does not follow

    def _put(
        self, metadata: ConsumerMemberMetadata, current: CurrentAssignment | None = None
    ) -> None:
        member = self.member(metadata.member_id)
        if member is None:
            self.member_count += 1
            member = TurnMember(metadata, CurrentAssignment())
        self._changed[metadata.member_id] = member._replace(
            metadata=metadata, current=current or member.current
        )

    def _remove(self, member: MemberIdentity) -> None:
        if self.member(member.member_id) is not None:
            self.member_count -= 1
        self._changed[member.member_id] = None
        self._identities[member.member_id] = member


def reconciled(current: CurrentAssignment, assignment_epoch: int) -> bool:
    """Whether a member has reached the target assignment of this epoch."""
    return current.state is ConsumerMemberState.STABLE and current.member_epoch == assignment_epoch


def not_reconciled(group: ConsumerGroupView, epoch: int) -> set[MemberId]:
    """Members that have not reached the target assignment of this epoch.

    Mostly all of them, or none: then nobody looks at thousands of members.
    """
    stable = group.stable_count(epoch)
    if not stable:
        return set(group.members)
    if stable == len(group.members):
        return set()
    return {
        member_id
        for member_id, member in group.members.items()
        if not reconciled(member.current, epoch)
    }


def owned_partitions(current: CurrentAssignment) -> OwnedByTopic:
    """What a member owns, with what it is to give back."""
    owned: dict[TopicId, AbstractSet[int]] = {
        topic_id: epochs.keys() for topic_id, epochs in current.assigned.items()
    }
    for topic_id, epochs in current.pending_revocation.items():
        kept = owned.get(topic_id)
        owned[topic_id] = epochs.keys() if kept is None else kept | epochs.keys()
    return owned


def without(first: OwnedByTopic, second: OwnedByTopic) -> OwnedByTopic:
    """The partitions of `first` that are not in `second`."""
    rest = {}
    for topic_id, partitions in first.items():
        others = second.get(topic_id)
        left = partitions if others is None else partitions - others
        if left:
            rest[topic_id] = left
    return rest


def count_partitions_of(owned: Mapping[TopicId, Collection[int]]) -> int:
    count = 0
    for partitions in owned.values():
        count += len(partitions)
    return count


def changed_fields(
    before: ConsumerMemberMetadata, after: ConsumerMemberMetadata
) -> tuple[str, ...]:
    """What a member says otherwise than before."""
    changed = [name for name in _FIELDS if getattr(before, name) != getattr(after, name)]
    if before.classic != after.classic:
        changed.append("protocol" if None in (before.classic, after.classic) else "classic")
    return tuple(changed)
