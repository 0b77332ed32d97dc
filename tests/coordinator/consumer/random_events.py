"""Random events: events of one consumer group, in an order in which decisions may yield them."""

from collections.abc import Iterator
from random import Random
from uuid import UUID

from msgspec.structs import replace

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
    OwnedPartitions,
)
from protocol.messages.consumer_group_heartbeat import LEAVE_STATIC_EPOCH
from protocol.names import GroupId, GroupInstanceId, MemberId, TopicName

GROUP = GroupId("g")
AT_MS = 1_600_000_000_000
TOPIC_IDS = tuple(UUID(int=n) for n in (1, 7, 1 << 127))
TOPIC_NAMES = tuple(map(TopicName, ("orders", "audit", "übersicht")))
PATTERNS = ("", "o.*", ".*")
PARTITIONS = 6
MEMBERS_MAX = 5


class RandomEvents:
    """Reads the group that its events are applied to; changes nothing."""

    def __init__(self, seed: int, group: ConsumerGroup) -> None:
        self._random = Random(seed)
        self._group = group
        self._ids = (MemberId(f"m-{number}") for number in range(10_000))

    def next(self) -> events.ConsumerEvent:
        """One more event; all that are stored, and some that are not."""
        choices = [self._joined, self._bumped, self._resolved, self._regex_removed, self._unstored]
        if self._group.members:
            choices += [self._updated, self._targeted, self._targeted]
            choices += [self._moved] * 4
            choices += [self._removed, self._replaced]
        happened = None
        while happened is None:
            happened = self._random.choice(choices)()
        return happened

    def __iter__(self) -> Iterator[events.ConsumerEvent]:
        while True:
            yield self.next()

    # ------------------------------------------------------------ members

    def _joined(self) -> events.ConsumerEvent | None:
        if len(self._group.members) >= MEMBERS_MAX:
            return None
        member = self._metadata(next(self._ids), self._free_instance())
        return events.ConsumerMemberUpdated(GROUP, AT_MS, member, is_new=True)

    def _updated(self) -> events.ConsumerEvent:
        before = self._group.members[self._member_id()].metadata
        member = self._metadata(before.member_id, before.instance_id)
        return events.ConsumerMemberUpdated(GROUP, AT_MS, member, is_new=False)

    def _removed(self) -> events.ConsumerEvent:
        member = self._group.members[self._member_id()]
        return events.ConsumerMemberRemoved(
            GROUP,
            AT_MS,
            member.metadata.identity,
            events.ConsumerRemovalCause.LEFT,
            member.current.member_epoch,
            {},
        )

    def _replaced(self) -> events.ConsumerEvent | None:
        static = [*self._group.static_members.values()]
        if not static:
            return None
        old = self._group.members[self._random.choice(static)]
        return events.ConsumerStaticMemberReplaced(
            GROUP,
            AT_MS,
            old.member_id,
            replace(old.metadata, member_id=next(self._ids)),
            self._group.target_of(old.member_id),
            replace(old.current, member_epoch=0),
        )

    def _metadata(
        self, member_id: MemberId, instance_id: GroupInstanceId | None
    ) -> ConsumerMemberMetadata:
        choose = self._random.choice
        names = self._random.sample(TOPIC_NAMES, self._random.randint(0, 3))
        classic = ClassicMetadata(10_000, (("range", b"\x00\x01"), ("sticky", b"")))
        return ConsumerMemberMetadata(
            member_id,
            instance_id,
            choose([None, "north"]),
            choose(["", "client"]),
            "/10.0.0.1",
            tuple(sorted(names)),
            choose(PATTERNS),
            choose([-1, 60_000]),
            choose([None, "range"]),
            choose([None, None, classic]),
        )

    def _free_instance(self) -> GroupInstanceId | None:
        instance_id = GroupInstanceId(f"i-{self._random.randint(1, 4)}")
        taken = instance_id in self._group.static_members
        return None if taken else self._random.choice([None, instance_id])

    def _member_id(self) -> MemberId:
        return self._random.choice([*self._group.members])

    # ------------------------------------------------------------ epochs and partitions

    def _bumped(self) -> events.ConsumerEvent:
        metadata_hash = self._random.choice([0, 1, -1, -(1 << 63)])
        return events.GroupEpochBumped(GROUP, AT_MS, self._group.epoch + 1, metadata_hash, ())

    def _targeted(self) -> events.ConsumerEvent:
        changed = {
            member_id: self._partitions()
            for member_id in self._group.members
            if self._random.random() < 0.6
        }
        return events.TargetAssignmentUpdated(
            GROUP, AT_MS + self._group.epoch, self._group.epoch, "uniform", changed
        )

    def _moved(self) -> events.ConsumerEvent:
        group, member_id = self._group, self._member_id()
        before = group.members[member_id].current
        epoch = self._random.choice([group.assignment_epoch, group.assignment_epoch, 0])
        if group.members[member_id].metadata.instance_id is not None and epoch == 0:
            epoch = LEAVE_STATIC_EPOCH
        assigned = self._free(self._partitions(), member_id, epoch)
        pending = {
            topic_id: rest
            for topic_id, partitions in self._free(self._partitions(), member_id, epoch).items()
            if (
                rest := {p: e for p, e in partitions.items() if p not in assigned.get(topic_id, ())}
            )
        }
        current = CurrentAssignment(
            epoch,
            before.member_epoch,
            self._random.choice([*ConsumerMemberState]),
            assigned,
            pending,
        )
        return events.CurrentAssignmentUpdated(GROUP, AT_MS, 5, member_id, current)

    def _partitions(self) -> Assignment:
        assigned = {
            topic_id: frozenset(self._random.sample(range(PARTITIONS), self._random.randint(0, 4)))
            for topic_id in TOPIC_IDS
        }
        return {topic_id: partitions for topic_id, partitions in assigned.items() if partitions}

    def _free(self, wanted: Assignment, member_id: MemberId, epoch: int) -> OwnedPartitions:
        """Those that no other member owns."""
        free = {
            topic_id: {
                partition: max(0, epoch - self._random.randint(0, 2))
                for partition in sorted(partitions)
                if self._group.owners.get(topic_id, {}).get(partition) in (None, member_id)
            }
            for topic_id, partitions in wanted.items()
        }
        return {topic_id: partitions for topic_id, partitions in free.items() if partitions}

    # ------------------------------------------------------------ regular expressions, and others

    def _resolved(self) -> events.ConsumerEvent:
        topics = frozenset(self._random.sample(TOPIC_NAMES, self._random.randint(0, 3)))
        pattern = self._random.choice(PATTERNS[1:])
        return events.RegularExpressionResolved(GROUP, AT_MS, pattern, topics, 12)

    def _regex_removed(self) -> events.ConsumerEvent:
        pattern = self._random.choice(PATTERNS[1:])
        return events.RegularExpressionRemoved(GROUP, AT_MS, pattern)

    def _unstored(self) -> events.ConsumerEvent:
        return self._random.choice(
            [events.MetadataRefreshRequested(GROUP, frozenset()), events.MetadataRefreshed(GROUP)]
        )
