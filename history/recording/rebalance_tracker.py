"""Rebalance tracker: the running rebalance of each group, from its first turn to its end.

Follows whose partitions a rebalance takes from whom, until the last member has its assignment, and
makes the entries of its steps. rebalance_start.py names the cause, history/ownership.py computes
what moved, history/story.py has the rest of what is known of a running rebalance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from coordinator.classic.events import (
    AssignmentReceived,
    GenerationBegun,
    GroupEmptied,
    GroupStabilized,
    MemberSynced,
    RebalanceBegun,
)
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from history.causes import End
from history.entries import (
    AssignmentReceivedEntry,
    GenerationBegunEntry,
    GroupEmptiedEntry,
    HistoryEntry,
    Rebalance,
    RebalanceEndedEntry,
)
from history.entry_values import (
    JoinedMember,
    PartitionMove,
    TopicPartitionCounts,
)
from history.index import HistoryIndex
from history.ownership import Holdings, OwnershipChange, chosen_metadata, owned_by_subscription
from history.recording.assignments import standby_and_description
from history.recording.attribution import owner_of
from history.recording.changed_topics import ChangedTopics
from history.recording.member_changes import MemberChanges, RemovedMembers
from history.recording.rebalance_start import Circumstances, rebalance_begun_entry
from history.recording.record_limits import RecordLimits
from history.story import end_rebalance
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupId, MemberId
from protocol.primitives import Malformed
from seams.now import Now

INTERRUPTED_MIN_MS: Final = 60_000
"""For at least so long after a start, a rebalance is attributed to it if it interrupted one."""

LOADED_MS: Final = 10_000
"""A leader that rejoins so soon after a load had lost its coordinator and refreshed metadata."""

T = TypeVar("T")


class RunningRebalance:
    """What is known of a running rebalance besides its story. Monotonic ms."""

    __slots__ = ("began_ms", "changed", "ownership", "stable_ms", "to_sync")

    def __init__(self, began_ms: int, ownership: OwnershipChange | None) -> None:
        self.began_ms = began_ms
        self.ownership = ownership  # None: the assignments are not a consumer's, or cannot be read
        self.changed: tuple[TopicPartitionCounts, ...] = ()  # that the assignment should include
        self.stable_ms: int | None = None  # when the assignments were handed out
        self.to_sync: set[MemberId] = set()  # the members that have not fetched theirs by then

    def read(self, question: Callable[[OwnershipChange], T]) -> T | None:
        """None if the assignments cannot be read: then they are not read again."""
        if self.ownership is None:
            return None
        try:
            return question(self.ownership)
        except Malformed:
            self.ownership = None
            return None


class RebalanceTracker:
    def __init__(self, index: HistoryIndex, limits: RecordLimits, topics: ChangedTopics) -> None:
        self._index = index
        self._limits = limits
        self._topics = topics
        self._running: dict[GroupId, RunningRebalance] = {}
        self._left_over: dict[GroupId, Holdings] = {}  # partitions between two cooperative steps
        self._interrupted: dict[GroupId, int] = {}  # -> until when it counts, monotonic ms
        self._loaded: dict[GroupId, int] = {}  # likewise: groups with members

    def clear(self) -> None:
        self._running.clear()
        self._left_over.clear()
        self._interrupted.clear()
        self._loaded.clear()

    def forget(self, group_id: GroupId) -> None:
        """The group was deleted."""
        self._left_over.pop(group_id, None)
        self._interrupted.pop(group_id, None)
        self._loaded.pop(group_id, None)

    def overtaken(self, group_id: GroupId, now: Now) -> Iterator[HistoryEntry]:
        """The group has another type from now on."""
        running = self._running.get(group_id)
        if running is not None:
            yield self._end(group_id, running, End.OVERTAKEN, now)
        self.forget(group_id)

    def running(self, group_id: str) -> RunningRebalance | None:
        return self._running.get(GroupId(group_id))

    # ------------------------------------------------------------ loads

    def load(self, group_id: GroupId) -> None:
        self._running.pop(group_id, None)
        self._left_over.pop(group_id, None)

    def resume(self, group_id: GroupId, began_at_ms: int, now: Now) -> None:
        """A rebalance continues after a load: its joins were answered before."""
        passed_ms = max(0, now.wall_ms - began_at_ms)
        self._running[group_id] = RunningRebalance(now.mono_ms - passed_ms, None)

    def interrupted_by_load(self, group: ClassicGroupView, now: Now) -> None:
        """The load ended a rebalance: the next one follows from that."""
        longest_ms = max(group.rebalance_timeout_ms, INTERRUPTED_MIN_MS)
        self._interrupted[group.group_id] = now.mono_ms + longest_ms

    def loaded_with_members(self, group_id: GroupId, now: Now) -> None:
        self._loaded[group_id] = now.mono_ms + LOADED_MS

    # ------------------------------------------------------------ steps

    def begin(
        self, group: ClassicGroupView, event: RebalanceBegun, changes: MemberChanges, now: Now
    ) -> Iterator[HistoryEntry]:
        group_id = group.group_id
        removed, replaced, offer = changes.take(group_id, now)
        before = self._running.get(group_id)
        ownership = None
        if before is not None and before.stable_ms is None:
            ownership = before.read(lambda change: change.handed_on(now.mono_ms))
            yield self._end(group_id, before, End.OVERTAKEN, now)
        elif before is not None:
            yield self._end(group_id, before, End.STABLE, now)
        revoking = {held.owner for held in self._left_over.get(group_id, {}).values()}
        if ownership is None:
            ownership = self._new_ownership(group, removed)
        if ownership is not None and not _release_joined(ownership, group, removed):
            ownership = None
        rebalances = self._index.rebalances(group_id)
        known = Circumstances(
            removed,
            offer,
            replaced,
            self._topics.of(group, rebalances, self._limits.moves, now),
            frozenset(revoking),
            was_interrupted=now.mono_ms <= self._interrupted.pop(group_id, -1),
            is_just_loaded=now.mono_ms <= self._loaded.pop(group_id, -1),
        )
        running = self._running[group_id] = RunningRebalance(now.mono_ms, ownership)
        running.changed = known.changed
        waiting_for, left_out = self._limits.cut(event.waiting_for)
        yield replace(
            rebalance_begun_entry(group, event, known, now),
            waiting_for=waiting_for,
            waiting_for_left_out=left_out,
        )

    def _new_ownership(
        self, group: ClassicGroupView, removed: RemovedMembers | None
    ) -> OwnershipChange | None:
        left_over = self._left_over.pop(group.group_id, None)
        if group.protocol_type != PROTOCOL_TYPE:
            return None
        before = {owner_of(member): member.assignment for member in group.members.values()}
        if removed is not None:
            before.update({gone.owner: gone.assignment for gone in removed.owners})
        if sum(map(len, before.values())) > self._limits.assignment_bytes:
            return None
        return OwnershipChange(before, left_over)

    def rejoined(
        self,
        group: ClassicGroupView,
        member: ClassicMemberView,
        offers: Iterable[tuple[str, bytes]],
        now: Now,
    ) -> None:
        """A member rejoined while the rebalance runs; only its first join counts, and is read."""
        running, owner = self._running.get(group.group_id), owner_of(member)
        ownership = None if running is None else running.ownership
        if running is None or ownership is None or ownership.is_released(owner):
            return
        kept = owned_by_subscription(chosen_metadata(offers, group.protocol_name))
        if kept is None:
            running.ownership = None  # too large to be read
        else:
            ownership.release(owner, now.mono_ms, kept)

    def generation_begun(
        self, group: ClassicGroupView, event: GenerationBegun, now: Now
    ) -> HistoryEntry:
        running = self._running.get(group.group_id)
        began_ms = now.mono_ms if running is None else running.began_ms

        waited_ms = event.waited_ms
        slowest = sorted(range(len(waited_ms)), key=waited_ms.__getitem__)[: self._limits.members]
        first = tuple(
            JoinedMember(event.joined[n], max(0, now.mono_ms - waited_ms[n] - began_ms))
            for n in slowest
        )
        left_out = len(waited_ms) - len(first)
        absent, _ = self._limits.cut(event.absent)
        return GenerationBegunEntry(
            group.group_id,
            now.wall_ms,
            event.generation_id,
            event.protocol_type,
            event.protocol_name,
            event.leader_id,
            len(group.members),
            first,
            left_out,
            absent,
        )

    def assigned(
        self, group: ClassicGroupView, event: AssignmentReceived, now: Now
    ) -> Iterator[HistoryEntry]:
        if not event.fits:
            return
        running = self._running.get(group.group_id)
        assignments = cast("Mapping[str, bytes]", event.assignments)
        if group.static_members:  # of a dynamic member the owner is its id
            owners = {member_id: owner for owner, member_id in group.static_members.items()}
            assignments = {
                owners.get(member_id, member_id): assignment
                for member_id, assignment in event.assignments.items()
            }
        bytes_max = self._limits.assignment_bytes
        moved = None
        if running is not None and event.assignment_bytes <= bytes_max:
            moved = running.read(lambda change: change.assign(assignments))
        if moved is None and running is not None:
            running.ownership = None  # unreadable or too large
        partitions = None
        if moved is not None and running is not None and running.ownership is not None:
            partitions = running.ownership.partitions
            self._topics.assigned(group.group_id, running.changed, running.ownership, now)
        standby, description = standby_and_description(
            group, event.assignments, event.assignment_bytes, bytes_max
        )
        moves = tuple(PartitionMove(*move) for move in (moved or ())[: self._limits.moves])
        yield AssignmentReceivedEntry(
            group.group_id,
            now.wall_ms,
            event.generation_id,
            event.leader_id,
            event.member_count,
            len(event.without_assignment),
            partitions,
            None if moved is None else len(moved),
            moves,
            0 if moved is None else len(moved) - len(moves),
            standby[: self._limits.members],
            description,
        )

    def stabilized(
        self, group: ClassicGroupView, event: GroupStabilized, now: Now
    ) -> Iterator[HistoryEntry]:
        running = self._running.get(group.group_id)
        if running is None:
            return
        running.stable_ms = now.mono_ms
        running.to_sync = set(group.pending_sync_ids)
        if running.ownership is not None:
            for member_id in event.answered:
                running.ownership.answered(owner_of(group.members[member_id]), now.mono_ms)
        yield from self.end_if_all_synced(group.group_id, running, now)

    def synced(
        self, group: ClassicGroupView, event: MemberSynced, now: Now
    ) -> Iterator[HistoryEntry]:
        running = self._running.get(group.group_id)
        if running is None or running.stable_ms is None:
            return
        running.to_sync.discard(event.member_id)
        if running.ownership is not None:
            running.ownership.answered(owner_of(group.members[event.member_id]), now.mono_ms)
        yield from self.end_if_all_synced(group.group_id, running, now)

    def emptied(self, event: GroupEmptied, now: Now) -> Iterator[HistoryEntry]:
        yield GroupEmptiedEntry(event.group_id, now.wall_ms, event.generation_id)
        running = self._running.get(event.group_id)
        if running is not None:
            yield self._end(event.group_id, running, End.EMPTY, now)

    # ------------------------------------------------------------ the end

    def end_if_all_synced(
        self, group_id: GroupId, running: RunningRebalance, now: Now
    ) -> Iterator[HistoryEntry]:
        if not running.to_sync:
            yield self._end(group_id, running, End.STABLE, now)

    def _end(
        self, group_id: GroupId, running: RunningRebalance, how: End, now: Now
    ) -> HistoryEntry:
        """It lasted until the assignments were handed out; partitions may lack an owner longer."""
        del self._running[group_id]
        unowned_ms = running.read(lambda change: change.unowned_ms(now.mono_ms))
        if how is End.STABLE:
            left_over = running.read(lambda change: change.left_over(now.mono_ms))
            if left_over:
                self._left_over[group_id] = left_over
        story = self._index.running(group_id)
        assert story is not None, "a rebalance without a story"
        until_ms = now.mono_ms if running.stable_ms is None else running.stable_ms
        ended_at_ms = story.began_at_ms + until_ms - running.began_ms
        rebalance = end_rebalance(story, how, ended_at_ms, unowned_ms)
        return RebalanceEndedEntry(group_id, now.wall_ms, rebalance)


def interrupted_entry(
    group_id: GroupId, running: Rebalance, generation: int | None, members: int, now: Now
) -> RebalanceEndedEntry:
    """The end of a rebalance that ran when the coordinator stopped; the numbers are as loaded."""
    if generation is None:
        generation = running.generation_before
    running = replace(running, generation_after=generation, members_after=members)
    rebalance = end_rebalance(running, End.INTERRUPTED, now.wall_ms)
    return RebalanceEndedEntry(group_id, now.wall_ms, rebalance)


def _release_joined(
    ownership: OwnershipChange, group: ClassicGroupView, removed: RemovedMembers | None
) -> bool:
    """Release the partitions of members that are gone or have rejoined. False: too large."""
    if removed is not None:
        for gone in removed.owners:
            if gone.owner in group.static_members:  # another process replaced it
                ownership.release(gone.owner, gone.heard_ms)
            else:
                ownership.gone(gone.owner, gone.heard_ms)
    for member in group.members.values():
        if member.awaiting_join is not None and not member.is_new:
            kept = owned_by_subscription(chosen_metadata(member.protocols, group.protocol_name))
            if kept is None:
                return False
            ownership.release(owner_of(member), member.join_parked_at_ms, kept)
    return True
