"""Image: the groups that a load reads, until the shard has restored them.

Records are written into it (`apply`). Groups of a snapshot are decoded when a record or a request
names them, or when the shard takes them in slices; until then they stay encoded.
Kafka has no counterpart: it replays its whole log.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol, cast

from coordinator.group_types import AnyGroup, group_of_plain
from coordinator.loaded_record import LoadedRecord, StoredCommits
from coordinator.offsets.transactions import OffsetTransactions, no_transactions
from coordinator.restore import (
    apply_commits,
    apply_marker,
    apply_record,
    apply_transactional_record,
    note_plain_record,
)
from coordinator.stored_records import RecordSkipped
from protocol.compiled_codec import function_in_c
from protocol.names import GroupId
from storage.api import Position, StoredMarker, StoredRecord

MEANING: Final = 3
"""Raise it when restore.py learns to read what it skipped, or keeps more of a group than before:
snapshots of another meaning are passed over, and the log is read."""

BEFORE_CONSUMER_GROUPS: Final = 1
"""Records of consumer groups were skipped then. A snapshot that skipped none is as good as ours."""

BEFORE_TRANSACTIONS: Final = 2
"""Records of open transactions were kept undecoded then. One that has none is as good as ours."""

SKIPPED_KEPT_MAX: Final = 20
"""Of the records that say nothing to us; enough to tell what kind they are."""

GROUP_COST: Final = 50
MEMBER_COST: Final = 50
"""What it takes to arm a group and its members, in bytes of a blob that takes as long to decode."""


_PLAIN_IN_C: Final = function_in_c("plain_of_blob")
"""It makes rows of the offsets at once. None is its answer to what it leaves to msgpack."""


class StoredGroups(Protocol):
    """The groups of a snapshot."""

    def sizes(self) -> dict[str, int]:
        """Which they are, and a measure of how much each is."""

    def raw(self, name: str) -> bytes:
        """This one as it was packed."""

    def read(self, name: str) -> object:
        """What `plain_of` gave for this one."""


# ---------------------------------------------------------------- the groups of a load


class LoadStart(NamedTuple):
    """What is known before the first record that a load reads."""

    groups: StoredGroups | None
    position: Position
    skipped: Sequence[RecordSkipped]
    transactions: OffsetTransactions | None = None


NOTHING: Final = LoadStart(None, 0, ())


class Image:
    """The groups of a log, while it is read and until the shard has taken them all."""

    __slots__ = ("_decoded", "_left", "_left_bytes", "_snapshot", "skipped", "transactions")

    def __init__(self, load_start: LoadStart) -> None:
        self._snapshot = load_start.groups
        # Of the snapshot, those that nobody needed yet, and how much each is.
        self._left: dict[GroupId, int] = {}
        if load_start.groups is not None:
            self._left = cast("dict[GroupId, int]", load_start.groups.sizes())
        self._left_bytes = sum(self._left.values())
        self._decoded: dict[GroupId, AnyGroup] = {}
        self.skipped = list(load_start.skipped)
        self.transactions = load_start.transactions or no_transactions()

    def apply(self, record: LoadedRecord) -> None:
        """Write what the log says next into the groups. Raises UnreadableRecord."""
        if isinstance(record, StoredCommits):
            apply_commits(self, record)
            pending = self.transactions.pending
            if pending.by_group:
                for partition in record.commits:
                    pending.supersede(record.group_id, record.topic, partition)
            return
        if isinstance(record, StoredRecord):
            nothing = apply_record(self, record)
            if self.transactions.pending.by_group:
                note_plain_record(self.transactions.pending, record)
        elif isinstance(record, StoredMarker):
            apply_marker(self, self.transactions, record)
            return
        else:
            nothing = apply_transactional_record(self, self.transactions, record)
        if nothing is not None and len(self.skipped) < SKIPPED_KEPT_MAX:
            self.skipped.append(nothing)

    # The table that apply_record writes.

    def get(self, group_id: GroupId, /) -> AnyGroup | None:
        group = self._decoded.get(group_id)
        if group is None and group_id in self._left:
            group = self._decode(group_id)
            self._left_bytes -= self._left.pop(group_id)
            self._decoded[group_id] = group
        return group

    def _decode(self, group_id: GroupId) -> AnyGroup:
        assert self._snapshot is not None
        plain = None if _PLAIN_IN_C is None else _PLAIN_IN_C(self._snapshot.raw(group_id))
        if plain is None:
            plain = self._snapshot.read(group_id)
        return group_of_plain(group_id, plain)

    def __setitem__(self, group_id: GroupId, group: AnyGroup, /) -> None:
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

    def take(self, group_id: GroupId) -> AnyGroup | None:
        """Hand this group over; None if it is not here, or not any more."""
        group = self.get(group_id)
        if group is not None:
            del self._decoded[group_id]
        return group

    def take_next(self) -> tuple[AnyGroup, int] | None:
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

    def read(self) -> Iterator[tuple[GroupId, AnyGroup]]:
        """Those that records were about."""
        return iter(self._decoded.items())
