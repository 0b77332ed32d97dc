"""Target moves: which partitions does a new target assignment take to another member?"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.consumer.assignors.assignor import Assignment
from history.entry_values import PartitionMove
from history.recording.consumer_state import ConsumerRecordingState
from history.recording.consumer_turn import ConsumerTurn, count_partitions_of
from history.recording.released_partitions import Released, ReleasedPartitions
from protocol.names import MemberId, TopicId

TARGETS_READ_MAX: Final = 20_000
"""Partitions in the changed targets of one turn: some 10 ms. The moves of more are not counted."""


class TargetMoves(NamedTuple):
    """How many partitions move, and the first of them."""

    moved: int
    first: tuple[PartitionMove, ...]


def target_moves(
    changed: Mapping[MemberId, Assignment],
    turn: ConsumerTurn,
    released: ReleasedPartitions,
    state: ConsumerRecordingState,
) -> TargetMoves | None:
    """Those of the changed targets. None: there are too many partitions to look."""
    partition_count = 0
    for target in changed.values():
        partition_count += count_partitions_of(target)
    if partition_count > TARGETS_READ_MAX:
        return None
    most, moved = state.limits.moves, 0
    first: list[PartitionMove] = []
    topic = _TopicOwners(turn, released)
    for member_id, target in changed.items():
        new = ""
        for topic_id, partitions in target.items():
            if topic_id is not topic.topic_id:  # most members have partitions of the same topic
                topic.turn_to(topic_id)
            for index in sorted(partitions) if len(partitions) > 1 else partitions:
                old = topic.last_owner(index, member_id)
                if old is None:
                    continue
                new = new or turn.owner_of(member_id)
                if old == new:
                    continue
                moved += 1
                if not topic.name:
                    topic.name = state.name(topic_id)  # which remembers it beyond its deletion
                if moved <= most:
                    first.append(PartitionMove(topic.name, index, old, new))
    return TargetMoves(moved, tuple(first))


class _TopicOwners:
    """Who owns the partitions of one topic after the other, or owned them last."""

    __slots__ = (
        "_holder",
        "_holder_name",
        "_holders",
        "_released",
        "_seen",
        "_turn",
        "_unowned",
        "name",
        "topic_id",
    )

    def __init__(self, turn: ConsumerTurn, released: ReleasedPartitions) -> None:
        self._turn = turn
        self._released = released
        self._seen: dict[TopicId, tuple[dict[int, MemberId], dict[int, Released]]] = {}
        self.topic_id: TopicId | None = None
        self.name = ""  # once it is needed
        self._holders: dict[int, MemberId] = {}
        self._unowned: dict[int, Released] = {}
        self._holder: MemberId | None = None  # whose name is known: one may give up thousands
        self._holder_name = ""

    def turn_to(self, topic_id: TopicId) -> None:
        self.topic_id = topic_id
        self.name = ""
        seen = self._seen.get(topic_id)
        if seen is None:  # dicts, which are faster to read for compiled code than what holds them
            holders = dict(self._turn.owners_before.get(topic_id, {}))
            seen = self._seen[topic_id] = holders, dict(self._released.of_topic(topic_id))
        self._holders, self._unowned = seen

    def last_owner(self, index: int, member_id: MemberId) -> str | None:
        """None: nobody had it, or this very member has it."""
        released = self._unowned.get(index)
        if released is not None:
            return released.owner
        holder = self._holders.get(index)
        if holder is None or holder == member_id:
            return None
        if holder != self._holder:
            self._holder, self._holder_name = holder, self._turn.owner_before(holder)
        return self._holder_name
