"""History view: the rebalances and entries of a group, and what it waits for now.

For the console: combines what memory has, what the topic has, and what only the group itself knows,
such as which of the awaited members have joined.
"""

import asyncio
from typing import Final

from msgspec.structs import replace

from broker.history_log.consumer_wait import consumer_group_wait
from broker.history_log.reader import ALWAYS, FoundEntry, TimeRange, read_events, read_rebalances
from broker.history_log.writer import HistoryLog
from broker.loop.clock import SystemClock
from coordinator.classic.group_view import SESSION_PAUSED, ClassicGroupView, ClassicMemberView
from coordinator.coordinator import GroupCoordinator
from coordinator.group_types import as_classic, as_consumer
from history.causes import WaitEnd
from history.entries import Rebalance
from history.entry_values import MemberWait
from history.waiting import AwaitedMember, GroupWait, WaitReason
from protocol.names import GroupId, GroupState, MemberId
from seams.now import Now

SEARCHED_GROUPS_PER_SLICE: Final = 500
"""Groups searched in memory before the loop may serve others."""


class HistoryView:
    def __init__(
        self, history: HistoryLog, coordinator: GroupCoordinator, clock: SystemClock
    ) -> None:
        self._history = history
        self._coordinator = coordinator
        self._clock = clock

    async def rebalances(
        self, group_id: str, most: int, generation: int | None = None, span: TimeRange = ALWAYS
    ) -> list[Rebalance]:
        """Newest first; of one generation only those that led to it, or that it outlived; those
        that ran at any time of the span. Raises Corrupt.
        """
        remembered = self._remembered(group_id)
        found = [rebalance for rebalance in _of(remembered, generation) if span.overlaps(rebalance)]
        is_all = any(rebalance.began_at_ms < span.since_ms for rebalance in remembered)
        if len(found) >= most or is_all or self._has_generation(remembered, generation):
            return found[:most]
        log = self._history.view(self._history.partition_for(group_id))
        kept = [
            rebalance
            for _, rebalance in await read_rebalances(
                log, group_id, most, generation, self._history.unreadable, span
            )
        ]
        # An entry that was just appended is readable only once it is stored.
        newest = [rebalance for rebalance in found if rebalance not in kept]
        return (newest + kept)[:most]

    async def rebalances_of_all(self, most: int, span: TimeRange) -> list[tuple[str, Rebalance]]:
        """Of all groups, each with its group's id, newest first. Raises Corrupt."""
        found: dict[tuple[str, int, int, int], tuple[str, Rebalance]] = {}
        for number, group_id in enumerate(self._history.index.groups(), start=1):
            for rebalance in self._remembered(group_id):
                if span.overlaps(rebalance):
                    found[_key(group_id, rebalance)] = (group_id, rebalance)
            if number % SEARCHED_GROUPS_PER_SLICE == 0:
                await asyncio.sleep(0)
        for log in self._history.views():
            for group_id, rebalance in await read_rebalances(
                log, None, most, None, self._history.unreadable, span
            ):
                found.setdefault(_key(group_id, rebalance), (group_id, rebalance))
        newest = sorted(found.values(), key=lambda pair: -pair[1].began_at_ms)
        return newest[:most]

    def _remembered(self, group_id: str) -> list[Rebalance]:
        remembered = self._history.index.rebalances(group_id)
        if remembered and remembered[0].duration_ms is None:
            remembered[0] = self._with_live_state(group_id, remembered[0])
        return remembered

    async def events(
        self, group_id: str | None, most: int, kinds: tuple[type, ...], span: TimeRange = ALWAYS
    ) -> list[FoundEntry]:
        """(offset, event), newest first, of one group or of all; without an offset what is not
        written yet: steady commits that are still aggregated. Raises Corrupt.
        """
        history = self._history
        aggregated: list[FoundEntry] = [
            (None, entry)
            for entry in history.recorder.steady.pending(group_id)
            if span.holds(entry)
        ]
        if group_id is not None:
            log = history.view(history.partition_for(group_id))
            found = await read_events(log, group_id, most, kinds, history.unreadable, span)
            return (aggregated + found)[:most]
        of_all: list[FoundEntry] = []
        for log in history.views():
            of_all += await read_events(log, None, most, kinds, history.unreadable, span)
        if len(of_all) > most or aggregated:
            of_all.sort(key=lambda pair: -pair[1].at_ms)  # stable: of one log in its order
        aggregated.sort(key=lambda pair: -pair[1].at_ms)
        return (aggregated + of_all)[:most]

    async def knows(self, group_id: str) -> bool:
        """Whether there is such a group, or an entry of one that is gone. Raises Corrupt."""
        return self._coordinator.knows(GroupId(group_id)) or bool(
            await self.events(group_id, 1, ())
        )

    @staticmethod
    def _has_generation(remembered: list[Rebalance], generation: int | None) -> bool:
        """Whether memory has all about this generation: it has an older one as well."""
        return generation is not None and any(
            rebalance.generation_before < generation for rebalance in remembered
        )

    # ------------------------------------------------------------ now

    def _with_live_state(self, group_id: str, running: Rebalance) -> Rebalance:
        """The running rebalance, with what only the group and the clock know."""
        recorder, now = self._history.recorder, self._clock.now()
        began_ms, stable_ms = recorder.began_ms(group_id), recorder.stable_ms(group_id)
        group = as_classic(self._coordinator.group(GroupId(group_id)))
        waits = recorder.waits_so_far(group_id, running.waited_for, now)
        if group is not None and began_ms is not None and running.generation_after is None:
            waits = tuple(_with_join(wait, group, began_ms) for wait in waits)
        duration_ms = None
        if began_ms is not None and stable_ms is not None:
            duration_ms = stable_ms - began_ms
        return replace(
            running,
            waited_for=waits,
            duration_ms=duration_ms,
            unowned_partition_seconds=recorder.unowned_seconds(group_id, now),
        )

    def waiting(self, group_id: str) -> GroupWait | None:
        """What the group waits for; None if there is no group, or if it waits for nothing."""
        any_group = self._coordinator.group(GroupId(group_id))
        now = self._clock.now()
        consumers = as_consumer(any_group)
        if consumers is not None:
            return consumer_group_wait(consumers, now)
        group = as_classic(any_group)
        if group is None:
            return None
        if group.state is GroupState.PREPARING_REBALANCE:
            return self._waiting_for_joins(group, now)
        if group.state is GroupState.COMPLETING_REBALANCE:
            waits_for = WaitReason.DISK if group.assignment_is_stored_now else WaitReason.ASSIGNMENT
            member_ids = [group.leader_id] if waits_for is WaitReason.ASSIGNMENT else []
        elif group.pending_sync_ids:
            waits_for = WaitReason.SYNCS
            member_ids = sorted(group.pending_sync_ids)
        else:
            return None
        members = [
            group.members[member_id] for member_id in member_ids if member_id in group.members
        ]
        return GroupWait(
            str(group.state),
            waits_for,
            group.state_since_ms,
            self._deadline_ms(("sync", group.group_id), now),
            tuple(_awaited(member, now) for member in members),
            len(group.members) - len(group.pending_sync_ids),
        )

    def _waiting_for_joins(self, group: ClassicGroupView, now: Now) -> GroupWait:
        missing = [member for member in group.members.values() if member.awaiting_join is None]
        is_initial = not missing and group.previous_state is GroupState.EMPTY
        return GroupWait(
            str(group.state),
            WaitReason.MORE_MEMBERS if is_initial else WaitReason.JOINS,
            group.state_since_ms,
            self._deadline_ms(("join", group.group_id), now),
            tuple(_awaited(member, now) for member in missing),
            group.awaiting_join_count,
            len(group.pending_member_ids),
        )

    def _deadline_ms(self, slot: tuple[str, GroupId], now: Now) -> int | None:
        """By the wall clock."""
        for purgatory in self._coordinator.purgatories():
            deadline_ms = purgatory.deadline_of(slot)
            if deadline_ms is not None:
                return now.wall_ms + max(0, deadline_ms - now.mono_ms)
        return None


def _key(group_id: str, rebalance: Rebalance) -> tuple[str, int, int, int]:
    after = rebalance.generation_after
    began_at_ms, before = rebalance.began_at_ms, rebalance.generation_before
    return group_id, began_at_ms, before, -1 if after is None else after


def _of(rebalances: list[Rebalance], generation: int | None) -> list[Rebalance]:
    if generation is None:
        return rebalances
    return [rebalance for rebalance in rebalances if rebalance.generation_after == generation]


def _with_join(wait: MemberWait, group: ClassicGroupView, began_ms: int) -> MemberWait:
    member = group.members.get(MemberId(wait.member.member_id))
    if wait.end is not WaitEnd.WAITING or member is None or member.awaiting_join is None:
        return wait
    return MemberWait(wait.member, max(0, member.join_parked_at_ms - began_ms), WaitEnd.REJOINED)


def _awaited(member: ClassicMemberView, now: Now) -> AwaitedMember:
    identity = member.caller
    if member.session_deadline_ms == SESSION_PAUSED:
        return AwaitedMember(identity)
    return AwaitedMember(identity, now.wall_ms + max(0, member.session_deadline_ms - now.mono_ms))
