"""Given: a world with a consumer group whose records are in its log already."""

from collections.abc import Mapping, Sequence

from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
)
from coordinator.consumer.records import (
    current_assignment_record,
    group_epoch_record,
    member_metadata_record,
    target_member_record,
    target_metadata_record,
)
from coordinator.settings import GroupSettings
from protocol.names import GroupId, GroupInstanceId, MemberId, TopicName
from storage.api import RecordPair
from tests.world import World

GROUP = GroupId("g")
T = TopicName("t")
ALICE, BOB = MemberId("alice"), MemberId("bob")
CLASSIC = ClassicMetadata(10_000, (("range", b""),))

Epochs = Mapping[int, int]
"""Partitions of topic `t`, with their assignment epochs."""


class Member:
    """What the log says of a member."""

    def __init__(
        self,
        member_id: MemberId,
        epoch: int,
        assigned: Epochs,
        pending: Epochs | None = None,
        *,
        state: ConsumerMemberState = ConsumerMemberState.STABLE,
        instance_id: str | None = None,
        classic: ClassicMetadata | None = None,
        assignor: str | None = None,
        names: Sequence[TopicName] = (T,),
        target: Sequence[int] | None = None,
    ) -> None:
        self.metadata = ConsumerMemberMetadata(
            member_id,
            None if instance_id is None else GroupInstanceId(instance_id),
            "north",
            "client",
            "/10.0.0.1",
            tuple(names),
            "",
            60_000,
            assignor,
            classic,
        )
        self.epoch, self.state = epoch, state
        self.assigned, self.pending = assigned, pending or {}
        self.target = assigned.keys() if target is None else target


def world_of(*members: Member, epoch: int = 5, settings: GroupSettings | None = None) -> World:
    """A world that was started with the group of these members in its log; see `Topics`."""
    world = World(settings)
    append_group(world, *members, epoch=epoch)
    world.crash()
    return world


def append_group(world: World, *members: Member, epoch: int = 5) -> None:
    topic_id = world.topics.topic_id(T)
    assert topic_id is not None
    records: list[RecordPair] = [
        member_metadata_record(GROUP, member.metadata) for member in members
    ]
    records.append(group_epoch_record(GROUP, epoch, 77))
    for member in members:
        target = {topic_id: frozenset(member.target)} if member.target else {}
        records.append(target_member_record(GROUP, member.metadata.member_id, target))
    records.append(target_metadata_record(GROUP, epoch, world.now.wall_ms))
    for member in members:
        current = CurrentAssignment(
            member.epoch,
            member.epoch - 1,
            member.state,
            {topic_id: member.assigned} if member.assigned else {},
            {topic_id: member.pending} if member.pending else {},
        )
        records.append(current_assignment_record(GROUP, member.metadata.member_id, current))
    world.log.append(records, world.now.wall_ms)
    world.log.store()


def group_of(world: World) -> ConsumerGroup:
    group = world.coordinator.group(GROUP)
    assert isinstance(group, ConsumerGroup)
    return group
