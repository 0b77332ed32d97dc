"""Consumer turn recorder: which history entries follow from one turn of a consumer group.

reconciliation.py follows the running rebalance. docs/history.md has the rules for users.
"""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from coordinator.consumer import events
from coordinator.consumer.events import ConsumerRemovalCause, EpochCause
from coordinator.consumer.evolve import evolve_consumer_group
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ConsumerMemberState,
    CurrentAssignment,
)
from coordinator.consumer.records import by_topic_id
from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, Removal, WaitEnd
from history.consumer_entries import (
    ConsumerMemberUpdatedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import (
    GroupEmptiedEntry,
    HistoryEntry,
    MemberAddedEntry,
    MembersRemovedEntry,
    RebalanceBegunEntry,
    StaticMemberReplacedEntry,
)
from history.entry_values import (
    MemberRemoval,
    OwnedTopic,
    PartitionHandover,
)
from history.recording.consumer_direct_entries import (
    fenced_entries,
    resolved_entries,
    target_refused_entries,
)
from history.recording.consumer_state import CONSUMER_GROUP, ConsumerRecordingState
from history.recording.consumer_turn import (
    ConsumerTurn,
    OwnedByTopic,
    TurnMember,
    changed_fields,
    count_partitions_of,
    owned_partitions,
    without,
)
from history.recording.released_partitions import ReleasedPartitions
from history.recording.target_moves import target_moves
from history.story import WAIT_ENDS
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import MemberId
from seams.now import Now

EPOCH_CAUSES: Final[Mapping[EpochCause, Cause]] = {
    EpochCause.MEMBER_JOINED: Cause.MEMBER_JOINED,
    EpochCause.MEMBER_LEFT: Cause.MEMBER_LEFT,
    EpochCause.SESSION_EXPIRED: Cause.SESSION_EXPIRED,
    EpochCause.REBALANCE_TIMED_OUT: Cause.REBALANCE_TIMEOUT,
    EpochCause.SUBSCRIPTION_CHANGED: Cause.SUBSCRIPTION_CHANGED,
    EpochCause.REGULAR_EXPRESSION_CHANGED: Cause.REGULAR_EXPRESSION_CHANGED,
    EpochCause.TOPICS_CHANGED: Cause.PARTITIONS_CHANGED,
    EpochCause.STATIC_MEMBER_REPLACED: Cause.STATIC_MEMBER_REPLACED,
    EpochCause.GROUP_CONVERTED: Cause.GROUP_CONVERTED,
}
REMOVALS: Final[Mapping[ConsumerRemovalCause, Removal]] = {
    ConsumerRemovalCause.LEFT: Removal.LEFT,
    ConsumerRemovalCause.SESSION_EXPIRED: Removal.SESSION_EXPIRED,
    ConsumerRemovalCause.REBALANCE_TIMED_OUT: Removal.REBALANCE_TIMEOUT,
    ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT: Removal.REBALANCE_TIMEOUT,
    ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT: Removal.SYNC_TIMEOUT,
}


class ConsumerTurnRecorder:
    """The entries of one turn; `entries` is called with each event in its order, then `end`."""

    def __init__(
        self, state: ConsumerRecordingState, turn: ConsumerTurn, now: Now, *, has_new_epoch: bool
    ) -> None:
        self._state = state
        self._turn = turn
        self._now = now
        self._has_new_epoch = has_new_epoch
        self._group_id = turn.group_id
        self._running = state.reconciliations.running(turn.group_id)
        self._released = ReleasedPartitions()  # before the rebalance began
        self._removed: MemberRemoval | None = None
        self._replaced: MemberIdentity | None = None

    def entries(self, event: events.ConsumerEvent) -> Iterator[HistoryEntry]:
        yield from self._entries_of(event)
        self._turn.apply(event)
        if isinstance(event, events.TargetAssignmentUpdated) and self._running is not None:
            self._running.reached.clear()
            self._running.unreconciled = self._turn.unreconciled()

    def end(self) -> Iterator[HistoryEntry]:
        """Whether the group has become Stable or Empty in this turn."""
        turn, running = self._turn, self._running
        is_empty = not turn.member_count
        if is_empty and turn.members_before:
            yield GroupEmptiedEntry(self._group_id, self._now.wall_ms, turn.epoch, CONSUMER_GROUP)
        if running is None:
            return
        if is_empty:
            yield from self._end(End.EMPTY, turn.epoch)
        elif turn.epoch == turn.assignment_epoch and not running.unreconciled:
            yield from self._end(End.STABLE, turn.assignment_epoch)

    @property
    def epoch(self) -> int:
        return self._turn.epoch

    @property
    def member_count(self) -> int:
        return self._turn.member_count

    def overtaken(self) -> Iterator[HistoryEntry]:
        """The group has another type from now on."""
        yield from self._end(End.OVERTAKEN, self._turn.epoch)

    def _end(self, how: End, epoch: int) -> Iterator[HistoryEntry]:
        ended = self._state.reconciliations.end(
            self._group_id, how, self._now, epoch, self._turn.member_count
        )
        self._running = None
        if ended is not None:
            yield ended

    # ------------------------------------------------------------ events

    def _entries_of(self, event: events.ConsumerEvent) -> Iterator[HistoryEntry]:
        match event:
            case events.ConsumerSessionExtended():
                pass  # first: it is a part of nearly every turn
            case events.CurrentAssignmentUpdated():
                yield from self._current_updated(event)
            case events.ConsumerMemberUpdated():
                yield from self._member_updated(event)
            case events.GroupEpochBumped():
                yield from self._epoch_bumped(event)
            case events.TargetAssignmentUpdated():
                yield self._target_updated(event)
            case events.ConsumerMemberRemoved():
                yield from self._member_removed(event)
            case events.ConsumerStaticMemberReplaced():
                yield from self._static_member_replaced(event)
            case events.TargetAssignmentRefused():
                yield from target_refused_entries(event, self._state, self._now)
            case events.RegularExpressionResolved():
                yield from resolved_entries(event, self._turn, self._most)
            case events.ConsumerMemberFenced():
                yield from fenced_entries(event, self._turn, self._state, self._now)
            case events.ClassicGroupUpgraded():
                upgraded = ConsumerGroup(event.group_id, event.at_ms)
                evolve_consumer_group(upgraded, event)
                self._turn = ConsumerTurn(event.group_id, upgraded)
            case (
                events.TargetAssignmentRequested()
                | events.RegularExpressionRemoved()
                | events.RegularExpressionsRequested()
                | events.MetadataRefreshRequested()
                | events.MetadataRefreshed()
                | events.ClassicRejoinRequested()
                | events.ClassicJoinAnswered()
                | events.ClassicMemberSynced()
            ):
                pass  # not recorded
            case _:
                assert_never(event)

    # ------------------------------------------------------------ members

    def _member_updated(self, event: events.ConsumerMemberUpdated) -> Iterator[HistoryEntry]:
        metadata, epoch = event.member, self._turn.epoch
        names = metadata.subscribed_topic_names
        topics, left_out = tuple(map(str, names[: self._most])), max(0, len(names) - self._most)
        protocol = "consumer" if metadata.classic is None else "classic"
        if event.is_new:
            if self._running is not None:
                self._running.unreconciled.add(metadata.member_id)
            yield MemberAddedEntry(
                event.group_id,
                event.at_ms,
                metadata.identity,
                "dynamic" if metadata.instance_id is None else "static",
                epoch,
                "",
                0 if metadata.classic is None else metadata.classic.session_timeout_ms,
                metadata.rebalance_timeout_ms,
                CONSUMER_GROUP,
                protocol,
                topics,
                left_out,
                metadata.subscribed_topic_regex,
                metadata.server_assignor or "",
            )
            return
        member = self._turn.member(metadata.member_id)
        changed = () if member is None else changed_fields(member.metadata, metadata)
        if changed:
            yield ConsumerMemberUpdatedEntry(
                event.group_id,
                event.at_ms,
                metadata.identity,
                epoch,
                changed,
                topics,
                left_out,
                metadata.subscribed_topic_regex,
                metadata.server_assignor or "",
                protocol,
            )

    def _member_removed(self, event: events.ConsumerMemberRemoved) -> Iterator[HistoryEntry]:
        member_id = event.member.member_id
        left_ms = self._state.left_ms.pop((event.group_id, member_id), None)
        removal = REMOVALS[event.cause]
        yield from self._wait_ended(member_id, WAIT_ENDS.get(removal, WaitEnd.LEFT))
        heard_ms = self._now.mono_ms - (event.silent_ms or 0) if left_ms is None else left_ms
        member = self._turn.member(member_id)
        if member is not None:
            self._release(member, owned_partitions(member.current), heard_ms)
        self._removed = MemberRemoval(
            event.member,
            None,
            event.silent_ms,
            event.session_timeout_ms,
            event.member_epoch,
            count_partitions_of(event.owned),
        )
        if self._running is not None:
            self._running.forget(member_id)
        yield MembersRemovedEntry(
            event.group_id,
            event.at_ms,
            removal,
            self._turn.epoch,
            (self._removed,),
            group_type=CONSUMER_GROUP,
        )

    def _static_member_replaced(
        self, event: events.ConsumerStaticMemberReplaced
    ) -> Iterator[HistoryEntry]:
        old = self._turn.member(event.old_member_id)
        silent_ms = None
        if old is not None:
            self._replaced = old.metadata.identity
            left_ms = self._state.left_ms.pop((self._group_id, event.old_member_id), None)
            silent_ms = None if left_ms is None else max(0, self._now.mono_ms - left_ms)
        running = self._running
        yield from self._wait_ended(event.old_member_id, WaitEnd.REPLACED)
        if running is not None:
            running.forget(event.old_member_id)
            running.unreconciled.add(event.member.member_id)
        yield StaticMemberReplacedEntry(
            event.group_id,
            event.at_ms,
            event.member.identity,
            event.old_member_id,
            self._turn.epoch,
            self._turn.member_count,
            running is None and not self._has_new_epoch,
            "",
            self._replaced,
            silent_ms,
            count_partitions_of(owned_partitions(event.current)),
            CONSUMER_GROUP,
        )

    # ------------------------------------------------------------ epochs and targets

    def _epoch_bumped(self, event: events.GroupEpochBumped) -> Iterator[HistoryEntry]:
        if self._running is None:
            yield self._begin(event)
        triggers = [self._turn.identity(member_id) for member_id in event.trigger_ids]
        first, left_out = self._state.limits.cut(triggers)
        topics = event.changed_topics
        yield GroupEpochBumpedEntry(
            event.group_id,
            event.at_ms,
            event.epoch,
            tuple(EPOCH_CAUSES[cause] for cause in event.causes),
            first,
            left_out,
            tuple(map(str, topics[: self._most])),
            max(0, len(topics) - self._most),
            self._turn.member_count,
        )

    def _begin(self, event: events.GroupEpochBumped) -> RebalanceBegunEntry:
        turn = self._turn
        running = self._running = self._state.reconciliations.begin(self._group_id, self._now)
        running.released.take_all(self._released)
        running.unreconciled = turn.unreconciled()
        cause = EPOCH_CAUSES[event.causes[0]] if event.causes else Cause.SUBSCRIPTION_CHANGED
        triggers = [turn.identity(member_id) for member_id in event.trigger_ids]
        removed = self._removed
        return RebalanceBegunEntry(
            event.group_id,
            event.at_ms,
            cause,
            trigger=triggers[0] if triggers else None,
            reason=f"group epoch {event.epoch}",
            from_state=str(turn.from_state),
            generation=turn.epoch,
            members=turn.members_before,
            with_trigger=tuple(triggers[1 : self._state.limits.members]),
            replaced=self._replaced if cause is Cause.STATIC_MEMBER_REPLACED else None,
            silent_ms=None if removed is None else removed.silent_ms,
            session_timeout_ms=None if removed is None else removed.session_timeout_ms,
            topics=self._state.numbers(event.changed_topics[: self._most]),
            protocol_type=PROTOCOL_TYPE,
            group_type=CONSUMER_GROUP,
        )

    def _target_updated(
        self, event: events.TargetAssignmentUpdated
    ) -> TargetAssignmentUpdatedEntry:
        moves = target_moves(event.changed, self._turn, self._unowned, self._state)
        return TargetAssignmentUpdatedEntry(
            event.group_id,
            event.at_ms,
            event.assignment_epoch,
            event.assignor,
            event.took_ms,
            len(event.changed),
            None if moves is None else moves.moved,
            () if moves is None else moves.first,
            0 if moves is None else moves.moved - len(moves.first),
        )

    # ------------------------------------------------------------ current assignments

    def _current_updated(self, event: events.CurrentAssignmentUpdated) -> Iterator[HistoryEntry]:
        member, after = self._turn.member(event.member_id), event.current
        if member is None:
            return
        before = member.current
        if before.assigned != after.assigned or (
            before.pending_revocation != after.pending_revocation
        ):
            yield from self._owned_changed(member, before, after)
        if after.has_left_for_a_while:
            yield self._left_for_a_while(member, after)
        if self._running is not None:
            if after.state is ConsumerMemberState.STABLE and (
                after.member_epoch == self._turn.assignment_epoch
            ):
                if event.member_id in self._running.unreconciled:
                    self._running.reach(member.metadata.identity, self._now)
            else:
                self._running.unreconciled.add(event.member_id)

    def _left_for_a_while(
        self, member: TurnMember, after: CurrentAssignment
    ) -> StaticMemberLeftEntry:
        left = (self._group_id, member.metadata.member_id)
        self._state.left_ms[left] = self._now.mono_ms
        return StaticMemberLeftEntry(
            self._group_id,
            self._now.wall_ms,
            member.metadata.identity,
            self._turn.epoch,
            member.current.member_epoch,
            count_partitions_of(after.assigned),
        )

    def _owned_changed(
        self, member: TurnMember, before: CurrentAssignment, after: CurrentAssignment
    ) -> Iterator[HistoryEntry]:
        had, has = owned_partitions(before), owned_partitions(after)
        given_back = without(had, has)
        if given_back:
            self._release(member, given_back, self._now.mono_ms)
        member_id = member.metadata.member_id
        if before.pending_revocation and (
            given_back or after.state is not ConsumerMemberState.UNREVOKED_PARTITIONS
        ):
            yield from self._wait_ended(
                member_id, WaitEnd.REVOKED, after.member_epoch, count_partitions_of(given_back)
            )
        elif given_back:  # it had given them back before it was told to
            yield RevocationEndedEntry(
                self._group_id,
                self._now.wall_ms,
                member.metadata.identity,
                WaitEnd.REVOKED,
                after.member_epoch,
                count_partitions_of(given_back),
            )
        if after.pending_revocation and before.pending_revocation != after.pending_revocation:
            yield self._revocation_requested(member, after)
        if gained := without(has, had):
            yield self._assigned(member, gained, after)

    def _revocation_requested(
        self, member: TurnMember, after: CurrentAssignment
    ) -> RevocationRequestedEntry:
        identity, pending = member.metadata.identity, after.pending_revocation
        count = count_partitions_of(pending)
        if self._running is not None:
            self._running.ask(identity, count, self._now)
        named: list[OwnedTopic] = []
        room = self._most
        for topic_id, indexes in pending.items():
            if room <= 0:
                break
            some = tuple(sorted(indexes)[:room])
            room -= len(some)
            named.append(OwnedTopic(self._state.name(topic_id), some))
        return RevocationRequestedEntry(
            self._group_id,
            self._now.wall_ms,
            identity,
            after.member_epoch,
            self._turn.assignment_epoch,
            tuple(named),
            max(0, count - self._most),
            member.metadata.rebalance_timeout_ms,
        )

    def _wait_ended(
        self,
        member_id: MemberId,
        end: WaitEnd,
        member_epoch: int | None = None,
        given_back: int | None = None,
    ) -> Iterator[HistoryEntry]:
        """A member was waited for that is to give partitions back: no more."""
        member = self._turn.member(member_id)
        if member is None or not member.current.pending_revocation:
            return
        asked = None
        if self._running is not None:
            asked = self._running.answer(member.metadata.member_id, end, self._now)
        yield RevocationEndedEntry(
            self._group_id,
            self._now.wall_ms,
            member.metadata.identity,
            end,
            member.current.member_epoch if member_epoch is None else member_epoch,
            count_partitions_of(member.current.pending_revocation)
            if given_back is None
            else given_back,
            None if asked is None else max(0, self._now.mono_ms - asked.since_ms),
        )

    def _assigned(
        self, member: TurnMember, gained: OwnedByTopic, after: CurrentAssignment
    ) -> PartitionsAssignedEntry:
        handed: list[PartitionHandover] = []
        running = self._running
        for topic_id, partitions in by_topic_id(gained):
            topic = self._state.name(topic_id)
            for partition in sorted(partitions):
                released = None
                if running is not None:
                    released = running.own(topic_id, partition, member.owner, topic, self._now)
                if len(handed) >= self._most:
                    continue
                if released is None:
                    handed.append(PartitionHandover(topic, partition))
                else:
                    unowned_ms = max(0, self._now.mono_ms - released.since_ms)
                    handed.append(PartitionHandover(topic, partition, released.owner, unowned_ms))
        return PartitionsAssignedEntry(
            self._group_id,
            self._now.wall_ms,
            member.metadata.identity,
            after.member_epoch,
            self._turn.assignment_epoch,
            tuple(handed),
            count_partitions_of(gained) - len(handed),
            self._waits_for(member, after),
        )

    def _waits_for(self, member: TurnMember, after: CurrentAssignment) -> int:
        if after.state is not ConsumerMemberState.UNRELEASED_PARTITIONS:
            return 0
        target = self._turn.target_of(member.metadata.member_id)
        return max(0, count_partitions_of(target) - count_partitions_of(after.assigned))

    def _release(self, member: TurnMember, given_back: OwnedByTopic, at_ms: int) -> None:
        self._unowned.release(given_back, member.owner, at_ms)

    @property
    def _unowned(self) -> ReleasedPartitions:
        return self._released if self._running is None else self._running.released

    @property
    def _most(self) -> int:
        return self._state.limits.moves
