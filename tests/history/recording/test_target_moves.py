"""Target moves: what is counted in pieces is what one sees by looking at each partition."""

import random
from uuid import UUID

import pytest

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.events import TargetAssignmentUpdated
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
)
from history.entry_values import PartitionMove
from history.index import HistoryIndex, IndexLimits
from history.recording.consumer_state import ConsumerRecordingState
from history.recording.consumer_turn import ConsumerTurn, owned_partitions, reconciled, without
from history.recording.record_limits import RecordLimits
from history.recording.released_partitions import ReleasedPartitions
from history.recording.target_moves import TARGETS_READ_MAX, target_moves
from protocol.names import GroupId, GroupInstanceId, MemberId, TopicId

GROUP = GroupId("g")
TOPICS = [UUID(int=number) for number in (7, 3, 9)]
EPOCH = 5


class Drawn:
    """A group with random members, owners, released partitions and targets."""

    def __init__(self, seed: int) -> None:
        chance = self._chance = random.Random(seed)
        self.group = ConsumerGroup(GROUP, 0)
        self.released = ReleasedPartitions()
        self.last_owners: dict[tuple[TopicId, int], str] = {}
        free = [(topic, index) for topic in TOPICS for index in range(6)]
        chance.shuffle(free)
        for number in range(chance.randrange(1, 8)):
            self._add_member(MemberId(f"m{number}"), [free.pop() for _ in range(2)])
        for topic, index in free:
            owner = chance.choice(("i0", "m1", "gone", None))
            if owner is not None:
                self.released.release({topic: {index}}, owner, 0)
                self.last_owners[topic, index] = owner

    def _add_member(self, member_id: MemberId, owned: list[tuple[TopicId, int]]) -> None:
        chance = self._chance
        instance = GroupInstanceId(f"i{member_id[1:]}") if chance.random() < 0.5 else None
        self.group.put_member(ConsumerMemberMetadata(member_id, instance))
        assigned: dict[TopicId, dict[int, int]] = {}
        pending: dict[TopicId, dict[int, int]] = {}
        for topic, index in owned:
            chance.choice((assigned, pending)).setdefault(topic, {})[index] = 1
        state = chance.choice(
            (ConsumerMemberState.STABLE, ConsumerMemberState.UNRELEASED_PARTITIONS)
        )
        epoch = chance.choice((EPOCH, EPOCH, EPOCH - 1))
        current = CurrentAssignment(epoch, epoch, state, assigned, pending)
        self.group.put_current(member_id, current)

    def targets(self) -> dict[MemberId, Assignment]:
        chance = self._chance
        changed: dict[MemberId, Assignment] = {}
        for member_id in [*self.group.members, MemberId("new")]:
            those = chance.sample(TOPICS, chance.randrange(3))
            changed[member_id] = {
                topic: frozenset(chance.sample(range(6), chance.randrange(1, 4))) for topic in those
            }
        return changed

    def owner(self, member_id: MemberId) -> str:
        member = self.group.members.get(member_id)
        return member_id if member is None else member.metadata.instance_id or member_id

    def moves(self, changed: dict[MemberId, Assignment]) -> list[PartitionMove]:
        found = []
        for member_id, target in changed.items():
            for topic, partitions in target.items():
                for index in sorted(partitions):
                    holder = self.group.owners.get(topic, {}).get(index)
                    old = self.last_owners.get((topic, index)) or (holder and self.owner(holder))
                    if old is not None and old != self.owner(member_id):
                        found.append(PartitionMove(str(topic), index, old, self.owner(member_id)))
        return found


def state_with(moves: int) -> ConsumerRecordingState:
    limits = RecordLimits(moves=moves)
    return ConsumerRecordingState(HistoryIndex(IndexLimits()), limits, lambda _: ())


@pytest.mark.parametrize("seed", range(300))
def test_moves_are_those_of_each_partition(seed: int) -> None:
    drawn = Drawn(seed)
    changed = drawn.targets()
    expected = drawn.moves(changed)
    turn = ConsumerTurn(GROUP, drawn.group)
    counted = target_moves(changed, turn, drawn.released, state_with(3))
    assert counted is not None
    assert (counted.moved, counted.first) == (len(expected), tuple(expected[:3]))


def test_too_many_partitions_are_not_counted() -> None:
    many = {MemberId("m"): {TOPICS[0]: frozenset(range(TARGETS_READ_MAX + 1))}}
    turn = ConsumerTurn(GROUP, None)
    assert target_moves(many, turn, ReleasedPartitions(), state_with(3)) is None


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("epoch", [EPOCH, EPOCH + 1])
def test_members_that_have_not_reached_the_target(seed: int, epoch: int) -> None:
    group = Drawn(seed).group
    turn = ConsumerTurn(GROUP, group)
    turn.apply(TargetAssignmentUpdated(GROUP, 0, epoch, "uniform", {}))
    expected = {
        member_id
        for member_id, member in group.members.items()
        if not reconciled(member.current, epoch)
    }
    assert turn.unreconciled() == expected


def test_partitions_that_another_set_has_not() -> None:
    first, second = TOPICS[:2]
    current = CurrentAssignment(
        assigned={first: {0: 1, 1: 1}}, pending_revocation={first: {2: 1}, second: {0: 1}}
    )
    owned = owned_partitions(current)
    assert owned == {first: {0, 1, 2}, second: {0}}
    assert without(owned, {first: {0, 5}, second: {0}}) == {first: {1, 2}}
    assert without(owned, {}) == owned
