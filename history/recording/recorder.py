"""Which facts of a group's history follow from what the coordinator just decided?

Turns the coordinator's events into the history's (history/entries.py), names the cause of each
rebalance, and keeps what one needs until it is over: whose partitions it takes from whom. Told of a
turn before its events are written in, so that a group can be asked how it was.
docs/history.md has the rules; rebalance_start.py and history/story.py apply them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from coordinator.classic.events import (
    AssignmentReceived,
    GenerationBegun,
    GroupEmptied,
    GroupStabilized,
    MemberRejoined,
    MembersRemoved,
    MemberSynced,
    PendingMemberRemoved,
    RebalanceBegun,
    StaticMemberReplaced,
)
from coordinator.classic.group_view import ClassicGroupView
from coordinator.events import Event, GroupDeleted
from coordinator.member_identity import MemberIdentity
from coordinator.offsets.events import OffsetsCommitted, OffsetsDeleted
from history.causes import End, Removal
from history.entries import (
    AssignmentReceivedEntry,
    GenerationBegunEntry,
    GroupEmptiedEntry,
    GroupLoadedEntry,
    HistoryEntry,
    JoinedMember,
    MemberRemoval,
    MembersRemovedEntry,
    NobodyRejoinedEntry,
    PartitionMove,
    RebalanceEndedEntry,
    RequestClient,
    StaticMemberReplacedEntry,
    TopicPartitionCounts,
    TopicsChangedEntry,
)
from history.index import HistoryIndex
from history.ownership import Holdings, Shift, count_of
from history.recording.assignments import held_and_described
from history.recording.attribution import (
    last_heard_ms,
    owner_of,
    process_of,
    removal_of,
    what_changed,
    who_of,
)
from history.recording.changed_topics import ChangedTopics
from history.recording.offset_changes import offset_facts
from history.recording.plain_events import fact_of
from history.recording.rebalance_start import Circumstances, began
from history.recording.running_rebalance import (
    Away,
    Came,
    Offered,
    Removed,
    Running,
    interrupted,
    or_none,
    polls_too_rarely_ms,
    release_joined,
    release_rejoined,
)
from history.recording.steady_commits import SteadyCommits
from history.repeats import Repeats
from history.story import end
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupId, GroupState, MemberId
from seams.now import Now

INTERRUPTED_MIN_MS: Final = 60_000
"""For at least so long after a restart a rebalance is the restart's, if one was cut off by it."""

LOADED_MS: Final = 10_000
"""A leader that rejoins so soon after a load had to look at its metadata anew: it lost us."""

T = TypeVar("T")
Known = TypeVar("Known", Removed, Offered, Came)


class FactLimits(Struct, frozen=True):
    members: int = 200  # of a list in one record; the slowest come first
    moves: int = 200  # partitions by name in one record
    assignment_bytes: int = 1 << 20  # of all members; beyond it nothing is said of partitions
    offsets: int = 1_000  # in one record; more go into several


