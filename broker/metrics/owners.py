"""Partition owners: labels for the metrics that name them.

The owner is read from the consumers' assignments, in any version. Reading them all at each
scrape would cost more than the rest of it, so what was read is kept until the group's generation or
members change. A group that is not Stable has no certain owners.
"""

from broker.metrics.family import escaped
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.classic.subscriptions import CONSUMER
from protocol.consumer_protocol import read_assignment
from protocol.names import GroupId, GroupState, MemberId
from protocol.primitives import Malformed

LabelsByPartition = dict[tuple[str, int], str]
"""(topic, partition) -> the labels of its owner."""


def _labels(host: str, consumer_id: str, client_id: str) -> str:
    return (
        f'member_host="{escaped(host)}",consumer_id="{escaped(consumer_id)}",'
        f'client_id="{escaped(client_id)}"'
    )


NO_OWNER = _labels("", "", "")


class OwnerLabels:
    def __init__(self) -> None:
        self._kept: dict[GroupId, tuple[int, tuple[MemberId, ...], LabelsByPartition]] = {}
        self._asked: dict[GroupId, tuple[int, tuple[MemberId, ...], LabelsByPartition]] = {}

    def of(self, group: ClassicGroupView | None) -> LabelsByPartition:
        if group is None or group.state is not GroupState.STABLE or group.protocol_type != CONSUMER:
            return {}
        # A static member that comes back changes its id without a new generation.
        member_ids = tuple(group.members)
        kept = self._kept.get(group.group_id)
        if kept is None or kept[0] != group.generation_id or kept[1] != member_ids:
            kept = (group.generation_id, member_ids, _read(group))
        self._asked[group.group_id] = kept
        return kept[2]

    def forget_others(self) -> None:
        """Keep what was asked for since the last time, so that this never outgrows a scrape."""
        self._kept, self._asked = self._asked, {}


def _read(group: ClassicGroupView) -> LabelsByPartition:
    owned: LabelsByPartition = {}
    for member in group.members.values():
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
