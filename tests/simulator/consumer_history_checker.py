"""History checker of consumer groups: the history on the disk tells what the offsets log has.

Both logs are read from the disk, each batch once and before the cleaner comes. Each group epoch
(record type 3) and target assignment epoch (type 6) that was stored is told exactly once, and so is
each member that joined or is gone (type 5 and its tombstone) and each conversion of a group;
nothing is told that was not stored. Group epochs follow each other, each with its cause and inside
of exactly one rebalance; a rebalance ends before the next one begins.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

from coordinator.consumer.group import FIRST_GROUP_EPOCH
from coordinator.consumer.member import NEVER_ASSIGNED_MS
from coordinator.consumer.records import (
    GROUP_EPOCH,
    MEMBER_METADATA,
    TARGET_METADATA,
)
from coordinator.record_schemas import (
    ConsumerGroupMetadataValue,
    GroupKey,
    GroupMemberKey,
    TargetAssignmentMetadataValue,
)
from coordinator.records import (
    GROUP_METADATA,
    read_group_key,
    read_group_metadata_value,
    read_key,
    read_value,
    record_type,
)
from history.consumer_entries import (
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.encoding import decode
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
)
from history.recording.consumer_state import CONSUMER_GROUP
from history.story import GroupStory
from protocol.names import OFFSETS_TOPIC, GroupId, MemberId
from storage.api import StoredRecord, TopicPartition
from storage.batch.record_batch import stored_records
from tests.simulator.node import HISTORY, Node
from tests.simulator.sim import Broken

T = TypeVar("T")

GroupEpoch = tuple[GroupId, int]
Membership = tuple[GroupId, MemberId]
Conversion = tuple[GroupId, int, int]
"""The group, the epoch or generation that it goes on in, and with how many members."""


@dataclass(slots=True)
class Facts:
    """What one of the two logs says, and how often."""

    group_epochs: Counter[GroupEpoch] = field(default_factory=Counter)
    target_epochs: Counter[GroupEpoch] = field(default_factory=Counter)
    joined: Counter[Membership] = field(default_factory=Counter)
    gone: Counter[Membership] = field(default_factory=Counter)
    upgrades: Counter[Conversion] = field(default_factory=Counter)
    downgrades: Counter[Conversion] = field(default_factory=Counter)


_GROUP_OF: Final[dict[int, Callable[[bytes], GroupId]]] = {
    GROUP_METADATA: read_group_key,
    GROUP_EPOCH: lambda key: GroupId(read_key(GroupKey, GROUP_EPOCH, key).group_id),
    TARGET_METADATA: lambda key: GroupId(read_key(GroupKey, TARGET_METADATA, key).group_id),
    MEMBER_METADATA: lambda key: GroupId(read_key(GroupMemberKey, MEMBER_METADATA, key).group_id),
}
"""Of the record types that are read here."""


class ConsumerHistory:
    """Follows both logs of one world through all processes."""

    def __init__(self) -> None:
        self.stored = StoredFacts()
        self.recorded = RecordedFacts()
        self._next: dict[TopicPartition, int] = {}

    def read(self, node: Node) -> None:
        """What is new on the disk. Before each cleaning, or records would be missed."""
        for partition in range(node.settings.offsets_topic_num_partitions):
            key = TopicPartition(OFFSETS_TOPIC, partition)
            for batch in self._new_batches(node, key):
                self.stored.apply(batch)
        for batch in self._new_batches(node, HISTORY):
            for record in batch:
                entry = decode(record.value)
                assert entry is not None
                self.recorded.apply(entry)

    def _new_batches(self, node: Node, key: TopicPartition) -> Iterator[list[StoredRecord]]:
        view = node.store.partitions()[key]
        begin = self._next.get(key, view.log_start_offset)
        for batch in view.batches(begin):
            records = [record for record in stored_records(batch) if record.offset >= begin]
            if records:
                self._next[key] = records[-1].offset + 1
                yield records

    def check(self, node: Node, answered: Collection[GroupEpoch]) -> None:
        """`answered`: the epochs of consumer groups that clients heard of. Raises Broken."""
        self.read(node)
        for fact in fields(Facts):
            stored: Counter[object] = getattr(self.stored.facts, fact.name)
            recorded: Counter[object] = getattr(self.recorded.facts, fact.name)
            _demand(not stored - recorded, f"{fact.name} stored and not told: {stored - recorded}")
            _demand(not recorded - stored, f"{fact.name} told and not stored: {recorded - stored}")
        missed = [epoch for epoch in answered if not self.recorded.has_rebalance_of(*epoch)]
        _demand(not missed, f"no rebalance led to {missed}")

    def check_ended(self) -> None:
        """All groups are settled: no rebalance runs in the history."""
        for group_id, story in self.recorded.stories.items():
            _demand(story.running is None, f"the rebalance of {group_id} has no end")


# ---------------------------------------------------------------- the offsets log


class StoredFacts:
    """A batch is what one turn stored: all of it is there after a crash, or nothing."""

    def __init__(self) -> None:
        self.facts = Facts()
        self._members: dict[GroupId, set[MemberId]] = defaultdict(set)

    def apply(self, batch: list[StoredRecord]) -> None:
        by_group: dict[GroupId, list[tuple[int, StoredRecord]]] = defaultdict(list)
        for record in batch:
            kind = record_type(record.key)
            if kind in _GROUP_OF:
                assert record.key is not None
                by_group[_GROUP_OF[kind](record.key)].append((kind, record))
        for group_id, records in by_group.items():
            self._apply_turn(group_id, records)

    def _apply_turn(self, group_id: GroupId, turn: list[tuple[int, StoredRecord]]) -> None:
        epochs = _values(turn, GROUP_EPOCH, _group_epoch)
        targets = _values(turn, TARGET_METADATA, _target_epoch)
        classic_ids = self._downgraded(group_id, turn)
        converted = self._upgraded(group_id, turn)
        if converted is not None:
            del epochs[0], targets[0]  # those of the conversion itself
        self.facts.group_epochs.update((group_id, epoch) for epoch in epochs)
        self.facts.target_epochs.update((group_id, epoch) for epoch, _ in targets)
        members = self._members[group_id]
        for kind, record in turn:
            if kind != MEMBER_METADATA:
                continue
            assert record.key is not None
            member_id = MemberId(read_key(GroupMemberKey, kind, record.key).member_id)
            if record.value is None:
                if member_id in members and member_id not in classic_ids:
                    self.facts.gone[group_id, member_id] += 1
                members.discard(member_id)
            elif member_id not in members:
                members.add(member_id)
                if member_id not in (converted or ()):
                    self.facts.joined[group_id, member_id] += 1

    def _upgraded(
        self, group_id: GroupId, turn: list[tuple[int, StoredRecord]]
    ) -> Collection[MemberId] | None:
        """The members that a classic group brings: those before its epoch. None: no conversion.

        It has none if all of them went while a rebalance waited for a new one.
        """
        targets = _values(turn, TARGET_METADATA, _target_epoch)
        if not targets or targets[0][1] != NEVER_ASSIGNED_MS:
            return None
        first = next(n for n, (kind, _) in enumerate(turn) if kind == GROUP_EPOCH)
        converted = [
            MemberId(read_key(GroupMemberKey, kind, record.key).member_id)
            for kind, record in turn[:first]
            if kind == MEMBER_METADATA and record.key is not None
        ]
        if converted:
            self.facts.upgrades[group_id, targets[0][0], len(converted)] += 1
        return converted

    def _downgraded(
        self, group_id: GroupId, turn: list[tuple[int, StoredRecord]]
    ) -> Collection[MemberId]:
        """The members that stay in a classic group."""
        if not any(kind == GROUP_EPOCH and record.value is None for kind, record in turn):
            return ()
        for kind, record in turn:
            if kind == GROUP_METADATA and record.value is not None:
                group = read_group_metadata_value(record.value)
                ids = {member.member_id for member in group.members}
                if ids:
                    self.facts.downgrades[group_id, group.generation_id, len(ids)] += 1
                return ids
        return ()


def _values(turn: list[tuple[int, StoredRecord]], kind: int, read: Callable[[bytes], T]) -> list[T]:
    """Without those that a tombstone of the same turn takes back."""
    values: list[T] = []
    for found, record in turn:
        if found == kind and record.value is None:
            values.clear()
        elif found == kind:
            assert record.value is not None
            values.append(read(record.value))
    return values


def _group_epoch(value: bytes) -> int:
    return read_value(ConsumerGroupMetadataValue, GROUP_EPOCH, value).epoch


def _target_epoch(value: bytes) -> tuple[int, int]:
    read = read_value(TargetAssignmentMetadataValue, TARGET_METADATA, value)
    return read.assignment_epoch, read.assignment_timestamp


# ---------------------------------------------------------------- the history


class RecordedFacts:
    def __init__(self) -> None:
        self.facts = Facts()
        self.stories: dict[GroupId, GroupStory] = defaultdict(GroupStory)
        self._rebalances: dict[GroupId, list[range]] = defaultdict(list)  # epochs of each
        # Of the present life of a group: an empty group that is converted starts over.
        self._last_epoch: dict[GroupId, int] = {}
        self._last_end: dict[GroupId, int] = {}

    def has_rebalance_of(self, group_id: GroupId, epoch: int) -> bool:
        if epoch == FIRST_GROUP_EPOCH:
            return True  # before the first target assignment
        running = self.stories[group_id].running
        if running is not None and running.generation_before < epoch:
            return True
        return any(epoch in epochs for epochs in self._rebalances[group_id])

    def apply(self, entry: HistoryEntry) -> None:
        group_id = GroupId(entry.group_id)
        story = self.stories[group_id]
        match entry:
            case RebalanceBegunEntry():
                _demand(story.running is None, f"two rebalances at once in {group_id}: {entry}")
            case RebalanceEndedEntry():
                self._ended(group_id, entry.rebalance)
            case GroupEpochBumpedEntry():
                self._bumped(group_id, story.running, entry)
            case TargetAssignmentUpdatedEntry():
                self.facts.target_epochs[group_id, entry.epoch] += 1
            case MemberAddedEntry() if entry.group_type == CONSUMER_GROUP:
                self.facts.joined[group_id, entry.member.member_id] += 1
            case MembersRemovedEntry() if entry.group_type == CONSUMER_GROUP:
                for removed in entry.members:
                    self.facts.gone[group_id, removed.member.member_id] += 1
            case StaticMemberReplacedEntry() if entry.group_type == CONSUMER_GROUP:
                self.facts.gone[group_id, MemberId(entry.old_member_id)] += 1
                self.facts.joined[group_id, entry.member.member_id] += 1
            case GroupConvertedEntry():
                self._converted(group_id, entry)
            case GroupDeletedEntry():
                self._reset(group_id)
            case _:
                pass
        story.apply(entry)

    def _bumped(
        self, group_id: GroupId, running: Rebalance | None, entry: GroupEpochBumpedEntry
    ) -> None:
        self.facts.group_epochs[group_id, entry.epoch] += 1
        before = self._last_epoch.get(group_id, entry.epoch - 1)
        self._last_epoch[group_id] = entry.epoch
        _demand(entry.epoch == before + 1, f"epoch {before} is followed by {entry}")
        _demand(bool(entry.causes), f"nothing caused {entry}")
        _demand(running is not None, f"no rebalance runs at {entry}")

    def _ended(self, group_id: GroupId, whole: Rebalance) -> None:
        before, after = whole.generation_before, whole.generation_after
        if whole.group_type != CONSUMER_GROUP or after is None or after <= before:
            return
        last = self._last_end.get(group_id, before)
        _demand(last <= before, f"two rebalances of {group_id} for one epoch: {whole}")
        self._last_end[group_id] = after
        self._rebalances[group_id].append(range(before + 1, after + 1))

    def _converted(self, group_id: GroupId, entry: GroupConvertedEntry) -> None:
        self._reset(group_id)
        if not entry.members:
            return
        if entry.to_type != CONSUMER_GROUP:
            self.facts.downgrades[group_id, entry.generation, entry.members] += 1
            return
        epoch = max(entry.generation, FIRST_GROUP_EPOCH)
        self.facts.upgrades[group_id, epoch, entry.members] += 1
        self._last_epoch[group_id] = epoch
        self._rebalances[group_id].append(range(epoch, epoch + 1))  # the members' generation

    def _reset(self, group_id: GroupId) -> None:
        self._last_epoch.pop(group_id, None)
        self._last_end.pop(group_id, None)


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
