"""Group store: the groups of one shard, the ops that wait on them, and the log behind both.

A turn writes twice, in this order: `append` to the log, `apply` to the groups. `schedule` parks the
ops that follow. The group counts and the next deadline are updated with each write. Nothing is
decided or answered here; that is shard.py.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, cast

from coordinator.classic.events import SessionExtended
from coordinator.commands import Command, Op
from coordinator.events import (
    ConversionRefused,
    Event,
    GroupConverted,
    GroupCreated,
    GroupDeleted,
    TypedEvent,
)
from coordinator.group_counts import GroupCounts
from coordinator.group_types import (
    AnyGroup,
    apply_event,
    check_group_timers,
    end_group,
    new_group,
)
from coordinator.offsets.events import (
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsPending,
    PendingOffsetsDeleted,
    PendingOffsetsEnded,
)
from coordinator.offsets.evolve import evolve_offsets, evolve_pending
from coordinator.offsets.transactions import no_transactions
from coordinator.records import batch_bytes_at_most
from coordinator.settings import GroupSettings
from protocol.names import GroupId
from purgatory.purgatory import Purgatory
from seams.next_deadline import NextDeadline
from seams.now import Now
from storage.api import BatchProducer, Log, Position, RecordPair

RECORDS_ALWAYS_ONE_BATCH: Final = 20
"""So few are never cut in two; the size of a single record was checked by the decision."""


_OFFSET_EVENTS: Final = (OffsetsCommitted, OffsetsDeleted)
_PENDING_EVENTS: Final = (OffsetsPending, PendingOffsetsEnded, PendingOffsetsDeleted)
_GROUP_EVENTS: Final = (GroupCreated, GroupDeleted, GroupConverted, ConversionRefused)
_EVENTS_OF_ALL_TYPES: Final = frozenset((*_OFFSET_EVENTS, *_PENDING_EVENTS, *_GROUP_EVENTS))


class GroupStore:
    __slots__ = (
        "_deleted_position",
        "_group_counts",
        "_log",
        "_next_deadline",
        "_settings",
        "groups",
        "purgatory",
        "transactions",
    )

    def __init__(
        self,
        log: Log,
        settings: GroupSettings,
        group_counts: GroupCounts,
        next_deadline: NextDeadline,
    ) -> None:
        self.groups: dict[GroupId, AnyGroup] = {}
        self.purgatory: Purgatory[Command] = Purgatory()
        self._log = log
        self._settings = settings
        self._group_counts = group_counts
        self._next_deadline = next_deadline
        self.transactions = no_transactions()  # of all groups, those not restored included
        self._deleted_position: Position = 0  # where the newest tombstone of a group ends

    # ------------------------------------------------------------ the log

    def append(
        self, records: Sequence[RecordPair], now: Now, producer: BatchProducer | None = None
    ) -> Position | None:
        """Append as one batch; a long list of tombstones as several, in its order."""
        if not records:
            return None
        if producer is not None:
            return self._append_pending(records, producer, now)
        if (
            len(records) <= RECORDS_ALWAYS_ONE_BATCH
            or batch_bytes_at_most(records) <= self._settings.max_batch_bytes
        ):
            return self._log.append(records, now.wall_ms)
        middle = len(records) // 2
        self.append(records[:middle], now)
        return self.append(records[middle:], now)

    def _append_pending(
        self, records: Sequence[RecordPair], producer: BatchProducer, now: Now
    ) -> Position:
        """A batch of the producer's transaction. Its decision saw to it that it is one."""
        first_offset = self._log.end_position
        position = self._log.append(records, now.wall_ms, producer)
        self.transactions.producers.wrote(
            producer.producer_id,
            producer.producer_epoch,
            first_offset,
            position - 1,
            len(records) - 1,
            now.wall_ms,
        )
        return position

    def members_stored_at(self, group_id: GroupId, position: Position) -> None:
        """The newest record about this group's members ends here."""
        self.groups[group_id].position = position

    def offsets_stored_at(self, group_id: GroupId, position: Position) -> None:
        """The newest record about this group's offsets ends here, or the one of its end."""
        group = self.groups.get(group_id)
        if group is None:
            self._deleted_position = position
        else:
            group.offsets_position = position

    def position(self, group_id: GroupId) -> Position:
        """What must be stored before an answer about this group's members may go out."""
        group = self.groups.get(group_id)
        return self._deleted_position if group is None else group.position

    def offsets_position(self, group_id: GroupId) -> Position:
        """What must be stored before an answer about this group's offsets may go out."""
        group = self.groups.get(group_id)
        if group is None:
            return self._deleted_position
        return max(group.position, group.offsets_position)

    # ------------------------------------------------------------ groups

    def apply(self, group_id: GroupId, events: Iterable[Event]) -> None:
        """Write these events into the group, in their order."""
        for event in events:
            # First what a member's commit consists of: it is the most frequent turn.
            if isinstance(event, SessionExtended):
                apply_event(self.groups[group_id], event, self)
            elif type(event) not in _EVENTS_OF_ALL_TYPES:  # one look in place of nine
                group = self.groups[group_id]
                state, members = group.state, len(group.members)
                apply_event(group, cast("TypedEvent", event), self)
                self._group_counts.changed(group, state, members)
            elif isinstance(event, _OFFSET_EVENTS):
                evolve_offsets(self.groups[group_id], event)
                if self.transactions.pending.by_group:
                    evolve_pending(self.transactions.pending, event)
            elif isinstance(event, _GROUP_EVENTS):
                self._apply_to_groups(group_id, event)
            elif isinstance(event, _PENDING_EVENTS):
                evolve_pending(self.transactions.pending, event)

    def _apply_to_groups(
        self,
        group_id: GroupId,
        event: GroupCreated | GroupDeleted | GroupConverted | ConversionRefused,
    ) -> None:
        match event:
            case GroupCreated():
                group = new_group(group_id, event.at_ms, event.group_type)
                # Answers about it wait for the end of an older group of its name.
                group.position = self._deleted_position
                self.add(group)
            case GroupDeleted():
                group = self.groups.pop(group_id)
                self._group_counts.removed(group)
                end_group(group, event.at_ms, self)
                group.offsets = {}
                self.transactions.pending.remove_group(group_id)
            case GroupConverted():
                self._convert(group_id, event)
            case ConversionRefused():
                pass  # for the log only

    def _convert(self, group_id: GroupId, event: GroupConverted) -> None:
        old = self.groups.pop(group_id)
        group = new_group(group_id, event.at_ms, event.to_type)
        group.offsets, old.offsets = old.offsets, {}
        group.position, group.offsets_position = old.position, old.offsets_position
        self._group_counts.removed(old)
        end_group(old, event.at_ms, self)
        self.add(group)

    def add(self, group: AnyGroup) -> None:
        """A group that was created or restored."""
        self.groups[group.group_id] = group
        self._group_counts.added(group)

    def drain(self) -> list[AnyGroup]:
        """Remove and return every group, and cancel all ops."""
        self.purgatory.cancel_all()
        groups = list(self.groups.values())
        self.groups.clear()
        for group in groups:
            self._group_counts.removed(group)
        return groups

    # ------------------------------------------------------------ what waits on them

    def schedule(self, op: Op) -> None:
        """Park an op; one that is in its slot already is cancelled."""
        self.purgatory.replace(op.slot, op)
        self._next_deadline.lower(op.deadline_ms)

    def cancel(self, key: Hashable) -> None:
        self.purgatory.cancel(key)

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        self.purgatory.check()
        for group_id, group in self.groups.items():
            assert group.group_id == group_id
            assert not group.lock.held, f"{group_id} is locked between turns"
            group.check()
            check_group_timers(group, self.purgatory.watching)
        self.transactions.producers.check()
        self.transactions.pending.check()
