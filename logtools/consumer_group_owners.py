"""Consumer group owners: which member of a consumer group had a partition when it was committed.

A member's record names its partitions by topic id, as a commit's value does (version 4; a value of
an older version names none, so its sender stays unknown).
"""

from coordinator.consumer.records import CURRENT_ASSIGNMENT, MEMBER_METADATA
from coordinator.record_schemas import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    GroupMemberKey,
)
from coordinator.records import (
    UnreadableRecord,
    read_key,
    read_offset_commit_value,
    read_offset_key,
    read_value,
)
from protocol.names import TopicId

_Place = tuple[str, TopicId, int]
_Member = tuple[str, str]


class ConsumerGroupOwners:
    """Of one log's consumer groups."""

    __slots__ = ("_by_member", "_by_place", "_names")

    def __init__(self) -> None:
        self._by_place: dict[_Place, _Member] = {}
        self._by_member: dict[_Member, list[_Place]] = {}
        self._names: dict[_Member, str] = {}

    def of(self, key: bytes, value: bytes) -> str | None:
        """The owner of the partition of this commit."""
        if not self._by_place:
            return None
        try:
            place = read_offset_key(key)
            topic_id = read_offset_commit_value(value).topic_id
        except UnreadableRecord:
            return None
        member = self._by_place.get((place.group_id, topic_id, place.partition))
        return None if member is None else self._names.get(member, " ".join(member))

    def learn(self, kind: int, key: bytes, value: bytes | None) -> None:
        """The record of a member: what it says of itself, or which partitions it owns now."""
        try:
            named = read_key(GroupMemberKey, kind, key)
            member = (named.group_id, named.member_id)
            if kind == MEMBER_METADATA:
                self._learn_name(member, value)
            else:
                self._learn_partitions(member, value)
        except UnreadableRecord:
            return

    def _learn_name(self, member: _Member, value: bytes | None) -> None:
        if value is None:
            self._names.pop(member, None)
            return
        said = read_value(ConsumerGroupMemberMetadataValue, MEMBER_METADATA, value)
        self._names[member] = f"{' '.join(member)} ({said.client_id}@{said.client_host})"

    def _learn_partitions(self, member: _Member, value: bytes | None) -> None:
        for place in self._by_member.pop(member, ()):
            if self._by_place.get(place) == member:
                del self._by_place[place]
        if value is None:
            return
        said = read_value(ConsumerGroupCurrentMemberAssignmentValue, CURRENT_ASSIGNMENT, value)
        places = self._by_member[member] = [
            (member[0], topic.topic_id, partition)
            for topic in (*said.assigned_partitions, *said.partitions_pending_revocation)
            for partition in topic.partitions
        ]
        self._by_place.update(dict.fromkeys(places, member))