class Facts:
    """Not thread-safe: one for the whole coordinator, on its loop."""

    def __init__(self, index: HistoryIndex, limits: FactLimits) -> None:
        self.steady = SteadyCommits()
        self.away = Away()  # until a start is over
        self._index = index
        self.limits = limits
        self._repeats = Repeats()
        self._running: dict[GroupId, Running] = {}
        self._left_over: dict[GroupId, Holdings] = {}  # partitions between two cooperative steps
        self._interrupted: dict[GroupId, int] = {}  # -> until when it counts, monotonic ms
        self._loaded: dict[GroupId, int] = {}  # likewise: groups with members
        self._topics = ChangedTopics()
        self._removed: Removed | None = None
        self._offered: Offered | None = None
        self._came: Came | None = None

    # ------------------------------------------------------------ what is asked

    def of(
        self, group: ClassicGroupView | None, happened: Iterable[Event], now: Now
    ) -> list[HistoryEntry]:
        """The facts of one turn, which are in the index then."""
        found: list[HistoryEntry] = []
        for event in happened:
            tell = _TELLING.get(type(event))
            fresh: Iterable[HistoryEntry] = ()
            if tell is not None:
                fresh = tell(self, group, event, now)
            else:
                fact = fact_of(group, event)
                if isinstance(fact, NobodyRejoinedEntry):
                    fact = fact.after(self._repeats.count(fact.group_id, now.mono_ms))
                elif isinstance(fact, TopicsChangedEntry):
                    fact = replace(fact, changes=self._topics.numbers(fact.topics))
                if fact is not None:
                    fresh = (fact,)
            for one in fresh:
                self._index.apply(one)
                found.append(one)
        return found

    def loaded(self, group: ClassicGroupView, now: Now) -> list[HistoryEntry]:
        """The facts of a group that this process serves from now on."""
        group_id = group.group_id
        running = self._index.running(group_id)
        self._running.pop(group_id, None)
        self._left_over.pop(group_id, None)
        found: list[HistoryEntry] = []
        if running is not None:
            goes_on = (
                group.state is GroupState.COMPLETING_REBALANCE
                and running.generation_after == group.generation_id
            )
            if goes_on:
                passed_ms = max(0, now.wall_ms - running.began_at_ms)
                self._running[group_id] = Running(now.mono_ms - passed_ms, None)
                running = None
            else:
                found.append(interrupted(group_id, running, group, now))
                longest_ms = max(group.rebalance_timeout_ms, INTERRUPTED_MIN_MS)
                self._interrupted[group_id] = now.mono_ms + longest_ms
        if group.members or running is not None:
            self._loaded[group_id] = now.mono_ms + LOADED_MS
            found.append(
                GroupLoadedEntry(
                    group_id,
                    now.wall_ms,
                    group.generation_id,
                    str(group.state),
                    len(group.members),
                    running is not None,
                    self.away.away_ms,
                    self.away.stopped,
                    group.protocol_type or "",
                )
            )
        for one in found:
            self._index.apply(one)
        return found

    def left_running(self, is_known: Callable[[GroupId], bool], now: Now) -> list[HistoryEntry]:
        """After a start: what ran in groups that are not there any more is over."""
        found: list[HistoryEntry] = []
        for group_id in self._index.groups():
            running = self._index.running(group_id)
            if running is not None and not is_known(GroupId(group_id)):
                found.append(interrupted(GroupId(group_id), running, None, now))
        for one in found:
            self._index.apply(one)
        return found

    def clear(self) -> None:
        """Forget what runs; what changed in the topics is known as before."""
        self._running.clear()
        self._left_over.clear()
        self._interrupted.clear()
        self._loaded.clear()
        self.steady.clear()
        self._topics.forget_groups()
        self._removed = self._offered = self._came = None

    def topics_changed(self, changes: Sequence[TopicPartitionCounts], now: Now) -> None:
        """Topics came, went, or got more partitions: their consumers will find out."""
        self._topics.note(changes, now)

    def unowned_seconds(self, group_id: str, now: Now) -> float | None:
        """So far, in the rebalance that runs."""
        running = self._running.get(GroupId(group_id))
        if running is None:
            return None
        unowned_ms = or_none(running, lambda shift: shift.unowned_ms(now.mono_ms))
        return None if unowned_ms is None else round(unowned_ms / 1000, 3)

    def began_ms(self, group_id: str) -> int | None:
        """Since when, on the monotonic clock, the rebalance runs."""
        running = self._running.get(GroupId(group_id))
        return None if running is None else running.began_ms

    def stable_ms(self, group_id: str) -> int | None:
        """When the assignments were handed out, if only some members have yet to fetch theirs."""
        running = self._running.get(GroupId(group_id))
        return None if running is None else running.stable_ms

    # ------------------------------------------------------------ members come and go

    def _member_rejoined(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, MemberRejoined)
        assert group is not None
        member = group.members[event.member.member_id]
        running = self._running.get(group.group_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            release_rejoined(running, member, event.protocols, group.protocol_name, now)
        else:
            changed = what_changed(
                member.protocols, event.protocols, group.protocol_name, group.protocol_type
            )
            self._offered = Offered(group.group_id, now.mono_ms, *changed)
        yield from ()

    def _static_member_replaced(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, StaticMemberReplaced)
        assert group is not None
        old = group.members[event.old_member_id]
        heard_ms = last_heard_ms(old, now)
        replaced = process_of(old, self._index.rebalances(group.group_id))
        self._came = Came(group.group_id, now.mono_ms, replaced)
        running = self._running.get(group.group_id)
        if running is not None and running.shift is not None:
            running.shift.release(owner_of(old), heard_ms)
        elif not event.settled:
            owners = [(owner_of(old), old.assignment, heard_ms)]
            self._removed = Removed(group.group_id, now.mono_ms, Removal.LEFT, {}, 0, owners, {})
        if running is not None and event.old_member_id in running.to_sync:
            running.to_sync.remove(event.old_member_id)
            running.to_sync.add(event.member.member_id)
        partitions = None
        if group.protocol_type == PROTOCOL_TYPE:
            partitions = count_of(old.assignment, self.limits.assignment_bytes)
        yield StaticMemberReplacedEntry(
            event.group_id,
            event.at_ms,
            who_of(event.member),
            event.old_member_id,
            group.generation_id,
            len(group.members),
            event.settled,
            event.reason,
            replaced,
            now.mono_ms - heard_ms,
            partitions,
        )

    def _members_removed(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, MembersRemoved)
        assert group is not None
        removal = removal_of(event)
        gone: list[MemberRemoval] = []
        owners: list[tuple[str, bytes, int]] = []
        silent: dict[MemberId, tuple[int, int]] = {}
        running = self._running.get(group.group_id)
        for removed in event.removed:
            member = group.members[removed.member.member_id]
            silent_ms = timeout_ms = None
            heard_ms = now.mono_ms
            if removal is Removal.SESSION_EXPIRED:
                heard_ms = last_heard_ms(member, now)
                silent_ms, timeout_ms = now.mono_ms - heard_ms, member.session_timeout_ms
                silent[member.member_id] = silent_ms, timeout_ms
            gone.append(
                MemberRemoval(who_of(removed.member), removed.reason, silent_ms, timeout_ms)
            )
            owners.append((owner_of(member), member.assignment, heard_ms))
            if running is not None and running.shift is not None:
                running.shift.gone(owner_of(member), heard_ms)
        asker = RequestClient(event.client_id, event.client_host) if event.client_id else None
        settled = sum(not group.members[one.member.member_id].is_new for one in event.removed)
        whos = {MemberId(one.member.member_id): one.member for one in gone}
        if removal is Removal.OPERATOR and asker is not None:
            whos = {
                member_id: who._replace(client_id=asker.client_id, client_host=asker.client_host)
                for member_id, who in whos.items()
            }
        reasons = {one.member.member_id: one.reason for one in event.removed if one.reason}
        poll_ms = polls_too_rarely_ms(group, event, now)
        self._removed = Removed(
            group.group_id, now.mono_ms, removal, whos, settled, owners, reasons, silent, poll_ms
        )
        shown, left_out = self._cut(gone)
        yield MembersRemovedEntry(
            group.group_id, now.wall_ms, removal, event.generation_id, shown, left_out, asker
        )
        if running is not None and running.stable_ms is not None:
            running.to_sync -= whos.keys()
            yield from self._end_if_all_synced(group.group_id, running, now)

    def _pending_removed(
        self, _: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        """No member yet, and no fact; but when one leaves, the group rebalances."""
        assert isinstance(event, PendingMemberRemoved)
        who = MemberIdentity(event.member_id, None, event.client_id, event.client_host)
        whos = {event.member_id: who}
        reasons = {event.member_id: event.reason} if event.reason else {}
        self._removed = Removed(event.group_id, now.mono_ms, Removal.LEFT, whos, 0, [], reasons)
        yield from ()

    # ------------------------------------------------------------ a rebalance, step by step

    def _begun(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, RebalanceBegun)
        assert group is not None
        group_id = group.group_id
        removed = self._in_this_turn(self._removed, group_id, now)
        offered = self._in_this_turn(self._offered, group_id, now)
        came = self._in_this_turn(self._came, group_id, now)
        self._removed = self._offered = self._came = None

        before = self._running.get(group_id)
        shift = None
        if before is not None and before.stable_ms is None:
            shift = or_none(before, lambda shift: shift.handed_on(now.mono_ms))
            yield self._end(group_id, before, End.OVERTAKEN, now)
        elif before is not None:
            yield self._end(group_id, before, End.STABLE, now)
        gave_up = {held.owner for held in self._left_over.get(group_id, {}).values()}
        if shift is None:
            shift = self._new_shift(group, removed)
        if shift is not None and not release_joined(shift, group, removed):
            shift = None
        known = Circumstances(
            removed,
            offered,
            came,
            self._topics.of(group, self._index.rebalances(group_id), self.limits.moves, now),
            frozenset(gave_up),
            was_cut_off=now.mono_ms <= self._interrupted.pop(group_id, -1),
            is_loaded_now=now.mono_ms <= self._loaded.pop(group_id, -1),
        )
        running = self._running[group_id] = Running(now.mono_ms, shift)
        running.changed = known.changed
        waiting_for, left_out = self._cut([who_of(name) for name in event.waiting_for])
        yield replace(
            began(group, event, known, now), waiting_for=waiting_for, waiting_for_left_out=left_out
        )

    @staticmethod
    def _in_this_turn(known: Known | None, group_id: GroupId, now: Now) -> Known | None:
        is_ours = known is not None and (known.group_id, known.now_ms) == (group_id, now.mono_ms)
        return known if is_ours else None

    def _new_shift(self, group: ClassicGroupView, removed: Removed | None) -> Shift | None:
        left_over = self._left_over.pop(group.group_id, None)
        if group.protocol_type != PROTOCOL_TYPE:
            return None
        before = {owner_of(member): member.assignment for member in group.members.values()}
        if removed is not None:
            before.update({owner: assignment for owner, assignment, _ in removed.owners})
        if sum(map(len, before.values())) > self.limits.assignment_bytes:
            return None
        return Shift(before, left_over)

    def _generation_begun(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, GenerationBegun)
        assert group is not None
        running = self._running.get(group.group_id)
        began_ms = now.mono_ms if running is None else running.began_ms
        joined = [
            JoinedMember(who_of(join.member), max(0, now.mono_ms - join.waited_ms - began_ms))
            for join in event.joins
        ]
        joined.sort(key=lambda one: -one.join_delay_ms)
        shown, left_out = self._cut(joined)
        absent, _ = self._cut([who_of(name) for name in event.absent])
        yield GenerationBegunEntry(
            group.group_id,
            now.wall_ms,
            event.generation_id,
            event.protocol_type,
            event.protocol_name,
            event.leader_id,
            len(group.members),
            shown,
            left_out,
            absent,
        )

    def _assigned(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, AssignmentReceived)
        assert group is not None
        if not event.fits:
            return
        running = self._running.get(group.group_id)
        names = {member.member_id: owner_of(member) for member in group.members.values()}
        assignments = {
            names.get(member_id, member_id): assignment
            for member_id, assignment in event.assignments.items()
        }
        moved = None
        if running is not None and sum(map(len, assignments.values())) <= (
            self.limits.assignment_bytes
        ):
            moved = or_none(running, lambda shift: shift.assign(assignments))
        if moved is None and running is not None:
            running.shift = None  # it cannot be read, or is too much: nothing is said of it
        partitions = None
        if moved is not None and running is not None and running.shift is not None:
            partitions = running.shift.partitions
            self._topics.handed_out(group.group_id, running.changed, running.shift, now)
        held, described = held_and_described(group, event.assignments, self.limits.assignment_bytes)
        moves = tuple(PartitionMove(*one) for one in (moved or ())[: self.limits.moves])
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
            held[: self.limits.members],
            described,
        )

    def _stabilized(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, GroupStabilized)
        assert group is not None
        running = self._running.get(group.group_id)
        if running is None:
            return
        running.stable_ms = now.mono_ms
        running.to_sync = set(group.pending_sync_ids)
        if running.shift is not None:
            for member_id in event.answered:
                running.shift.answered(owner_of(group.members[member_id]), now.mono_ms)
        yield from self._end_if_all_synced(group.group_id, running, now)

    def _synced(
        self, group: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, MemberSynced)
        assert group is not None
        running = self._running.get(group.group_id)
        if running is None or running.stable_ms is None:
            return
        running.to_sync.discard(event.member_id)
        if running.shift is not None:
            running.shift.answered(owner_of(group.members[event.member_id]), now.mono_ms)
        yield from self._end_if_all_synced(group.group_id, running, now)

    def _emptied(
        self, _: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        assert isinstance(event, GroupEmptied)
        emptied = GroupEmptiedEntry(event.group_id, now.wall_ms, event.generation_id)
        yield emptied
        running = self._running.get(event.group_id)
        if running is not None:
            yield self._end(event.group_id, running, End.EMPTY, now)

    def _end_if_all_synced(
        self, group_id: GroupId, running: Running, now: Now
    ) -> Iterator[HistoryEntry]:
        if not running.to_sync:
            yield self._end(group_id, running, End.STABLE, now)

    def _end(self, group_id: GroupId, running: Running, how: End, now: Now) -> HistoryEntry:
        """It lasted until the assignments were handed out; partitions may lack an owner longer."""
        del self._running[group_id]
        unowned_ms = or_none(running, lambda shift: shift.unowned_ms(now.mono_ms))
        if how is End.STABLE:
            left_over = or_none(running, lambda shift: shift.left_over(now.mono_ms))
            if left_over:
                self._left_over[group_id] = left_over
        story = self._index.running(group_id)
        assert story is not None, "a rebalance without a story"
        until_ms = now.mono_ms if running.stable_ms is None else running.stable_ms
        ended_at_ms = story.began_at_ms + until_ms - running.began_ms
        return RebalanceEndedEntry(group_id, now.wall_ms, end(story, how, ended_at_ms, unowned_ms))

    # ------------------------------------------------------------ offsets, and the whole group

    def _offsets_moved(
        self, _: ClassicGroupView | None, event: Event, now: Now
    ) -> Iterator[HistoryEntry]:
        if isinstance(event, GroupDeleted):
            self._left_over.pop(event.group_id, None)
            self._interrupted.pop(event.group_id, None)
            self._topics.forget(event.group_id)
            self._loaded.pop(event.group_id, None)
        yield from offset_facts(event, now.wall_ms, self.limits.offsets, self.steady)

    def _cut(self, things: Sequence[T]) -> tuple[tuple[T, ...], int]:
        shown = tuple(things[: self.limits.members])
        return shown, len(things) - len(shown)


_Tell = Callable[[Facts, ClassicGroupView | None, Event, Now], Iterable[HistoryEntry]]

_TELLING: Final[dict[type, _Tell]] = {
    MemberRejoined: Facts._member_rejoined,
    StaticMemberReplaced: Facts._static_member_replaced,
    MembersRemoved: Facts._members_removed,
    PendingMemberRemoved: Facts._pending_removed,
    RebalanceBegun: Facts._begun,
    GenerationBegun: Facts._generation_begun,
    AssignmentReceived: Facts._assigned,
    GroupStabilized: Facts._stabilized,
    MemberSynced: Facts._synced,
    GroupEmptied: Facts._emptied,
    OffsetsCommitted: Facts._offsets_moved,
    OffsetsDeleted: Facts._offsets_moved,
    GroupDeleted: Facts._offsets_moved,
}
