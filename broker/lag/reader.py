"""Lag reader: commit and log end of each partition of a group, read at the same instant.

All of a group is read in one turn of the event loop, in which nothing can be committed or produced:
the two numbers belong to one instant, so their difference is exact and never negative by chance.
The log end is the high watermark, as for Kafka's tools. Kafka's counterpart:
`ConsumerGroupService.describePartitions`, which asks two brokers one after the other.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

from coordinator.classic.group_view import ClassicGroupView
from coordinator.consumer.member import CurrentAssignment
from coordinator.coordinator import GroupCoordinator
from coordinator.group import CommittedOffset
from coordinator.group_types import AnyGroupView, as_classic, as_consumer
from coordinator.member_identity import MemberIdentity
from history.lag.model import PartitionKey, Reading
from protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment
from protocol.names import (
    OFFSETS_TOPIC,
    ZERO_TOPIC_ID,
    GroupId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from protocol.primitives import Malformed
from storage.api import TopicLog
from topics.registry import TopicRegistry

MEMBERS_AT_ONCE: Final = 200
"""Members whose assignments are decoded before others may run: about 1 ms."""


class LagReader:
    def __init__(self, coordinator: GroupCoordinator, registry: TopicRegistry) -> None:
        self._coordinator = coordinator
        self._registry = registry
        self._partitions = registry.partition_count(OFFSETS_TOPIC) or 0

    def group(self, group_id: GroupId) -> AnyGroupView | None:
        return self._coordinator.group(group_id)

    def groups(self) -> Iterator[tuple[AnyGroupView, ...]]:
        """All groups, some at a time; each part is read when it is requested."""
        for partition in range(self._partitions):
            yield tuple(self._coordinator.groups_of(partition))

    def read_group(self, group: AnyGroupView, owned: Iterable[PartitionKey] = ()) -> list[Reading]:
        """What the group has committed, and the `owned` partitions without a commit."""
        readings = [
            reading
            for topic, commits in group.offsets.items()
            for reading in self.read(topic, commits.items())
        ]
        for topic_name, partition in owned:
            topic = TopicName(topic_name)
            if partition not in group.offsets.get(topic, ()):
                log = self.log(topic_name, partition)
                start, end = _ends(log)
                readings.append(Reading(topic_name, partition, None, None, start, end))
        return readings

    def waiting(self, group: AnyGroupView) -> Iterator[list[PartitionKey]]:
        """Partitions that members own and never committed, although the log has records.

        In parts of some members each, between which the caller may let others run: the members are
        those of the first part, what is committed is read for each part.
        """
        owned = self._owned(group)
        while part := tuple(islice(owned, MEMBERS_AT_ONCE)):
            yield [key for keys in part for key in keys if self._is_waiting(group, key)]

    def _is_waiting(self, group: AnyGroupView, key: PartitionKey) -> bool:
        topic, partition = key
        if partition in group.offsets.get(TopicName(topic), ()):
            return False
        start, end = _ends(self.log(topic, partition))
        return end is not None and end > (start or 0)

    def _owned(self, group: AnyGroupView) -> Iterator[Iterable[PartitionKey]]:
        """What each member owns; of a classic group only while its assignments are known."""
        classic = as_classic(group)
        if classic is None:
            for keys, _ in self._owned_by_members(group):
                yield keys
        elif classic.protocol_type == PROTOCOL_TYPE and classic.state is GroupState.STABLE:
            for assignment in [member.assignment for member in classic.members.values()]:
                yield owned_by(assignment) or ()

    def owners(self, group: AnyGroupView) -> dict[PartitionKey, tuple[MemberIdentity, ...]]:
        """Owners of each partition, from the assignments of consumers; empty for other types.

        A classic assignor may assign a partition to several members, by mistake or as copies.
        """
        classic = as_classic(group)
        if classic is not None:
            return owners_of(classic)
        return {key: (owner,) for keys, owner in self._owned_by_members(group) for key in keys}

    def _owned_by_members(
        self, group: AnyGroupView
    ) -> Iterator[tuple[list[PartitionKey], MemberIdentity]]:
        """Of a consumer group: what each member owns, with what it is to give back."""
        consumers = as_consumer(group)
        if consumers is not None:
            for member in tuple(consumers.members.values()):
                owned = current_partitions(member.current, self._registry.topic_name)
                yield owned, member.metadata.identity

    def read(
        self, topic: TopicName, commits: Iterable[tuple[int, CommittedOffset]]
    ) -> Iterator[Reading]:
        topic_id = self._registry.topic_id(topic)
        id_text = "" if topic_id is None else str(topic_id)
        partition_of = self._registry.partition
        for index, commit in commits:
            partition = partition_of(topic, index)
            log = None if partition is None else partition.log
            start, end = _ends(log)
            yield Reading(
                topic,
                index,
                commit.committed_offset,
                commit.committed_at_ms,
                start,
                end,
                _is_recreated(commit.topic_id, topic_id),
                id_text,
            )

    def topic_id(self, topic: str) -> str:
        """Empty if there is no such topic."""
        topic_id = self._registry.topic_id(TopicName(topic))
        return "" if topic_id is None else str(topic_id)

    def log(self, topic: str, partition: int) -> TopicLog | None:
        found = self._registry.partition(topic, partition)
        return None if found is None else found.log


def _ends(log: TopicLog | None) -> tuple[int | None, int | None]:
    return (None, None) if log is None else (log.log_start_offset, log.high_watermark)


def _is_recreated(committed_for: TopicId, topic_id: TopicId | None) -> bool:
    return topic_id is not None and committed_for != ZERO_TOPIC_ID and committed_for != topic_id


def owners_of(group: ClassicGroupView) -> dict[PartitionKey, tuple[MemberIdentity, ...]]:
    """Owners of each partition, from the assignments of consumers in a classic group."""
    owners: dict[PartitionKey, tuple[MemberIdentity, ...]] = {}
    for member_id, owned in assignments_of(group).items():
        member = group.members[member_id]
        owner = MemberIdentity(
            member.member_id, member.group_instance_id, member.client_id, member.client_host
        )
        for key in owned:
            owners[key] = (*owners.get(key, ()), owner)
    return owners


def current_partitions(
    current: CurrentAssignment, topic_name: Callable[[TopicId], TopicName | None]
) -> list[PartitionKey]:
    """What a member of a consumer group owns, without topics that are deleted."""
    keys: list[PartitionKey] = []
    for owned in (current.assigned, current.pending_revocation):
        for topic_id, partitions in owned.items():
            name = topic_name(topic_id)
            if name is not None:
                keys += [(name, partition) for partition in partitions]
    return keys


def assignments_of(group: ClassicGroupView) -> Mapping[MemberId, list[PartitionKey]]:
    """Member -> assigned partitions. Empty while there is no assignment that can be read."""
    if group.protocol_type != PROTOCOL_TYPE or group.state is not GroupState.STABLE:
        return {}
    return {
        member_id: keys
        for member_id, member in group.members.items()
        if (keys := partitions_of_assignment(member.assignment)) is not None
    }


CACHED_BYTES_MAX: Final = 4_096
"""Larger assignments are decoded each time instead of cached."""


def owned_by(assignment: bytes) -> tuple[PartitionKey, ...] | None:
    """The partitions of an assignment, cached if it is small. None: not an assignment."""
    return _cached_owned(assignment) if len(assignment) <= CACHED_BYTES_MAX else _owned(assignment)


def _owned(assignment: bytes) -> tuple[PartitionKey, ...] | None:
    keys = partitions_of_assignment(assignment)
    return None if keys is None else tuple(keys)


_cached_owned = lru_cache(maxsize=4_096)(_owned)


def partitions_of_assignment(assignment: bytes) -> list[PartitionKey] | None:
    """None: these bytes are not an assignment."""
    if not assignment:
        return []
    try:
        read = read_assignment(assignment)
    except Malformed:
        return None
    return [
        (owned.topic, index) for owned in read.assigned_partitions for index in owned.partitions
    ]
