"""Pending offsets: what transactions have committed and no marker has ended yet.

One for each partition of the offsets topic, by group, topic, partition and producer. It knows
nothing of groups but their ids. `evolve_pending` of evolve.py changes it, and the replay of a log.

Of two commits of one partition the later in the log wins, not the later marker. So a commit that
became visible after a pending one was written supersedes that: it stays pending, and its own marker
does not bring it back. Kafka compares the offsets of the records instead.
Kafka's counterparts: `pendingTransactionalOffsets` and `openTransactions` of
`OffsetMetadataManager`.
"""

from collections.abc import Iterable, Iterator, Mapping
from sys import intern
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from coordinator.group import CommittedOffset
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    GenerationId,
    GroupId,
    MemberId,
    TopicName,
)


class PendingOffset(Struct, frozen=True, gc=False):
    """`record_offset` is where its record is in the log of the partition."""

    commit: CommittedOffset
    record_offset: int
    is_superseded: bool = False


class OffsetCommitter(NamedTuple):
    """Who sent the commits of a producer in a group; not known after a load."""

    generation_id: GenerationId = NO_GENERATION
    member_id: MemberId = UNKNOWN_MEMBER_ID
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


UNKNOWN_COMMITTER: Final = OffsetCommitter()

PendingOfTopics = Mapping[TopicName, Mapping[int, Mapping[int, PendingOffset]]]
"""Of one group: by topic, partition and producer."""

NOTHING_PENDING: Final[PendingOfTopics] = {}


class PendingRow(NamedTuple):
    """One of them, with all its keys."""

    producer_id: int
    group_id: GroupId
    topic: TopicName
    partition: int
    offset: PendingOffset


class _OfProducer(Struct):
    """A producer's pending offsets in one group. The keys are in the order of the log."""

    committer: OffsetCommitter
    keys: dict[tuple[TopicName, int], None]


class PendingOffsets:
    __slots__ = ("_producers", "by_group")

    def __init__(self) -> None:
        # Read-only for others. Empty while no transaction has offsets: the check of the hot paths.
        self.by_group: dict[GroupId, dict[TopicName, dict[int, dict[int, PendingOffset]]]] = {}
        self._producers: dict[int, dict[GroupId, _OfProducer]] = {}

    # ------------------------------------------------------------ questions

    def of_group(self, group_id: GroupId) -> PendingOfTopics:
        return self.by_group.get(group_id, NOTHING_PENDING)

    def groups_of(self, producer_id: int) -> tuple[GroupId, ...]:
        return tuple(self._producers.get(producer_id, ()))

    def committer(self, producer_id: int, group_id: GroupId) -> OffsetCommitter:
        return self._producers[producer_id][group_id].committer

    def of_producer(
        self, producer_id: int, group_id: GroupId
    ) -> Iterator[tuple[TopicName, int, PendingOffset]]:
        topics = self.by_group[group_id]
        for topic, partition in self._producers[producer_id][group_id].keys:
            yield topic, partition, topics[topic][partition][producer_id]

    def rows(self) -> Iterator[PendingRow]:
        """All of them; for snapshots, and for tests."""
        for producer_id, groups in self._producers.items():
            for group_id in groups:
                for topic, partition, offset in self.of_producer(producer_id, group_id):
                    yield PendingRow(producer_id, group_id, topic, partition, offset)

    # ------------------------------------------------------------ changes

    def add(self, row: PendingRow, committer: OffsetCommitter = UNKNOWN_COMMITTER) -> None:
        """A transactional commit; it takes the place of an earlier one of the same producer."""
        topic = TopicName(intern(row.topic))
        topics = self.by_group.setdefault(row.group_id, {})
        topics.setdefault(topic, {}).setdefault(row.partition, {})[row.producer_id] = row.offset
        groups = self._producers.setdefault(row.producer_id, {})
        of_group = groups.get(row.group_id)
        if of_group is None:
            of_group = groups[row.group_id] = _OfProducer(committer, {})
        of_group.committer = committer
        of_group.keys.pop((topic, row.partition), None)
        of_group.keys[topic, row.partition] = None

    def supersede(
        self, group_id: GroupId, topic: TopicName, partition: int, before: int | None = None
    ) -> None:
        """A commit became visible: those before its record in the log never will be.

        `before` None: all of them, its record is the newest.
        """
        producers = self.by_group.get(group_id, {}).get(topic, {}).get(partition)
        if producers is None:
            return
        for producer_id, offset in producers.items():
            if before is None or offset.record_offset < before:
                producers[producer_id] = replace(offset, is_superseded=True)

    def remove(self, group_id: GroupId, topic: TopicName, partitions: Iterable[int]) -> None:
        """Tombstones were written: those of all producers are gone."""
        for partition in partitions:
            producers = self.by_group.get(group_id, {}).get(topic, {}).get(partition, {})
            for producer_id in tuple(producers):
                self._remove(producer_id, group_id, topic, partition)

    def end(self, producer_id: int, group_id: GroupId) -> None:
        """A marker ended the producer's transaction."""
        of_group = self._producers.get(producer_id, {}).get(group_id)
        if of_group is not None:
            for topic, partition in tuple(of_group.keys):
                self._remove(producer_id, group_id, topic, partition)

    def remove_group(self, group_id: GroupId) -> None:
        for topic, partitions in tuple(self.by_group.get(group_id, {}).items()):
            self.remove(group_id, topic, tuple(partitions))

    def _remove(
        self, producer_id: int, group_id: GroupId, topic: TopicName, partition: int
    ) -> None:
        topics = self.by_group[group_id]
        partitions = topics[topic]
        del partitions[partition][producer_id]
        if not partitions[partition]:
            del partitions[partition]
            if not partitions:
                del topics[topic]
                if not topics:
                    del self.by_group[group_id]
        groups = self._producers[producer_id]
        del groups[group_id].keys[topic, partition]
        if not groups[group_id].keys:
            del groups[group_id]
            if not groups:
                del self._producers[producer_id]

    # ------------------------------------------------------------ checks

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        by_group = {
            (group_id, topic, partition, producer_id)
            for group_id, topics in self.by_group.items()
            for topic, partitions in topics.items()
            for partition, producers in partitions.items()
            for producer_id in producers
        }
        by_producer = {
            (group_id, topic, partition, producer_id)
            for producer_id, groups in self._producers.items()
            for group_id, of_group in groups.items()
            for topic, partition in of_group.keys
        }
        assert by_group == by_producer, "the tables of pending offsets differ"
        assert all(all(topics.values()) for topics in self.by_group.values()), "an empty table"
        assert all(self.by_group.values()), "a group without pending offsets"
        assert all(self._producers.values()), "a producer without pending offsets"
