"""Record owner: the group, topic and member of a record of `__consumer_offsets`.

A commit does not name its sender. The group's newest generation names the member that owned the
partition: the sender, unless it was an administrator. Kept by the commit's key bytes, so that a
record costs one look-up.
"""

from functools import lru_cache
from typing import Final

from coordinator.consumer.records import CURRENT_ASSIGNMENT, MEMBER_METADATA
from coordinator.record_schemas import GroupMetadataValue
from coordinator.records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    offset_commit_key,
)
from logtools.consumer_group_owners import ConsumerGroupOwners
from logtools.group_records import RECORD_TYPES
from logtools.record_view import UNKNOWN_RECORD
from protocol.compiler import reader
from protocol.consumer_protocol import read_assignment
from protocol.names import GroupId
from protocol.primitives import Malformed

_PREFIXES_CACHED: Final = 32_768


def group_and_topic(key: bytes) -> tuple[str, str, str | None]:
    """(record type, group, topic) of a key; the topic is None unless it names a commit."""
    if key[:2] in _COMMIT_TYPES and len(key) >= 10:
        return _commit(key[:-4])
    return _other(key)


_COMMIT_TYPES: Final = tuple(n.to_bytes(2) for n in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT))


@lru_cache(_PREFIXES_CACHED)
def _commit(prefix: bytes) -> tuple[str, str, str | None]:
    name = RECORD_TYPES[prefix[1]].name
    group_bytes = int.from_bytes(prefix[2:4])
    group = prefix[4 : 4 + group_bytes].decode(errors="replace")
    topic = prefix[6 + group_bytes :].decode(errors="replace")
    return name, group, topic


@lru_cache(_PREFIXES_CACHED)
def _other(key: bytes) -> tuple[str, str, str | None]:
    schema = RECORD_TYPES.get(int.from_bytes(key[:2], signed=True)) if len(key) >= 2 else None
    if schema is None:
        return UNKNOWN_RECORD, f"({UNKNOWN_RECORD.lower()})", None
    try:
        named = reader(schema.key, 0)(key, 2, len(key))
    except Malformed:
        return schema.name, f"({UNKNOWN_RECORD.lower()})", None
    group = getattr(named, "group", None) or getattr(named, "group_id", None) or ""
    return schema.name, str(group), None


class Owners:
    """Which member had which partition when it was committed; of one log's groups."""

    __slots__ = ("_by_group", "_by_key", "_in_consumer_groups")

    def __init__(self) -> None:
        self._by_key: dict[bytes, str] = {}
        self._by_group: dict[str, list[bytes]] = {}
        self._in_consumer_groups = ConsumerGroupOwners()

    def of(self, key: bytes, value: bytes) -> str | None:
        owner = self._by_key.get(key)
        return self._in_consumer_groups.of(key, value) if owner is None else owner

    def learn(self, key: bytes, value: bytes | None) -> None:
        """A group's record: from now on its partitions belong to these members, or to nobody."""
        kind = int.from_bytes(key[:2], signed=True)
        if kind in (MEMBER_METADATA, CURRENT_ASSIGNMENT):
            self._in_consumer_groups.learn(kind, key, value)
        if kind != GROUP_METADATA:
            return
        _, group, _ = _other(key)
        for old in self._by_group.pop(group, ()):
            del self._by_key[old]
        version = -1 if value is None else int.from_bytes(value[:2], signed=True)
        if value is None or version not in GroupMetadataValue.VERSIONS:
            return
        try:
            stored = reader(GroupMetadataValue, version)(value, 2, len(value))
        except Malformed:
            return
        keys = self._by_group[group] = []
        for member in stored.members:
            name = f"{group} {member.member_id} ({member.client_id}@{member.client_host})"
            try:
                assigned = read_assignment(member.assignment).assigned_partitions
            except Malformed:
                continue
            for topic in assigned:
                for partition in topic.partitions:
                    own = offset_commit_key(GroupId(group), topic.topic, partition)
                    if own not in self._by_key:
                        keys.append(own)
                    self._by_key[own] = name
