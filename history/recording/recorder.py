"""History recorder: turns the coordinator's events into history entries.

Gets the events of each turn before they are applied to the group, so that it sees the group as it
was. Entries of a rebalance come from rebalance_tracker.py, those of offsets from offset_changes.py,
those without state from direct_entries.py. docs/history.md describes the rules for users.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, assert_never, cast, get_args

from coordinator.classic.events import (
    AssignmentDropped,
    AssignmentReceived,
    ChangedTopicsForgotten,
    ClassicEvent,
    ConsumerGroupDowngraded,
    GenerationBegun,
    GroupEmptied,
    GroupStabilized,
    InitialDelayExtended,
    JoinRefused,
    MemberAdded,
    MemberIdAssigned,
    MemberRejoined,
    MembersRemoved,
    MemberSynced,
    NoMemberRejoined,
    PendingMemberRemoved,
    RebalanceBegun,
    SessionExtended,
    SessionPaused,
    StaticMemberReplaced,
    SyncParked,
    TopicsChanged,
)
from coordinator.classic.evolve import evolve
from coordinator.classic.group import ClassicGroup
from coordinator.classic.group_view import ClassicGroupView
from coordinator.consumer.events import ConsumerEvent, ConsumerMemberRemoved
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.events import (
    ConversionRefused,
    Event,
    GroupConverted,
    GroupCreated,
    GroupDeleted,
)
from coordinator.group import GroupType
from coordinator.group_types import AnyGroupView, as_classic
from coordinator.member_identity import MemberIdentity
from coordinator.offsets import events as offset_events
from history.causes import Removal
from history.consumer_entries import GroupConvertedEntry
from history.entries import (
    GroupLoadedEntry,
    HistoryEntry,
    MembersRemovedEntry,
    NoMemberRejoinedEntry,
    StaticMemberReplacedEntry,
    TopicsChangedEntry,
)
from history.entry_values import (
    MemberRemoval,
    MemberWait,
    RequestClient,
    TopicPartitionCounts,
)
from history.index import HistoryIndex
from history.ownership import count_partitions
from history.recording.attribution import (
    last_heard_ms,
    offer_change,
    owner_of,
    process_of,
    removal_of,
)
from history.recording.changed_topics import ChangedTopics
from history.recording.consumer_recorder import ConsumerRecorder, is_of_consumers
from history.recording.consumer_state import ConsumerRecordingState
from history.recording.consumer_turn_recorder import REMOVALS, ConsumerTurnRecorder
from history.recording.direct_entries import WAITING_FOR_MAX, direct_entry
from history.recording.downtime import Downtime
from history.recording.member_changes import (
    ChangedOffer,
    MemberChanges,
    OwnerRelease,
    RemovedMembers,
    ReplacedProcess,
    exceeded_poll_interval_ms,
)
from history.recording.offset_changes import aborted_entries, offset_entries
from history.recording.rebalance_tracker import RebalanceTracker, interrupted_entry
from history.recording.record_limits import RecordLimits
from history.recording.steady_commits import SteadyCommits
from history.repeats import Repeats
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import NO_GENERATION, GroupId, GroupState, MemberId, TopicId, TopicName
from seams.now import Now

_ClassicTurnEvent = (
    GroupCreated
    | GroupDeleted
    | ClassicEvent
    | offset_events.OffsetEvent
    | offset_events.PendingOffsetEvent
)

_MembershipEvent = (
    MemberRejoined
    | MemberSynced
    | RebalanceBegun
    | GenerationBegun
    | AssignmentReceived
    | GroupStabilized
    | StaticMemberReplaced
    | MembersRemoved
)
_MEMBERSHIP_EVENTS: Final = frozenset(get_args(_MembershipEvent))


class HistoryRecorder:
    """Not thread-safe: one for the whole coordinator, on its loop."""

    def __init__(self, index: HistoryIndex, limits: RecordLimits) -> None:
        self.steady = SteadyCommits()
        self.downtime = Downtime()  # until the start is complete
        self.limits = limits
        self._index = index
        self._repeats = Repeats()
        self._topics = ChangedTopics()
        self._changes = MemberChanges()
        self._rebalances = RebalanceTracker(index, limits, self._topics)
        self.consumers = ConsumerRecorder(
            ConsumerRecordingState(index, limits, self._topics.numbers)
        )

    # ------------------------------------------------------------ turns

    def record(
        self, group: AnyGroupView | None, happened: Sequence[Event], now: Now
    ) -> list[HistoryEntry]:
        """The entries of one turn; they are applied to the index."""
        recorded: list[HistoryEntry] = []
        if is_of_consumers(group, happened):
            # One by one: what follows may read the index.
            for entry in self._consumer_turn(group, happened, now):
                self._index.apply(entry)
                recorded.append(entry)
            return recorded
        classic = as_classic(group)
        for event in cast("Sequence[_ClassicTurnEvent]", happened):
            for entry in self._entries(classic, event, now):
                self._index.apply(entry)
                recorded.append(entry)
        return recorded

    def _consumer_turn(
        self, group: AnyGroupView | None, happened: Sequence[Event], now: Now
    ) -> Iterator[HistoryEntry]:
        """A turn of a consumer group, or in which a group gets another type."""
        classic = as_classic(group)
        turn: ConsumerTurnRecorder | None = None
        if classic is None:
            before = cast("ConsumerGroupView | None", group)
            turn = self.consumers.turn(before, happened[0].group_id, happened, now)
        for event in happened:
            if isinstance(event, ConsumerEvent):
                assert turn is not None
                yield from turn.entries(event)
            elif isinstance(event, GroupConverted):
                yield from self._converted(classic, turn, event, now)
                if event.to_type is GroupType.CONSUMER:
                    turn, classic = self.consumers.turn(None, event.group_id, happened, now), None
                else:
                    turn, classic = None, ClassicGroup(event.group_id, event.at_ms)
            elif isinstance(event, ConsumerGroupDowngraded):
                downgraded = ClassicGroup(event.group_id, event.at_ms)
                evolve(downgraded, event)
                classic = downgraded
                self._changes.removed = self._removed_before_downgrade(happened, now)
            elif not isinstance(event, ConversionRefused):
                yield from self._entries(classic, event, now)
        if turn is not None:
            yield from turn.end()

    def _removed_before_downgrade(
        self, happened: Sequence[Event], now: Now
    ) -> RemovedMembers | None:
        """The members whose end was the reason: the rebalance in the next turn names them."""
        gone = [event for event in happened if isinstance(event, ConsumerMemberRemoved)]
        if not gone:
            return None
        silent = {
            event.member.member_id: (event.silent_ms, event.session_timeout_ms)
            for event in gone
            if event.silent_ms is not None and event.session_timeout_ms is not None
        }
        return RemovedMembers(
            gone[0].group_id,
            now.mono_ms,
            REMOVALS[gone[0].cause],
            {event.member.member_id: event.member for event in gone},
            len(gone),
            (),
            silent=silent,
        )

    def _converted(
        self,
        classic: ClassicGroupView | None,
        turn: ConsumerTurnRecorder | None,
        event: GroupConverted,
        now: Now,
    ) -> Iterator[HistoryEntry]:
        """A rebalance that runs ends with the type: the next one is of the new type."""
        generation: int = NO_GENERATION
        members = 0
        if classic is not None:
            yield from self._rebalances.overtaken(event.group_id, now)
            generation, members = classic.generation_id, len(classic.members)
        elif turn is not None:
            yield from turn.overtaken()
            generation, members = turn.epoch, turn.member_count
        yield GroupConvertedEntry(
            event.group_id,
            event.at_ms,
            str(event.from_type),
            str(event.to_type),
            event.reason,
            generation,
            members,
        )

    def _entries(
        self, group: ClassicGroupView | None, event: _ClassicTurnEvent, now: Now
    ) -> Iterable[HistoryEntry]:
        # First what a rebalance consists of: one look, where a match needs up to 13 cases.
        if type(event) in _MEMBERSHIP_EVENTS:
            assert group is not None
            return self._membership_entries(group, cast("_MembershipEvent", event), now)
        match event:
            case MemberAdded():
                return (direct_entry(group, event),)
            case offset_events.OffsetsCommitted() | offset_events.OffsetsDeleted():
                return offset_entries(event, now.wall_ms, self.limits.offsets, self.steady)
            case GroupDeleted():
                self._rebalances.forget(event.group_id)
                self.consumers.state.reconciliations.forget(event.group_id)
                self._topics.forget(event.group_id)
                return offset_entries(event, now.wall_ms, self.limits.offsets, self.steady)
            case offset_events.PendingOffsetsEnded():
                return aborted_entries(event, now.wall_ms, self.limits.offsets)
            case PendingMemberRemoved():
                self._pending_member_removed(event, now)
                return ()
            case GroupEmptied():
                return self._rebalances.emptied(event, now)
            case NoMemberRejoined():
                return self._nobody_rejoined(event, now)
            case TopicsChanged():
                topics = tuple(sorted(event.topics))
                numbers = self._topics.numbers(topics)
                return (TopicsChangedEntry(event.group_id, event.at_ms, topics, numbers),)
            case (
                MemberIdAssigned()
                | ConsumerGroupDowngraded()
                | JoinRefused()
                | SessionExtended()
                | SessionPaused()
                | InitialDelayExtended()
                | SyncParked()
                | AssignmentDropped()
                | ChangedTopicsForgotten()
                | offset_events.OffsetsPending()
                | offset_events.PendingOffsetsDeleted()
            ):
                return ()  # not recorded
            case (
                MemberRejoined()
                | MemberSynced()
                | RebalanceBegun()
                | GenerationBegun()
                | AssignmentReceived()
                | GroupStabilized()
                | StaticMemberReplaced()
                | MembersRemoved()
            ):
                raise AssertionError(f"{type(event).__name__} is one of _MEMBERSHIP_EVENTS")
            case _:
                return (direct_entry(group, event),)

    def _membership_entries(
        self,
        group: ClassicGroupView,
        event: _MembershipEvent,
        now: Now,
    ) -> Iterable[HistoryEntry]:
        match event:
            # Those of each member first.
            case MemberRejoined():
                self._member_rejoined(group, event, now)
                return ()
            case MemberSynced():
                return self._rebalances.synced(group, event, now)
            case RebalanceBegun():
                return self._rebalances.begin(group, event, self._changes, now)
            case GenerationBegun():
                return (self._rebalances.generation_begun(group, event, now),)
            case AssignmentReceived():
                return self._rebalances.assigned(group, event, now)
            case GroupStabilized():
                return self._rebalances.stabilized(group, event, now)
            case StaticMemberReplaced():
                return self._static_member_replaced(group, event, now)
            case MembersRemoved():
                return self._members_removed(group, event, now)
            case _:
                assert_never(event)

    # ------------------------------------------------------------ loads

    def loaded(self, loaded_group: AnyGroupView, now: Now) -> list[HistoryEntry]:
        """The entries of a group that this process serves from now on."""
        group = as_classic(loaded_group)
        if group is not None:
            recorded = self._classic_loaded(group, now)
        else:
            consumers = cast("ConsumerGroupView", loaded_group)
            recorded = self.consumers.loaded(consumers, self.downtime, now)
        for entry in recorded:
            self._index.apply(entry)
        return recorded

    def _classic_loaded(self, group: ClassicGroupView, now: Now) -> list[HistoryEntry]:
        group_id = group.group_id
        running = self._index.running(group_id)
        self._rebalances.load(group_id)
        recorded: list[HistoryEntry] = []
        if running is not None:
            continues = (
                group.state is GroupState.COMPLETING_REBALANCE
                and running.generation_after == group.generation_id
            )
            if continues:
                self._rebalances.resume(group_id, running.began_at_ms, now)
                running = None
            else:
                recorded.append(
                    interrupted_entry(
                        group_id, running, group.generation_id, len(group.members), now
                    )
                )
                self._rebalances.interrupted_by_load(group, now)
        if group.members or running is not None:
            self._rebalances.loaded_with_members(group_id, now)
            recorded.append(
                GroupLoadedEntry(
                    group_id,
                    now.wall_ms,
                    group.generation_id,
                    str(group.state),
                    len(group.members),
                    running is not None,
                    self.downtime.away_ms,
                    self.downtime.stopped,
                    group.protocol_type or "",
                )
            )
        return recorded

    def close_interrupted(
        self, is_known: Callable[[GroupId], bool], now: Now
    ) -> list[HistoryEntry]:
        """After a start: end the rebalances of groups that do not exist any more."""
        recorded: list[HistoryEntry] = []
        for group_id in self._index.groups():
            running = self._index.running(group_id)
            if running is not None and not is_known(GroupId(group_id)):
                recorded.append(interrupted_entry(GroupId(group_id), running, None, 0, now))
        for entry in recorded:
            self._index.apply(entry)
        return recorded

    def clear(self) -> None:
        """Forget the running rebalances; topic changes stay known."""
        self._rebalances.clear()
        self.consumers.state.clear()
        self.steady.clear()
        self._topics.forget_groups()
        self._changes.clear()

    def topics_changed(self, changes: Sequence[TopicPartitionCounts], now: Now) -> None:
        """Topics were created, deleted, or got partitions: their consumers will notice."""
        self._topics.add(changes, now)

    def name_topics(self, topic_name: Callable[[TopicId], TopicName | None]) -> None:
        """Assignments of consumer groups have topic ids; entries have names."""
        self.consumers.state.topic_name = topic_name

    # ------------------------------------------------------------ running rebalances

    def unowned_seconds(self, group_id: str, now: Now) -> float | None:
        """Partition-seconds without an owner so far, in the running rebalance."""
        reconciliation = self.consumers.state.reconciliations.running(group_id)
        if reconciliation is not None:
            return round(reconciliation.unowned_ms_until(now.mono_ms) / 1000, 3)
        running = self._rebalances.running(group_id)
        if running is None:
            return None
        unowned_ms = running.read(lambda change: change.unowned_ms(now.mono_ms))
        return None if unowned_ms is None else round(unowned_ms / 1000, 3)

    def began_ms(self, group_id: str) -> int | None:
        """Since when the rebalance runs, on the monotonic clock."""
        running = self._rebalances.running(group_id) or (
            self.consumers.state.reconciliations.running(group_id)
        )
        return None if running is None else running.began_ms

    def oldest_reconciliation_ms(self) -> int | None:
        """Since when the longest rebalance of a consumer group has lasted; None without one."""
        return self.consumers.state.reconciliations.oldest_ms()

    def waits_so_far(
        self, group_id: str, waits: Sequence[MemberWait], now: Now
    ) -> tuple[MemberWait, ...]:
        """The waits of a running rebalance; those for partitions with their time until now."""
        reconciliation = self.consumers.state.reconciliations.running(group_id)
        if reconciliation is None:
            return tuple(waits)
        return tuple(reconciliation.wait_so_far(wait, now) for wait in waits)

    def stable_ms(self, group_id: str) -> int | None:
        """When the assignments were handed out, if some members have not fetched theirs yet."""
        running = self._rebalances.running(group_id)
        return None if running is None else running.stable_ms

    # ------------------------------------------------------------ joins and leaves

    def _member_rejoined(self, group: ClassicGroupView, event: MemberRejoined, now: Now) -> None:
        member = group.members[event.member.member_id]
        if group.state is GroupState.PREPARING_REBALANCE:
            self._rebalances.rejoined(group, member, event.protocols, now)
            return
        change = offer_change(
            member.protocols, event.protocols, group.protocol_name, group.protocol_type
        )
        self._changes.offer = ChangedOffer(group.group_id, now.mono_ms, *change)

    def _static_member_replaced(
        self, group: ClassicGroupView, event: StaticMemberReplaced, now: Now
    ) -> Iterator[HistoryEntry]:
        old = group.members[event.old_member_id]
        heard_ms = last_heard_ms(old, now)
        replaced = process_of(old, self._index.rebalances(group.group_id))
        self._changes.replaced = ReplacedProcess(group.group_id, now.mono_ms, replaced)
        running = self._rebalances.running(group.group_id)
        if running is not None and running.ownership is not None:
            running.ownership.release(owner_of(old), heard_ms)
        elif not event.without_rebalance:
            released = OwnerRelease(owner_of(old), old.assignment, heard_ms)
            self._changes.removed = RemovedMembers(
                group.group_id, now.mono_ms, Removal.LEFT, {}, 0, (released,)
            )
        if running is not None and event.old_member_id in running.to_sync:
            # The group does not wait for the SyncGroup of the new process, as in Kafka.
            running.to_sync.remove(event.old_member_id)
            yield from self._rebalances.end_if_all_synced(group.group_id, running, now)
        partitions = None
        if group.protocol_type == PROTOCOL_TYPE:
            partitions = count_partitions(old.assignment, self.limits.assignment_bytes)
        yield StaticMemberReplacedEntry(
            event.group_id,
            event.at_ms,
            event.member,
            event.old_member_id,
            group.generation_id,
            len(group.members),
            event.without_rebalance,
            event.reason,
            replaced,
            now.mono_ms - heard_ms,
            partitions,
        )

    def _members_removed(
        self, group: ClassicGroupView, event: MembersRemoved, now: Now
    ) -> Iterator[HistoryEntry]:
        removal = removal_of(event)
        removals: list[MemberRemoval] = []
        owners: list[OwnerRelease] = []
        silent: dict[MemberId, tuple[int, int]] = {}
        running = self._rebalances.running(group.group_id)
        for removed in event.removed:
            member = group.members[removed.member.member_id]
            silent_ms = timeout_ms = None
            heard_ms = now.mono_ms
            if removal is Removal.SESSION_EXPIRED:
                heard_ms = last_heard_ms(member, now)
                silent_ms, timeout_ms = now.mono_ms - heard_ms, member.session_timeout_ms
                silent[member.member_id] = silent_ms, timeout_ms
            removals.append(MemberRemoval(removed.member, removed.reason, silent_ms, timeout_ms))
            owners.append(OwnerRelease(owner_of(member), member.assignment, heard_ms))
            if running is not None and running.ownership is not None:
                running.ownership.gone(owner_of(member), heard_ms)
        asked = RequestClient(event.client_id, event.client_host, event.principal)
        client = asked if event.client_id else None
        members = {removed.member.member_id: removed.member for removed in event.removed}
        if removal is Removal.OPERATOR and client is not None:
            members = {
                member_id: member._replace(**client._asdict())
                for member_id, member in members.items()
            }
        self._changes.removed = RemovedMembers(
            group.group_id,
            now.mono_ms,
            removal,
            members,
            sum(not group.members[member_id].is_new for member_id in members),
            tuple(owners),
            {gone.member.member_id: gone.reason for gone in event.removed if gone.reason},
            silent,
            exceeded_poll_interval_ms(group, event, now),
        )
        first, left_out = self.limits.cut(removals)
        yield MembersRemovedEntry(
            group.group_id, now.wall_ms, removal, event.generation_id, first, left_out, client
        )
        if running is not None and running.stable_ms is not None:
            running.to_sync -= members.keys()
            yield from self._rebalances.end_if_all_synced(group.group_id, running, now)

    def _pending_member_removed(self, event: PendingMemberRemoved, now: Now) -> None:
        """Not a member yet, so there is no entry; but the group rebalances if it leaves."""
        client = (event.client_id, event.client_host, event.principal)
        member = MemberIdentity(event.member_id, None, *client)
        reasons = {event.member_id: event.reason} if event.reason else {}
        self._changes.removed = RemovedMembers(
            event.group_id, now.mono_ms, Removal.LEFT, {event.member_id: member}, 0, (), reasons
        )

    def _nobody_rejoined(self, event: NoMemberRejoined, now: Now) -> Iterator[HistoryEntry]:
        times = self._repeats.count(event.group_id, now.mono_ms)
        if times is not None:
            waiting_for = event.waiting_for[:WAITING_FOR_MAX]
            repeated = None if times == 1 else times
            yield NoMemberRejoinedEntry(event.group_id, event.at_ms, waiting_for, repeated)
