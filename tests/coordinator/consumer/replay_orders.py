"""Replay orders: records of consumer groups in orders that a log rarely has, a case each.

golden/make_replay_orders.py writes them into the log of a real Kafka and records what it makes of
them; test_replay_orders.py compares a load of ours with that.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
)
from coordinator.consumer.records import (
    current_assignment_record,
    group_epoch_record,
    member_metadata_record,
    member_tombstones,
    regular_expression_record,
    target_member_record,
    target_metadata_record,
)
from coordinator.record_schemas import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    GroupKey,
    GroupMemberKey,
    TargetAssignmentMetadataValue,
    TopicPartitionsWithEpochs,
)
from coordinator.records import group_tombstone
from protocol.names import GroupId, GroupInstanceId, MemberId, TopicName
from protocol.schema import Message
from seams.java_hash import partition_of
from storage.api import Record
from tests.coordinator.golden.samples import record_of
from tests.transfer.given import classic_group, offset_record

RECORDED = Path(__file__).parent / "golden" / "replay_orders.json"
TOPIC = TopicName("orders")
OFFSETS_PARTITIONS = 50
M1, M2 = MemberId("m-1"), MemberId("m-2")
AT_MS = 1_700_000_000_000


class Case:
    """A group in a partition of the offsets topic that no other case has, since loads may fail."""

    def __init__(self, group_id: str, topic_id: UUID) -> None:
        self.group, self.topic_id = GroupId(group_id), topic_id
        self.legacy = record_of(4, GroupKey(group_id), 0, ConsumerGroupPartitionMetadataValue())
        self.classic = classic_group(group_id)
        self.classic_ended = group_tombstone(self.group)
        self.offset = offset_record(group_id, TOPIC, 0, 1)
        self.member_ended = member_tombstones(self.group, M1)
        self.first = (
            self.member(), self.epoch(), self.target(0, 1), self.assigned(), self.owns(0, 1),
        )  # fmt: skip

    def member(self, member_id: MemberId = M1, instance: str | None = None) -> Record:
        metadata = ConsumerMemberMetadata(
            member_id,
            None if instance is None else GroupInstanceId(instance),
            client_id="c",
            client_host="/h",
            subscribed_topic_names=(TOPIC,),
            rebalance_timeout_ms=60_000,
        )
        return member_metadata_record(self.group, metadata)

    def epoch(self, epoch: int = 5) -> Record:
        return group_epoch_record(self.group, epoch, 9)

    def target(self, *partitions: int, member_id: MemberId = M1) -> Record:
        return target_member_record(self.group, member_id, {self.topic_id: frozenset(partitions)})

    def assigned(self, epoch: int = 5) -> Record:
        return target_metadata_record(self.group, epoch, AT_MS)

    def owns(
        self,
        *partitions: int,
        epoch: int = 5,
        member_id: MemberId = M1,
        pending: Sequence[int] = (),
        state: ConsumerMemberState = ConsumerMemberState.STABLE,
    ) -> Record:
        owned = {self.topic_id: dict.fromkeys(partitions, epoch)} if partitions else {}
        revoked = {self.topic_id: dict.fromkeys(pending, epoch)} if pending else {}
        current = CurrentAssignment(epoch, epoch - 1, state, owned, revoked)
        return current_assignment_record(self.group, member_id, current)

    def regex(self) -> Record:
        return regular_expression_record(self.group, "o.*", [TOPIC], 1, AT_MS)

    def of_group(self, kind: int, value: Message) -> Record:
        return record_of(kind, GroupKey(self.group), 0, value)

    def of_member(self, kind: int, value: Message) -> Record:
        return record_of(kind, GroupMemberKey(self.group, M1), 0, value)

    def without_epochs(self) -> Record:
        topic = TopicPartitionsWithEpochs(self.topic_id, [0, 1], None)
        return self.of_member(8, ConsumerGroupCurrentMemberAssignmentValue(5, 4, 0, [topic], []))


NewCase = Callable[[str], Case]
AddCase = Callable[..., None]  # a case and its records


def ended(record: Record) -> Record:
    """Its tombstone."""
    return Record(record[0], None)


def replay_orders(topic_id: UUID) -> dict[GroupId, list[Record]]:
    """The records of each case, in their order, by a group that is named for it."""
    found: dict[GroupId, list[Record]] = {}
    taken: set[int] = set()

    def case(name: str) -> Case:
        """The least number that gives the group a free partition is part of its id."""
        for number in range(OFFSETS_PARTITIONS**2):
            group_id = GroupId(f"{name} {number}")
            partition = partition_of(group_id, OFFSETS_PARTITIONS)
            if partition not in taken:
                taken.add(partition)
                return Case(group_id, topic_id)
        raise AssertionError("more cases than partitions")

    def add(given: Case, *records: Record) -> None:
        found[given.group] = [*records]

    _members(case, add)
    _group_ends(case, add)
    _types(case, add)
    _owners(case, add)
    _values(case, add)
    return found


def _members(case: NewCase, add: AddCase) -> None:
    add(g := case("as written"), *g.first)
    add(g := case("member last"), *g.first[1:], g.first[0])
    add(g := case("no member"), *g.first[1:])
    add(g := case("reversed"), *reversed(g.first))
    add(g := case("ended member"), *g.first, *g.member_ended)
    add(g := case("type 5 ended"), *g.first, ended(g.member()))
    add(g := case("types 8 and 5 ended"), *g.first, ended(g.owns()), ended(g.member()))
    add(g := case("types 7 and 5 ended"), *g.first, ended(g.target(0)), ended(g.member()))
    add(g := case("type 8 ended"), *g.first, ended(g.owns()))
    add(g := case("type 7 ended"), *g.first, ended(g.target(0)))
    add(g := case("member without type 8 ended"), g.member(), ended(g.member()))
    add(g := case("unknown member ended"), *g.first, ended(g.member(M2)))
    add(g := case("target of nobody"), *g.first, g.target(2, member_id=M2))


def _group_ends(case: NewCase, add: AddCase) -> None:
    add(g := case("group with members ended"), *g.first, ended(g.epoch()))
    add(g := case("type 6 with targets ended"), *g.first, ended(g.assigned()))
    add(g := case("group with type 6 ended"), *g.first, *g.member_ended, ended(g.epoch()))
    g = case("ended group")
    tombstones = (*g.member_ended, ended(g.assigned()), ended(g.epoch()))
    add(g, *g.first, *tombstones)
    g = case("tombstones only")
    add(g, *g.member_ended, ended(g.assigned()), ended(g.epoch()))
    add(g := case("epochs only"), g.epoch(9), g.assigned(7))


def _types(case: NewCase, add: AddCase) -> None:
    add(g := case("offset first"), g.offset, *g.first)
    add(g := case("type 3 ended after offset"), g.offset, ended(g.epoch()))
    add(g := case("type 8 ended after offset"), g.offset, ended(g.owns()))
    add(g := case("type 16 ended after offset"), g.offset, ended(g.regex()))
    add(g := case("classic first"), g.classic, *g.first)
    add(g := case("ended classic first"), g.classic, g.classic_ended, *g.first)
    add(g := case("type 8 ended after classic"), g.classic, ended(g.owns()))
    add(g := case("classic after"), *g.first, g.classic)
    add(g := case("classic ended after"), *g.first, g.classic_ended)


def _owners(case: NewCase, add: AddCase) -> None:
    add(g := case("two owners"), *g.first, g.member(M2), g.owns(1, member_id=M2))
    g = case("later owner")
    add(g, *g.first, g.member(M2), g.epoch(6), g.owns(1, epoch=6, member_id=M2))
    g = case("later owner and metadata")
    add(g, *g.first, g.member(M2), g.epoch(6), g.owns(1, epoch=6, member_id=M2), g.member())
    g = case("later owner that ended")
    later = (g.member(M2), g.owns(1, epoch=6, member_id=M2), *member_tombstones(g.group, M2))
    add(g, *g.first, *later, g.owns(0, 1, epoch=6))
    add(g := case("assigned and revoked"), *g.first, g.owns(0, pending=(0,)))
    g = case("revoking")
    state = ConsumerMemberState.UNREVOKED_PARTITIONS
    add(g, *g.first, g.epoch(6), g.assigned(6), g.owns(0, pending=(1,), state=state))
    add(g := case("left for a while"), *g.first, g.member(M1, "i"), g.owns(0, 1, epoch=-2))


def _values(case: NewCase, add: AddCase) -> None:
    unknown_state = ConsumerGroupCurrentMemberAssignmentValue(5, 4, 9, [], [])
    add(g := case("unknown state"), *g.first, g.of_member(8, unknown_state))
    add(g := case("no assignment epochs"), *g.first, g.without_epochs())
    without_tag = ConsumerGroupMemberMetadataValue(None, None, "c", "/h", [TOPIC], "", 5, None)
    add(g := case("no tag"), *g.first, g.of_member(5, without_tag))
    add(g := case("type 4"), *g.first, g.legacy)
    add(g := case("type 4 only"), g.legacy)
    add(g := case("type 16 only"), g.regex())
    negative = TargetAssignmentMetadataValue(-2, 0)
    add(g := case("negative assignment epoch"), *g.first, g.of_group(6, negative))
    no_time = TargetAssignmentMetadataValue(5, -1)
    add(g := case("negative assignment time"), *g.first, g.of_group(6, no_time))
