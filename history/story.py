"""Group story: the rebalances of one group, folded from its history entries.

The same fold runs over entries as they are written and over entries read back from the topic, so
the two cannot differ. A running rebalance is composed from its entries so far. One that is over is
what its `RebalanceEndedEntry` says, which needs no entry before it: retention may have deleted
those. docs/history.md says how a rebalance gets its one named cause.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from msgspec.structs import replace

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, Removal, WaitEnd
from history.consumer_entries import (
    ConsumerMemberUpdatedEntry,
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RegularExpressionResolvedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
    TargetAssignmentRefusedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import (
    AssignmentReceivedEntry,
    AssignmentRefusedEntry,
    GenerationBegunEntry,
    GroupCreatedEntry,
    GroupDeletedEntry,
    GroupEmptiedEntry,
    GroupLoadedEntry,
    HistoryEntry,
    LapseForgivenEntry,
    LeaderChangedEntry,
    MemberAddedEntry,
    MemberFencedEntry,
    MemberLapsedEntry,
    MembersRemovedEntry,
    NoMemberRejoinedEntry,
    OffsetsMovedEntry,
    PendingOffsetsEndedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
    TopicsChangedEntry,
    VerdictBegunEntry,
    VerdictEndedEntry,
)
from history.entry_values import (
    AlsoCaused,
    MemberRemoval,
    MemberWait,
)
from history.newest import Newest
from protocol.names import MemberId

ALSO_MAX: Final = 50
"""Causes that a running rebalance keeps beside its own."""

MOVES_MAX: Final = 20
"""Partitions that a rebalance names with their old and new owners; the event has more of them."""

WAITS_MAX: Final = 200
"""Members that a running rebalance of a consumer group waits for by name; others are counted."""

WAIT_ENDS: Final[dict[Removal, WaitEnd]] = {
    Removal.SESSION_EXPIRED: WaitEnd.EXPIRED,
    Removal.NEW_MEMBER_TIMED_OUT: WaitEnd.EXPIRED,
    Removal.REBALANCE_TIMEOUT: WaitEnd.DROPPED,
}
_REMOVAL_CAUSES: Final[dict[Removal, Cause]] = {
    Removal.LEFT: Cause.MEMBER_LEFT,
    Removal.OPERATOR: Cause.OPERATOR,
    Removal.SESSION_EXPIRED: Cause.SESSION_EXPIRED,
    Removal.NEW_MEMBER_TIMED_OUT: Cause.SESSION_EXPIRED,
    Removal.REBALANCE_TIMEOUT: Cause.REBALANCE_TIMEOUT,
    Removal.SYNC_TIMEOUT: Cause.SYNC_TIMEOUT,
    Removal.GROUP_FULL: Cause.MEMBER_LEFT,
}

_MEMBERS_OWN: Final = frozenset(
    {*_REMOVAL_CAUSES.values(), Cause.MEMBER_JOINED, Cause.STATIC_MEMBER_REPLACED}
)
"""Causes of a group epoch whose member has an entry of its own in the same turn."""

_NOT_RENAMED: Final = frozenset({Cause.COORDINATOR_MOVED, Cause.OPERATOR})
"""External causes stay, even if a member is then dropped at the rebalance timeout."""


class GroupStory:
    """The rebalances of one group: those that are over, oldest first, and the one that runs."""

    __slots__ = ("done", "running")

    def __init__(self, kept_max: int | None = None) -> None:
        self.done: Newest[Rebalance] = Newest(kept_max)
        self.running: Rebalance | None = None

    def apply(self, event: HistoryEntry) -> None:
        """Add an event; in the order in which they happened."""
        match event:  # first the four of every rebalance: each case costs six bytecodes
            case RebalanceBegunEntry():
                self._began(event)
            case RebalanceEndedEntry():
                self.running = None
                self.done.append(event.rebalance)
            case GenerationBegunEntry():
                self._generation_began(event)
            case AssignmentReceivedEntry():
                self._assigned(event)
            case GroupLoadedEntry():
                self._loaded(event)
            case StaticMemberReplacedEntry():
                self._replaced(event)
            case MemberAddedEntry():
                if self._awaiting_joins is not None:
                    self._also(Cause.MEMBER_JOINED, event.member, event.at_ms)
            case MembersRemovedEntry():
                self._removed(event)
            case GroupEmptiedEntry():
                self._emptied(event)
            case RevocationRequestedEntry():
                self._revocation_requested(event)
            case RevocationEndedEntry():
                self._revocation_ended(event)
            case GroupEpochBumpedEntry():
                self._epoch_bumped(event)
            case TargetAssignmentUpdatedEntry():
                self._target_updated(event)
            case (
                PartitionsAssignedEntry()
                | GroupConvertedEntry()
                | ConsumerMemberUpdatedEntry()
                | StaticMemberLeftEntry()
                | TargetAssignmentRefusedEntry()
                | RegularExpressionResolvedEntry()
                | GroupCreatedEntry()
                | GroupDeletedEntry()
                | MemberFencedEntry()
                | MemberLapsedEntry()
                | LapseForgivenEntry()
                | NoMemberRejoinedEntry()
                | LeaderChangedEntry()
                | AssignmentRefusedEntry()
                | TopicsChangedEntry()
                | OffsetsMovedEntry()
                | PendingOffsetsEndedEntry()
                | VerdictBegunEntry()
                | VerdictEndedEntry()
            ):
                pass  # no part of a rebalance
            case _:
                assert_never(event)

    @property
    def newest_first(self) -> list[Rebalance]:
        running = [] if self.running is None else [self.running]
        return running + list(reversed(self.done))

    # ------------------------------------------------------------ what each event adds

    def _began(self, event: RebalanceBegunEntry) -> None:
        self.running = Rebalance(
            event.cause,
            event.at_ms,
            event.trigger,
            event.reason,
            event.client_reason,
            event.began_by,
            waited_for=tuple(MemberWait(member) for member in event.waiting_for),
            waited_for_left_out=event.waiting_for_left_out,
            with_trigger=event.with_trigger,
            replaced=event.replaced,
            note=event.note,
            silent_ms=event.silent_ms,
            session_timeout_ms=event.session_timeout_ms,
            topics=event.topics,
            protocol_type=event.protocol_type,
            group_type=event.group_type,
            generation_before=event.generation,
            members_before=event.members,
        )

    def _loaded(self, event: HistoryEntry) -> None:
        whole = whole_rebalance(event)
        assert whole is not None
        self.done.append(whole)

    def _replaced(self, event: StaticMemberReplacedEntry) -> None:
        whole = whole_rebalance(event)
        if whole is not None:
            self.done.append(whole)
            return
        running = self._awaiting_joins
        if running is None:
            return
        delay_ms = event.at_ms - running.began_at_ms
        self._end_waits(
            {MemberId(event.old_member_id): MemberWait(event.member, delay_ms, WaitEnd.REPLACED)}
        )
        self._also(Cause.STATIC_MEMBER_REPLACED, event.member, event.at_ms)

    def _removed(self, event: MembersRemovedEntry) -> None:
        running = self._awaiting_joins
        if running is None or not event.members:
            return
        end = WAIT_ENDS.get(event.cause, WaitEnd.LEFT)
        self._end_waits(
            {gone.member.member_id: MemberWait(gone.member, None, end) for gone in event.members}
        )
        first = _first_waited_for(running, event.members)
        others = tuple(gone.member for gone in event.members if gone is not first)
        if event.cause is Removal.REBALANCE_TIMEOUT and running.cause not in _NOT_RENAMED:
            self._rename(Cause.REBALANCE_TIMEOUT, first.member, others)
            return
        for member in (first.member, *others):
            self._also(_REMOVAL_CAUSES[event.cause], member, event.at_ms)

    def _generation_began(self, event: GenerationBegunEntry) -> None:
        if self.running is None:
            return
        ends = {
            joined.member.member_id: MemberWait(
                joined.member, joined.join_delay_ms, WaitEnd.REJOINED
            )
            for joined in event.joined
        }
        ends.update(
            {member.member_id: MemberWait(member, None, WaitEnd.ABSENT) for member in event.absent}
        )
        self._end_waits(ends)
        self.running = replace(
            self.running,
            joined=event.joined,
            joined_left_out=event.joined_left_out,
            generation_after=event.generation,
            members_after=event.members,
        )

    def _assigned(self, event: AssignmentReceivedEntry) -> None:
        if self.running is not None:
            self.running = replace(
                self.running,
                partitions_moved=event.partitions_moved,
                moves=event.moves[:MOVES_MAX],
                held=event.held,
                described=event.described,
            )

    def _emptied(self, event: GroupEmptiedEntry) -> None:
        if self.running is not None:
            self.running = replace(
                self.running, generation_after=event.generation, members_after=0, partitions_moved=0
            )

    # ------------------------------------------------------------ consumer groups

    def _epoch_bumped(self, event: GroupEpochBumpedEntry) -> None:
        """Further causes: of the first epoch all, of later ones those without another entry."""
        running = self.running
        if running is None:
            return
        is_first = event.epoch == running.generation_before + 1
        trigger = event.triggers[0] if event.triggers else None
        for cause in event.causes:
            if cause is not running.cause if is_first else cause not in _MEMBERS_OWN:
                self._also(cause, trigger, event.at_ms)

    def _target_updated(self, event: TargetAssignmentUpdatedEntry) -> None:
        if self.running is not None:
            self.running = replace(
                self.running,
                partitions_moved=event.partitions_moved,
                moves=event.moves[:MOVES_MAX],
                assignor=event.assignor,
            )

    def _revocation_requested(self, event: RevocationRequestedEntry) -> None:
        running = self.running
        if running is None:
            return
        partitions = event.partitions_left_out + sum(
            len(owned.partitions) for owned in event.partitions
        )
        asked = MemberWait(event.member, None, WaitEnd.WAITING, event.at_ms, partitions=partitions)
        others = tuple(
            wait for wait in running.waited_for if wait.member.member_id != event.member.member_id
        )
        if len(others) >= WAITS_MAX:
            left_out = running.waited_for_left_out + 1
            self.running = replace(running, waited_for_left_out=left_out)
        else:
            self.running = replace(running, waited_for=(*others, asked))

    def _revocation_ended(self, event: RevocationEndedEntry) -> None:
        running = self.running
        if running is None:
            return
        delay_ms = max(0, event.at_ms - running.began_at_ms)
        waits = tuple(
            wait._replace(join_delay_ms=delay_ms, end=event.end, waited_ms=event.waited_ms)
            if wait.end is WaitEnd.WAITING and wait.member.member_id == event.member.member_id
            else wait
            for wait in running.waited_for
        )
        self.running = replace(running, waited_for=waits)

    # ------------------------------------------------------------ the running rebalance

    @property
    def _awaiting_joins(self) -> Rebalance | None:
        """The running rebalance while it still waits for joins."""
        running = self.running
        return None if running is None or running.generation_after is not None else running

    def _also(self, cause: Cause, member: MemberIdentity | None, at_ms: int) -> None:
        running = self.running
        assert running is not None
        if len(running.also) < ALSO_MAX:
            also = (*running.also, AlsoCaused(cause, member, at_ms))
            self.running = replace(running, also=also)

    def _rename(
        self, cause: Cause, member: MemberIdentity, others: tuple[MemberIdentity, ...]
    ) -> None:
        """Name it by the member that missed its timeout; what began it is listed beside it."""
        running = self.running
        assert running is not None
        if running.cause is cause:
            return
        began = [running.trigger, *running.with_trigger]
        before = [AlsoCaused(running.cause, member, running.began_at_ms) for member in began]
        self.running = replace(
            running,
            cause=cause,
            trigger=member,
            began_by=running.began_by or running.cause,
            also=(*before, *running.also)[:ALSO_MAX],
            with_trigger=others,
            replaced=None,
            silent_ms=None,
            session_timeout_ms=None,
        )

    def _end_waits(self, ends: Mapping[MemberId, MemberWait]) -> None:
        """End the wait for these members, by id; their identity stays as it was."""
        running = self.running
        assert running is not None
        waits = tuple(
            wait
            if wait.end is not WaitEnd.WAITING or wait.member.member_id not in ends
            else ends[wait.member.member_id]._replace(member=wait.member)
            for wait in running.waited_for
        )
        self.running = replace(running, waited_for=waits)


def whole_rebalance(event: HistoryEntry) -> Rebalance | None:
    """The rebalance that this entry describes completely, if it does."""
    match event:
        case RebalanceEndedEntry():
            return event.rebalance
        case GroupLoadedEntry(generation=generation, members=members):
            reason = f"the coordinator loaded the group as {event.state}"
            kept = _kept(Cause.COORDINATOR_MOVED, None, event, generation, members, reason)
            return replace(
                kept,
                away_ms=event.away_ms,
                stopped=event.stopped,
                protocol_type=event.protocol_type,
                group_type=event.group_type,
            )
        case StaticMemberReplacedEntry(member=member, generation=generation, members=members) if (
            event.without_rebalance
        ):
            cause = Cause.STATIC_MEMBER_REPLACED
            kept = _kept(cause, member, event, generation, members, event.reason)
            return replace(
                kept,
                replaced=event.replaced,
                silent_ms=event.silent_ms,
                protocol_type=event.group_type,  # a consumer group has the type of its name
                group_type=event.group_type,
                unowned_partition_seconds=_unowned_seconds(event),
            )
        case _:
            return None


def end_rebalance(
    running: Rebalance, how: End, at_ms: int, unowned_ms: int | None = None
) -> Rebalance:
    """The rebalance as it ended; members that are still awaited have the end INTERRUPTED."""
    after = running.generation_after
    members_after = running.members_after
    waits = running.waited_for
    if after is None:
        after, members_after = running.generation_before, running.members_before
    if how is End.INTERRUPTED:
        waits = tuple(
            wait._replace(end=WaitEnd.INTERRUPTED) if wait.end is WaitEnd.WAITING else wait
            for wait in waits
        )
    return replace(
        running,
        end=how,
        duration_ms=max(0, at_ms - running.began_at_ms),
        waited_for=waits,
        generation_after=after,
        members_after=members_after,
        unowned_partition_seconds=None if unowned_ms is None else round(unowned_ms / 1000, 3),
    )


def _kept(
    cause: Cause,
    trigger: MemberIdentity | None,
    event: HistoryEntry,
    generation: int,
    members: int,
    reason: str,
) -> Rebalance:
    """An event that might have caused a rebalance, and did not."""
    return Rebalance(
        cause,
        event.at_ms,
        trigger,
        reason,
        end=End.KEPT,
        duration_ms=0,
        generation_before=generation,
        generation_after=generation,
        members_before=members,
        members_after=members,
        partitions_moved=0,
        unowned_partition_seconds=0.0,
    )


def _unowned_seconds(event: StaticMemberReplacedEntry) -> float | None:
    """From the last sign of life of the old process to the JoinGroup of the new one."""
    if event.silent_ms is None:
        return 0.0  # a record of a version without this field
    return None if event.partitions is None else round(event.partitions * event.silent_ms / 1000, 3)


def _first_waited_for(running: Rebalance, members: tuple[MemberRemoval, ...]) -> MemberRemoval:
    waited_for = {wait.member.member_id for wait in running.waited_for}
    return next((gone for gone in members if gone.member.member_id in waited_for), members[0])
