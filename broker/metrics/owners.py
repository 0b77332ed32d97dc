"""Partition owners: labels for the metrics that name them.

The owner is read from the consumers' assignments, in any version. Reading them all at each
scrape would cost more than the rest of it, so what was read is kept until the group's generation or
members change. A classic group that is not Stable has no certain owners; a consumer group always
has.
"""

from collections.abc import Callable, Generator
from typing import Final, Protocol

from broker.metrics.family import escaped
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.classic.subscriptions import CONSUMER
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.group_types import AnyGroupView, as_classic, as_consumer
from protocol.consumer_protocol import read_assignment
from protocol.names import GroupId, GroupState, MemberId, TopicId, TopicName
from protocol.primitives import Malformed

READ_PER_SLICE: Final = 100
"""Members whose assignments are read before a scrape makes a pause: some 0.5 ms."""

LabelsByPartition = dict[tuple[str, int], str]
"""(topic, partition) -> the labels of its owner."""


TopicIds = Callable[[TopicName], TopicId | None]


class LabelsOfOwners(Protocol):
    """As a dict has it: the labels of a partition's owner."""

    def get(self, place: tuple[str, int], default: str, /) -> str: ...


def _labels(host: str, consumer_id: str, client_id: str) -> str:
    return (
        f'member_host="{escaped(host)}",consumer_id="{escaped(consumer_id)}",'
        f'client_id="{escaped(client_id)}"'
    )


NO_OWNER = _labels("", "", "")


class ConsumerOwners:
    """The owners in a consumer group, which knows them by topic id: nothing is kept."""

    def __init__(self, group: ConsumerGroupView, topic_id: TopicIds) -> None:
        self._group = group
        self._topic_id = topic_id
        self._labels: dict[MemberId, str] = {}

    def get(self, place: tuple[str, int], default: str, /) -> str:
        topic_id = self._topic_id(TopicName(place[0]))
        member_id = self._group.owners.get(topic_id, {}).get(place[1]) if topic_id else None
        if member_id is None:
            return default
        labels = self._labels.get(member_id)
        if labels is None:
            owner = self._group.members[member_id].metadata
            labels = _labels(owner.client_host, member_id, owner.client_id)
            self._labels[member_id] = labels
        return labels


class OwnerLabels:
    def __init__(self, topic_id: TopicIds) -> None:
        self._topic_id = topic_id
        self._kept: dict[GroupId, tuple[int, tuple[MemberId, ...], LabelsByPartition]] = {}
        self._asked: dict[GroupId, tuple[int, tuple[MemberId, ...], LabelsByPartition]] = {}

    def of(self, any_group: AnyGroupView | None) -> Generator[None, None, LabelsOfOwners]:
        """With pauses: 5,000 assignments take 25 ms to read."""
        consumers = as_consumer(any_group)
        if consumers is not None:
            return ConsumerOwners(consumers, self._topic_id)
        group = as_classic(any_group)
        if group is None or group.state is not GroupState.STABLE or group.protocol_type != CONSUMER:
            return {}
        # A static member that comes back changes its id without a new generation.
        member_ids = tuple(group.members)
        kept = self._kept.get(group.group_id)
        if kept is None or kept[0] != group.generation_id or kept[1] != member_ids:
            kept = (group.generation_id, member_ids, (yield from _read(group)))
        self._asked[group.group_id] = kept
        return kept[2]

    def forget_others(self) -> None:
        """Keep what was asked for since the last time, so that this never outgrows a scrape."""
        self._kept, self._asked = self._asked, {}


def _read(group: ClassicGroupView) -> Generator[None, None, LabelsByPartition]:
    owned: LabelsByPartition = {}
    for number, member in enumerate(tuple(group.members.values()), 1):
        if number % READ_PER_SLICE == 0:
            yield
        labels = _labels(member.client_host, member.member_id, member.client_id)
        for place in _assigned(member):
            owned[place] = labels
    return owned


def _assigned(member: ClassicMemberView) -> list[tuple[str, int]]:
    try:
        assignment = read_assignment(member.assignment)
    except Malformed:
        return []
    return [
        (topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    ]
