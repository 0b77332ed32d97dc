"""What can be told of a group now? Its last rebalances, and whom it waits for at this moment.

For the console: puts together what memory has, what the topic has besides, and what only the group
itself knows, such as who of those it waits for has come already.
"""

import asyncio
from typing import Final

from msgspec.structs import replace

from broker.history_log.reader import ALWAYS, Found, Span, read_events, read_rebalances
from broker.history_log.writer import HistoryLog
from broker.loop.clock import SystemClock
from coordinator.classic.group_view import SESSION_PAUSED, ClassicGroupView, ClassicMemberView
from coordinator.coordinator import GroupCoordinator
from history.causes import WaitEnd
from history.entries import MemberWait, Rebalance
from history.recording.attribution import caller_of
from history.waiting import Awaited, For, Waiting
from protocol.names import GroupId, GroupState, MemberId
from seams.now import Now

GROUPS_PER_SLICE: Final = 500
"""Groups whose memory is looked through before others are served."""


class HistoryView:
    def __init__(
        self, history: HistoryLog, coordinator: GroupCoordinator, clock: SystemClock
    ) -> None:
        self._history = history
        self._coordinator = coordinator
        self._clock = clock

    async def rebalances(
        self, group_id: str, most: int, generation: int | None = None, span: Span = ALWAYS
    ) -> list[Rebalance]:
        """Newest first; of one generation only those that led to it, or that it outlived; those
        that ran at any time of the span. Raises Corrupt.
        """
        remembered = self._remembered(group_id)
        found = [one for one in _of(remembered, generation) if span.overlaps(one)]
        is_all = any(one.began_at_ms < span.since_ms for one in remembered)
        if len(found) >= most or is_all or self._has_generation(remembered, generation):
            return found[:most]
        log = self._history.view(self._history.partition_for(group_id))
        kept = [
            one
            for _, one in await read_rebalances(
                log, group_id, most, generation, self._history.unreadable, span
            )
        ]
        # What was appended a moment ago is not readable before it is stored.
        newest = [one for one in found if one not in kept]
        return (newest + kept)[:most]

    async def rebalances_of_all(self, most: int, span: Span) -> list[tuple[str, Rebalance]]:
        """Of all groups, each with its group's id, newest first. Raises Corrupt."""
        found: dict[tuple[str, int, int, int], tuple[str, Rebalance]] = {}
        for number, group_id in enumerate(self._history.index.groups(), start=1):
            for one in self._remembered(group_id):
                if span.overlaps(one):
                    found[_key(group_id, one)] = (group_id, one)
            if number % GROUPS_PER_SLICE == 0:
                await asyncio.sleep(0)
        for log in self._history.views():
            for group_id, one in await read_rebalances(
                log, None, most, None, self._history.unreadable, span
            ):
                found.setdefault(_key(group_id, one), (group_id, one))
        newest = sorted(found.values(), key=lambda one: -one[1].began_at_ms)
        return newest[:most]

    def _remembered(self, group_id: str) -> list[Rebalance]:
        remembered = self._history.index.rebalances(group_id)
        if remembered and remembered[0].duration_ms is None:
            remembered[0] = self._as_it_is(group_id, remembered[0])
        return remembered

    async def events(
        self, group_id: str | None, most: int, kinds: tuple[type, ...], span: Span = ALWAYS
    ) -> list[Found]:
        """(offset, event), newest first, of one group or of all; without an offset what is not
        written yet: steady commits that are still gathered. Raises Corrupt.
        """
        history = self._history
        gathered: list[Found] = [
            (None, one) for one in history.facts.steady.pending(group_id) if span.holds(one)
        ]
        if group_id is not None:
            log = history.view(history.partition_for(group_id))
            found = await read_events(log, group_id, most, kinds, history.unreadable, span)
            return (gathered + found)[:most]
        of_all: list[Found] = []
        for log in history.views():
            of_all += await read_events(log, None, most, kinds, history.unreadable, span)
        if len(of_all) > most or gathered:
            of_all.sort(key=lambda one: -one[1].at_ms)  # stable: of one log in its order
        gathered.sort(key=lambda one: -one[1].at_ms)
        return (gathered + of_all)[:most]

    @staticmethod
    def _has_generation(remembered: list[Rebalance], generation: int | None) -> bool:
        """Is all that concerns this generation in memory? Then older ones are there as well."""
        return generation is not None and any(
            one.generation_before < generation for one in remembered
        )

    # ------------------------------------------------------------ now

    def _as_it_is(self, group_id: str, running: Rebalance) -> Rebalance:
        """The rebalance that runs, with what only the group and the clock know."""
        facts, now = self._history.facts, self._clock.now()
        began_ms, stable_ms = facts.began_ms(group_id), facts.stable_ms(group_id)
        group = self._coordinator.group(GroupId(group_id))
        waits = running.waited_for
        if group is not None and began_ms is not None and running.generation_after is None:
            waits = tuple(_as_it_waits(wait, group, began_ms) for wait in waits)
        duration_ms = None
        if began_ms is not None and stable_ms is not None:
            duration_ms = stable_ms - began_ms
        return replace(
            running,
            waited_for=waits,
            duration_ms=duration_ms,
            unowned_partition_seconds=facts.unowned_seconds(group_id, now),
        )

    def waiting(self, group_id: str) -> Waiting | None:
        """What the group waits for; None if there is no group, or nothing."""
        group = self._coordinator.group(GroupId(group_id))
        if group is None:
            return None
        now = self._clock.now()
        if group.state is GroupState.PREPARING_REBALANCE:
            return self._waiting_for_joins(group, now)
        if group.state is GroupState.COMPLETING_REBALANCE:
            waits_for = For.DISK if group.assignment_is_stored_now else For.ASSIGNMENT
            member_ids = [group.leader_id] if waits_for is For.ASSIGNMENT else []
        elif group.pending_sync_ids:
            waits_for = For.SYNCS
            member_ids = sorted(group.pending_sync_ids)
        else:
            return None
        members = [group.members[one] for one in member_ids if one in group.members]
        return Waiting(
            str(group.state),
            waits_for,
            group.state_since_ms,
            self._deadline_ms(("sync", group.group_id), now),
            tuple(_awaited(member, now) for member in members),
            len(group.members) - len(group.pending_sync_ids),
        )

    def _waiting_for_joins(self, group: ClassicGroupView, now: Now) -> Waiting:
        missing = [member for member in group.members.values() if member.awaiting_join is None]
        is_initial = not missing and group.previous_state is GroupState.EMPTY
        return Waiting(
            str(group.state),
            For.MORE_MEMBERS if is_initial else For.JOINS,
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
    return [one for one in rebalances if one.generation_after == generation]


def _as_it_waits(wait: MemberWait, group: ClassicGroupView, began_ms: int) -> MemberWait:
    member = group.members.get(MemberId(wait.member.member_id))
    if wait.end is not WaitEnd.WAITING or member is None or member.awaiting_join is None:
        return wait
    return MemberWait(wait.member, max(0, member.join_parked_at_ms - began_ms), WaitEnd.REJOINED)


def _awaited(member: ClassicMemberView, now: Now) -> Awaited:
    who = caller_of(member)
    if member.session_deadline_ms == SESSION_PAUSED:
        return Awaited(who)
    return Awaited(who, now.wall_ms + max(0, member.session_deadline_ms - now.mono_ms))
