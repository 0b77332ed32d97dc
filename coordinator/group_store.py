"""Group store: the groups of one shard, the ops that wait on them, and the log behind both.

A turn writes twice, in this order: `append` to the log, `apply` to the groups. `schedule` parks the
ops that follow. The group counts and the next deadline are updated with each write. Nothing is
decided or answered here; that is shard.py.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.classic import events
from coordinator.classic.commands import Command
from coordinator.classic.delayed import DelayedHeartbeat, Op, join_slot, session_slot, sync_slot
from coordinator.classic.evolve import evolve
from coordinator.group import SESSION_PAUSED, Group
from coordinator.group_counts import GroupCounts
from coordinator.next_deadline import NextDeadline
from coordinator.offsets.events import GroupDeleted, OffsetsCommitted, OffsetsDeleted
from coordinator.offsets.evolve import evolve_offsets
from coordinator.records import batch_bytes_at_most
from coordinator.settings import GroupSettings
from protocol.names import GroupId, GroupState, MemberId
from purgatory.purgatory import Purgatory
from seams.now import Now
from storage.api import Log, Position, RecordPair

RECORDS_ALWAYS_ONE_BATCH: Final = 20
"""So few are never cut in two; what a single record may measure is decided before it gets here."""


class GroupStore:
    __slots__ = (
        "_gone_position",
        "_group_counts",
        "_log",
        "_next_deadline",
        "_settings",
        "groups",
        "purgatory",
    )  # fmt: skip

    def __init__(
        self,
        log: Log,
        settings: GroupSettings,
        group_counts: GroupCounts,
        next_deadline: NextDeadline,
    ) -> None:
        self.groups: dict[GroupId, Group] = {}
        self.purgatory: Purgatory[Command] = Purgatory()
        self._log = log
        self._settings = settings
        self._group_counts = group_counts
        self._next_deadline = next_deadline
        self._gone_position: Position = 0  # where the newest tombstone of a group ends

    # ------------------------------------------------------------ the log

    def append(self, records: Sequence[RecordPair], now: Now) -> Position | None:
        """Into the log as one batch; a long list of tombstones as several, in its order."""
        if not records:
            return None
        if (
            len(records) <= RECORDS_ALWAYS_ONE_BATCH
            or batch_bytes_at_most(records) <= self._settings.max_batch_bytes
        ):
            return self._log.append(records, now.wall_ms)
        middle = len(records) // 2
        self.append(records[:middle], now)
        return self.append(records[middle:], now)

    def members_stored_at(self, group_id: GroupId, position: Position) -> None:
        """The newest record about this group's members ends here."""
        self.groups[group_id].position = position

    def offsets_stored_at(self, group_id: GroupId, position: Position) -> None:
        """The newest record about this group's offsets ends here, or the one of its end."""
        group = self.groups.get(group_id)
        if group is None:
            self._gone_position = position
        else:
            group.offsets_position = position

    def position(self, group_id: GroupId) -> Position:
        """What must be stored before anybody is told about this group's members."""
        group = self.groups.get(group_id)
        return self._gone_position if group is None else group.position

    def offsets_position(self, group_id: GroupId) -> Position:
        group = self.groups.get(group_id)
        if group is None:
            return self._gone_position
        return max(group.position, group.offsets_position)

    # ------------------------------------------------------------ groups

    def apply(self, group_id: GroupId, happened: Iterable[events.Event]) -> None:
        """Write these events into the group, in their order."""
        for event in happened:
            # A member's commit first, for speed: it is these two events and nothing else.
            if isinstance(event, events.SessionExtended):
                group = self.groups[group_id]
                self._watch_session(group, event.member_id, event.session_deadline_ms)
                evolve(group, event)
            elif isinstance(event, OffsetsCommitted):
                evolve_offsets(self.groups[group_id], event)
            elif isinstance(event, events.GroupCreated):
                group = self.groups[group_id] = Group(group_id, event.at_ms)
                group.position = self._gone_position  # not known before its namesake's end is
                self._group_counts.came(group)
            elif isinstance(event, OffsetsDeleted):
                evolve_offsets(self.groups[group_id], event)
            elif isinstance(event, GroupDeleted):
                group = self.groups.pop(group_id)
                self._forget_ops(group)
                self._group_counts.went(group.state, len(group.members))
                evolve_offsets(group, event)
            else:
                self._apply_to_members(self.groups[group_id], event)

    def _apply_to_members(self, group: Group, event: events.MembershipEvent) -> None:
        gone: tuple[MemberId, ...] = ()
        if isinstance(event, events.MembersRemoved):
            gone = tuple(removed.member.member_id for removed in event.removed)
        elif isinstance(event, events.PendingMemberRemoved):
            gone = (event.member_id,)
        elif isinstance(event, events.StaticMemberReplaced):
            gone = (event.old_member_id,)
        elif isinstance(event, events.LapseForgiven):
            self._watch_session(group, event.member.member_id, event.session_deadline_ms)
        for member_id in gone:
            self.purgatory.cancel(session_slot(group.group_id, member_id))
        state, members = group.state, len(group.members)
        evolve(group, event)
        self._group_counts.changed(group, state, members)

    def drain(self) -> list[Group]:
        """Remove and return every group, and cancel all ops."""
        self.purgatory.cancel_all()
        groups = list(self.groups.values())
        self.groups.clear()
        for group in groups:
            self._group_counts.went(group.state, len(group.members))
        return groups

    # ------------------------------------------------------------ what waits on them

    def schedule(self, op: Op) -> None:
        """Park an op; the one that was in its slot is forgotten."""
        self.purgatory.cancel(op.slot)
        self.purgatory.watch(op)
        self._next_deadline.lower(op.deadline_ms)

    def _watch_session(self, group: Group, member_id: MemberId, deadline_ms: int) -> None:
        """A deadline that moves earlier than its op needs another op."""
        filed_ms = group.members[member_id].session_deadline_ms
        if deadline_ms < filed_ms and filed_ms != SESSION_PAUSED:
            self.schedule(DelayedHeartbeat(group.group_id, member_id, deadline_ms))

    def _forget_ops(self, group: Group) -> None:
        self.purgatory.cancel(group.group_id)
        for member_id in (*group.pending_member_ids, *group.members):
            self.purgatory.cancel(session_slot(group.group_id, member_id))

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        self.purgatory.check()
        for group_id, group in self.groups.items():
            assert group.group_id == group_id
            assert not group.lock.held, f"{group_id} is locked between turns"
            group.check()
            preparing = group.state is GroupState.PREPARING_REBALANCE
            waits = self.purgatory.watching(join_slot(group_id))
            assert waits or not preparing, f"nothing will ever complete the rebalance of {group_id}"
            waits = self.purgatory.watching(sync_slot(group_id))
            assert waits is bool(group.pending_sync_ids), f"who is {group_id} waiting for?"
            for member_id, member in group.members.items():
                waits = self.purgatory.watching(session_slot(group_id, member_id))
                parked = member.awaiting_join is not None or member.awaiting_sync is not None
                paused = member.session_deadline_ms == SESSION_PAUSED
                assert waits or paused, f"{member_id} would never expire"
                assert parked or not paused, f"nothing will ever start {member_id}'s session"
            for member_id in group.pending_member_ids:
                waits = self.purgatory.watching(session_slot(group_id, member_id))
                assert waits, f"the id {member_id} would never expire"
