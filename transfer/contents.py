"""Contents: the groups of a `__consumer_offsets` log, each with its newest records.

The common form of everything that is imported and exported: a group has its committed offsets and
its *state*, the records that say what kind of group it is and who its members are. Only what must
be decoded is decoded: the state stays bytes, so that a kind of group that Rollcall does not serve
is transferred unchanged. Keys are ordered as in the log, by their newest record.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct, field

from coordinator.classic.generation_record import GENERATION_BEGUN
from coordinator.group import CommittedOffset
from coordinator.record_schemas import RECORD_SCHEMAS
from coordinator.records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    OffsetKey,
    UnreadableRecord,
    offset_commit_key,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from coordinator.writable import unwritable_offset
from protocol.names import GroupId
from protocol.primitives import UTF8
from seams.java_hash import partition_of
from transfer.errors import BadText

OFFSET_TYPES: Final = (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT)

_INT16: Final = struct.Struct(">h")

CLASSIC: Final = "classic"
CONSUMER_KIND: Final = "consumer"
SIMPLE: Final = "simple"
UNKNOWN_KIND: Final = "unknown"
GROUP_KINDS: Final = (CLASSIC, CONSUMER_KIND, "share", "streams", SIMPLE, UNKNOWN_KIND)

# The first record type of each kind of group and the last; between them all that it keeps.
_KINDS: Final = (
    (CLASSIC, range(GROUP_METADATA, GROUP_METADATA + 1)),
    (CONSUMER_KIND, range(3, 9)),
    ("share", range(10, 16)),
    (CONSUMER_KIND, range(16, 17)),
    ("streams", range(17, 24)),
    (CLASSIC, range(GENERATION_BEGUN, GENERATION_BEGUN + 1)),
)


class Kept(NamedTuple):
    """The newest record of a key."""

    timestamp_ms: int
    value: bytes


class GroupContents(Struct):
    """One group: offsets by (topic, partition), and its state by record key."""

    group_id: GroupId
    offsets: dict[tuple[str, int], tuple[CommittedOffset, int]] = field(default_factory=dict)
    """With the timestamp of the record that it was read from."""
    state: dict[bytes, Kept] = field(default_factory=dict)

    reported_kind: str | None = None
    """The kind that a cluster reports: over the wire there is no state to derive it from."""

    def put_offset(
        self, place: tuple[str, int], offset: int, leader_epoch: int, metadata: str
    ) -> None:
        """An offset without known times."""
        self.offsets[place] = (CommittedOffset(offset, leader_epoch, metadata), -1)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What its state says it is, the latest last; more than one if it changed over time."""
        found = dict.fromkeys(kind_of(record_type(key)) for key in self._by_age())
        return tuple(reversed(found)) if found else (SIMPLE,)

    @property
    def kind(self) -> str:
        return self.kinds[-1] if self.reported_kind is None else self.reported_kind

    @property
    def newest_state_ms(self) -> int:
        return max((kept.timestamp_ms for kept in self.state.values()), default=-1)

    def _by_age(self) -> Iterator[bytes]:
        """The keys of its state, the one written last first."""
        return reversed(self.state)


def kind_of(kind: int) -> str:
    """The kind of group that keeps records of this type."""
    return next((name for name, kinds in _KINDS if kind in kinds), UNKNOWN_KIND)


def type_name(kind: int) -> str:
    """Kafka's name of a record type, or its number."""
    if kind == GENERATION_BEGUN:
        return "GenerationBegun (Rollcall's own)"
    schema = RECORD_SCHEMAS.get(kind)
    return f"unknown type {kind}" if schema is None else schema.name


def is_known(kind: int) -> bool:
    return kind in RECORD_SCHEMAS or kind == GENERATION_BEGUN


def group_id_of(key: bytes) -> GroupId:
    """Whose record this is: so far the key of every type begins with its group.

    Raises UnreadableRecord where that is not so.
    """
    kind = record_type(key)
    if kind in OFFSET_TYPES:
        return read_offset_key(key).group_id
    try:
        start, length = _INT16.size * 2, _INT16.unpack_from(key, _INT16.size)[0]
        if kind == GENERATION_BEGUN:  # in the flexible encoding, like all that is ours
            start, length = _compact_length(key)
        if length < 0 or start + length > len(key):
            raise UnreadableRecord(kind, None, f"a group id of {length} bytes")
        return GroupId(key[start : start + length].decode(*UTF8))
    except (struct.error, IndexError, ValueError) as fault:
        raise UnreadableRecord(
            kind, None, f"the key does not begin with a group: {fault}"
        ) from None


def _compact_length(key: bytes) -> tuple[int, int]:
    length = shift = 0
    position = _INT16.size
    while True:
        byte = key[position]
        position += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return position, length - 1
        shift += 7


class Contents(Struct):
    """All groups of a source, and the keys of which nothing but a tombstone is left."""

    groups: dict[GroupId, GroupContents] = field(default_factory=dict)

    def group(self, group_id: GroupId) -> GroupContents:
        found = self.groups.get(group_id)
        if found is None:
            found = self.groups[group_id] = GroupContents(group_id)
        return found

    def put(self, key: bytes, value: bytes, timestamp_ms: int) -> None:
        """A record that is newer than all before it. Raises UnreadableRecord."""
        kind = record_type(key)
        if kind in OFFSET_TYPES:
            place = read_offset_key(key)
            commit = read_offset_commit_value(value, kind)
            offsets = self.group(place.group_id).offsets
            offsets[place.topic, place.partition] = (commit, timestamp_ms)
            return
        state = self.group(group_id_of(key)).state
        state.pop(key, None)  # to the end: the order is that of the newest records
        state[key] = Kept(timestamp_ms, value)

    def remove(self, key: bytes) -> None:
        """A tombstone. Raises UnreadableRecord."""
        group_id = group_id_of(key)
        group = self.groups.get(group_id)
        if group is None:
            return
        if record_type(key) in OFFSET_TYPES:
            place = read_offset_key(key)
            group.offsets.pop((place.topic, place.partition), None)
        else:
            group.state.pop(key, None)
        if not group.offsets and not group.state:
            del self.groups[group_id]

    def check_writable(self) -> None:
        """Raises BadText for an offset that no record can hold: its partition would never load."""
        for group_id, group in self.groups.items():
            for (topic, partition), (commit, _) in group.offsets.items():
                fault = unwritable_offset(group_id, topic, commit.metadata)
                if fault is not None:
                    raise BadText(f"group {group_id[:40]!r}, {topic[:40]}-{partition}: {fault}")

    def keep_only(self, group_ids: Iterable[GroupId]) -> int:
        """Forget the other groups; returns how many these were."""
        kept = set(group_ids)
        others = self.groups.keys() - kept
        for group_id in others:
            del self.groups[group_id]
        return len(others)

    @property
    def offsets(self) -> int:
        return sum(len(group.offsets) for group in self.groups.values())


def offset_key(group_id: GroupId, place: tuple[str, int]) -> bytes:
    key = OffsetKey(group_id, *place)  # type: ignore[arg-type]  # a topic's name as it was read
    return offset_commit_key(key.group_id, key.topic, key.partition)


def home_of(group_id: GroupId, partitions: int) -> int:
    """The partition of the offsets topic that a group lives in."""
    return partition_of(group_id, partitions)
