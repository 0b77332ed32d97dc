"""What is a group in plain values, and how do the groups of a snapshot become groups when needed?

A snapshot keeps of each group what its records say of it, no more and no less: `plain_of` and
`group_of` are inverse to each other for every group that `restore.py` makes, and the property tests
hold them to that. `Image` is the table of groups that a load writes records into: those of the
snapshot are decoded when a record or a request asks for them, and the shard takes the others a few
at a time. Offsets, which are the bulk, are kept in columns, where equal values stand once.
Kafka's counterpart is none: it replays its log.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat, starmap
from sys import intern
from typing import Final, NamedTuple, Protocol, TypeVar, cast

from msgspec.structs import astuple

from coordinator.classic.subscriptions import subscribed_topics
from coordinator.group import CommittedOffset, Group, Member, Protocols
from coordinator.restore import RecordSkipped, apply_record
from protocol.names import (
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicName,
)
from protocol.primitives import read_uuid
from storage.api import Position, StoredRecord

MEANING: Final = 1
"""Raise it when restore.py learns to read what it skipped, or keeps more of a group than before:
snapshots of another meaning are passed over, and the log is read."""

SKIPPED_KEPT_MAX: Final = 20
"""Of the records that say nothing to us; enough to tell what kind they are."""

GROUP_COST: Final = 50
MEMBER_COST: Final = 50
"""What it takes to arm a group and its members, in bytes of a blob that takes as long to decode."""

# Only these come out of a log.
_STATES: Final = (GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE)

V = TypeVar("V")


class StoredGroups(Protocol):
    """The groups of a snapshot."""

    def sizes(self) -> dict[str, int]:
        """Which they are, and a measure of how much each is."""

    def read(self, name: str) -> object:
        """What `plain_of` gave for this one."""


# ---------------------------------------------------------------- a group in plain values


class _Plain(NamedTuple):
    """The fields of a group, in the order of a blob."""

    state: int
    state_since_ms: int
    generation_id: int
    newest_generation_id: int
    generation_recorded: bool
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str
    members: "Sequence[_PlainMember]"
    offsets: "Sequence[_Columns]"


_PlainMember = tuple[
    str, str | None, str, str, int, int, str, Sequence[tuple[str, bytes]], bytes
]  # member, instance, client, host, session, rebalance timeout, type, protocols, assignment

_Columns = tuple[
    str, list[int], list[int], list[int], list[str], list[int], list[int], list[bytes]
]  # topic, partitions, and the fields of CommittedOffset


def plain_of(group: Group) -> object:
    """What msgpack takes: a list of plain values and lists of these."""
    return _Plain(
        _STATES.index(group.state),
        group.state_since_ms,
        group.generation_id,
        group.newest_generation_id,
        group.generation_recorded,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        [
            (
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.protocol_type,
                member.protocols,
                member.assignment,
            )
            for member in group.members.values()
        ],
        [_columns(topic, commits) for topic, commits in group.offsets.items()],
    )


def _columns(topic: TopicName, commits: dict[int, CommittedOffset]) -> _Columns:
    rows = map(astuple, commits.values())
    offsets, epochs, metadata, committed, expire, ids = zip(*rows, strict=True)
    return (
        topic,
        list(commits),
        list(offsets),
        _column(epochs),
        _column(metadata),
        _column(committed),
        _column(expire),
        [topic_id.bytes for topic_id in _column(ids)],
    )


def _column(values: Sequence[V]) -> list[V]:
    """All of them, or one that stands for all."""
    first = values[0]
    return [first] if values.count(first) == len(values) else list(values)


def _values(column: list[V]) -> Iterable[V]:
    return repeat(column[0]) if len(column) == 1 else column


def group_of(group_id: GroupId, plain: object) -> Group:
    """The group that `plain_of` was asked about."""
    stored = _Plain._make(cast("Iterable[object]", plain))
    group = Group(group_id, stored.state_since_ms)
    group.generation_id = GenerationId(stored.generation_id)
    group.newest_generation_id = GenerationId(stored.newest_generation_id)
    group.generation_recorded = stored.generation_recorded
    group.protocol_name = stored.protocol_name
    group.leader_id = MemberId(stored.leader_id)
    for member in stored.members:
        group.admit(_member_of(member))
    group.protocol_type = stored.protocol_type
    group.state = _STATES[stored.state]
    if group.state is GroupState.COMPLETING_REBALANCE:
        group.previous_state = GroupState.PREPARING_REBALANCE
        group.pending_sync_ids = set(group.members)
    group.subscribed_topics = subscribed_topics(
        group.protocol_type,
        group.protocol_name,
        (member.metadata_for(group.protocol_name) for member in group.members.values()),
    )
    for topic, partitions, offsets, epochs, metadata, committed, expire, ids in stored.offsets:
        rows = zip(
            offsets,
            _values(epochs),
            _values(metadata),
            _values(committed),
            _values(expire),
            _values([read_uuid(raw) for raw in ids]),
            strict=False,  # what stands once has no end
        )
        # Interned: thousands of groups that read one topic share its name.
        group.offsets[TopicName(intern(topic))] = dict(
            zip(partitions, starmap(CommittedOffset, rows), strict=True)
        )
    return group


def _member_of(plain: _PlainMember) -> Member:
    member_id, instance_id, client, host, session_ms, rebalance_ms, kind, protocols, assigned = (
        plain
    )
    offered: Protocols = tuple((name, metadata) for name, metadata in protocols)
    return Member(
        member_id=MemberId(member_id),
        group_instance_id=None if instance_id is None else GroupInstanceId(instance_id),
        client_id=client,
        client_host=host,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type=kind,
        protocols=offered,
        assignment=assigned,
    )


# ---------------------------------------------------------------- the groups of a load


class LoadStart(NamedTuple):
    """What is known before the first record that a load reads."""

    groups: StoredGroups | None
    position: Position
    skipped: Sequence[RecordSkipped]


NOTHING: Final = LoadStart(None, 0, ())


class Image:
    """The groups that a log tells of, while it is read and until the shard has taken them all."""

    __slots__ = ("_decoded", "_left", "_left_bytes", "_snapshot", "skipped")

    def __init__(self, load_start: LoadStart) -> None:
        self._snapshot = load_start.groups
        # Of the snapshot, those that nobody needed yet, and how much each is.
        self._left: dict[GroupId, int] = {}
        if load_start.groups is not None:
            self._left = cast("dict[GroupId, int]", load_start.groups.sizes())
        self._left_bytes = sum(self._left.values())
        self._decoded: dict[GroupId, Group] = {}
        self.skipped = list(load_start.skipped)

    def apply(self, record: StoredRecord) -> None:
        """Write a record of the log into the groups. Raises UnreadableRecord."""
        nothing = apply_record(self, record)
        if nothing is not None and len(self.skipped) < SKIPPED_KEPT_MAX:
            self.skipped.append(nothing)

    # The table that apply_record writes.

    def get(self, group_id: GroupId, /) -> Group | None:
        group = self._decoded.get(group_id)
        if group is None and group_id in self._left:
            group = self._decode(group_id)
            self._left_bytes -= self._left.pop(group_id)
            self._decoded[group_id] = group
        return group

    def _decode(self, group_id: GroupId) -> Group:
        assert self._snapshot is not None
        return group_of(group_id, self._snapshot.read(group_id))

    def __setitem__(self, group_id: GroupId, group: Group, /) -> None:
        assert group_id not in self._left, "it was not looked at first"
        self._decoded[group_id] = group

    def __delitem__(self, group_id: GroupId, /) -> None:
        del self._decoded[group_id]

    # What the shard asks.

    def __len__(self) -> int:
        return len(self._decoded) + len(self._left)

    def __contains__(self, group_id: GroupId) -> bool:
        return group_id in self._decoded or group_id in self._left

    def __iter__(self) -> Iterator[GroupId]:
        yield from self._decoded
        yield from self._left

    @property
    def cost(self) -> int:
        """What taking all of them takes, in bytes of blobs."""
        return self._left_bytes + GROUP_COST * len(self)

    def take(self, group_id: GroupId) -> Group | None:
        """Hand this group over; None if it is not here, or not any more."""
        group = self.get(group_id)
        if group is not None:
            del self._decoded[group_id]
        return group

    def take_next(self) -> tuple[Group, int] | None:
        """Hand any group over, and what that took; None when there is none left."""
        # From their ends: a dict whose first entries went is searched from its beginning each time.
        if self._decoded:
            _, group = self._decoded.popitem()
            cost = GROUP_COST
        elif self._left:
            group_id, size = self._left.popitem()
            self._left_bytes -= size
            group, cost = self._decode(group_id), GROUP_COST + size
        else:
            return None
        return group, cost + MEMBER_COST * len(group.members)

    # What the writer of the next snapshot asks.

    def unread(self) -> Iterator[GroupId]:
        """Those that are as the snapshot has them."""
        return iter(self._left)

    def read(self) -> Iterator[tuple[GroupId, Group]]:
        """Those that records were about."""
        return iter(self._decoded.items())
