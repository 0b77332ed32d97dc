"""Verdict watch: which verdicts hold on which groups, and since when.

Gets every history entry and every commit; the sampler calls `inspect` for each group in its rounds.
A group without recent activity, lag or verdict costs about a microsecond. The verdicts found are
compared with those that held before: each new one and each cleared one is an event. Bounded: beyond
`groups_max` groups, the activity of the group that was idle longest is dropped.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from broker.lag.commit_rates import CommitMeter
from broker.lag.group_observer import GroupObserver
from broker.lag.sampler import YieldIfDue
from broker.lag.skipped_groups import VERDICTS, SkippedGroups
from broker.observe.events import ShellEvent, VerdictCleared, VerdictFound
from coordinator.classic.events import JoinRefused
from coordinator.group_types import AnyGroupView, as_consumer, generation_of
from coordinator.member_identity import MemberIdentity
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    VerdictBegunEntry,
    VerdictEndedEntry,
)
from history.lag.model import LagStatus
from history.lag.store import GroupWindows
from history.verdicts.detect import verdicts_in_steps
from history.verdicts.model import (
    Verdict,
    VerdictKind,
    VerdictLimits,
)
from history.verdicts.recent_activity import RecentActivity, RefusedJoin
from protocol.names import UNKNOWN_MEMBER_ID, GroupState, MemberId
from seams.group_configs import BrokerGroupConfigs, GroupConfigs
from seams.now import Now
from seams.topics_view import TopicsView

OF_GENERATION: Final = frozenset(
    {
        VerdictKind.TWO_OWNERS,
        VerdictKind.ORPHAN_PARTITIONS,
        VerdictKind.SKEWED_ASSIGNMENT,
        VerdictKind.NEEDLESS_MOVES,
    }
)
"""Verdicts on an assignment: they hold for its generation only."""

RecordEntry = Callable[[HistoryEntry, Now], None]


def record_nothing(_entry: HistoryEntry, _now: Now) -> None:
    """`record` of a daemon without a history."""


class ActiveVerdict(NamedTuple):
    """A verdict that holds: since when, and for which generation of the group."""

    verdict: Verdict
    since_ms: int
    generation: int = -1

    def is_current(self, group: AnyGroupView | None) -> bool:
        """Whether it may still hold: the group may have changed since the last inspection."""
        if group is None:
            return False
        match self.verdict.kind:
            case VerdictKind.STUCK_GROUP:
                evidence = self.verdict.evidence
                return (group.state.value, group.state_since_ms) == (
                    evidence["state"],
                    evidence["state_since_ms"],
                )
            case VerdictKind.NO_PROGRESS:
                return self.verdict.subject in group.members
            case VerdictKind.UNREVOKED_PARTITIONS:
                consumers = as_consumer(group)
                member_id = MemberId(self.verdict.subject)
                member = None if consumers is None else consumers.members.get(member_id)
                return member is not None and bool(member.current.pending_revocation)
            case kind if kind in OF_GENERATION:
                return generation_of(group) == self.generation
            case _:
                return True


class VerdictWatch:
    """The sampler's Watcher."""

    def __init__(
        self,
        topics: TopicsView,
        limits: VerdictLimits,
        groups_max: int,
        observe: Callable[[ShellEvent], None],
        record: RecordEntry = record_nothing,
        skipped: SkippedGroups | None = None,
        configs: GroupConfigs | None = None,
    ) -> None:
        """`record` writes the beginning and end of a verdict into the group's history."""
        self.limits = limits
        self.meter = CommitMeter()
        self.found: dict[str, int] = {}  # kind -> how often since the start
        self.forgotten = 0  # groups whose activity was dropped beyond `groups_max`
        self.group_of: Callable[[str], AnyGroupView | None] | None = None  # as it is now
        self._observer = GroupObserver(topics, configs or BrokerGroupConfigs())
        self._groups_max = groups_max
        self._observe = observe
        self._record = record
        self._skipped = skipped or SkippedGroups(observe)
        self._activities: OrderedDict[str, RecentActivity] = OrderedDict()
        self._active: dict[str, dict[tuple[VerdictKind, str], ActiveVerdict]] = {}

    # ------------------------------------------------------------ active verdicts

    def active(self, group_id: str | None = None) -> Iterator[ActiveVerdict]:
        """The verdicts on one group, or on all; the oldest first."""
        groups = (
            list(self._active.values()) if group_id is None else [self._active.get(group_id, {})]
        )
        current = [
            active
            for of_group in groups
            for active in of_group.values()
            if self.group_of is None or active.is_current(self.group_of(active.verdict.group_id))
        ]
        return iter(sorted(current, key=lambda active: (active.since_ms, active.verdict.group_id)))

    def counts(self) -> dict[str, int]:
        """How many verdicts of each kind hold now."""
        counts = dict.fromkeys((kind.value for kind in VerdictKind), 0)
        for of_group in self._active.values():
            for kind, _ in of_group:
                counts[kind.value] += 1
        return counts

    @property
    def groups_watched(self) -> int:
        return len(self._activities)

    # ------------------------------------------------------------ input

    def on_entry(self, event: HistoryEntry) -> None:
        """Called in the turn of the event."""
        if isinstance(event, GroupDeletedEntry):
            self._activities.pop(
                event.group_id, None
            )  # a new group of this name starts without activity
        elif not isinstance(
            event, VerdictBegunEntry | VerdictEndedEntry
        ):  # written by the watch itself
            self._activity(event.group_id).apply(event, self.limits.window_ms)

    def join_refused(self, event: JoinRefused) -> None:
        client = MemberIdentity(
            UNKNOWN_MEMBER_ID, None, event.client_id, event.client_host, event.principal
        )
        refusal = RefusedJoin(event.at_ms, client, event.offered, event.supported)
        self._activity(event.group_id).refuse(refusal)

    def _activity(self, group_id: str) -> RecentActivity:
        activity = self._activities.get(group_id)
        if activity is None:
            if len(self._activities) >= self._groups_max:
                self._activities.popitem(last=False)
                self.forgotten += 1
            activity = self._activities[group_id] = RecentActivity()
        else:
            self._activities.move_to_end(group_id)
        return activity

    # ------------------------------------------------------------ inspection

    async def inspect(
        self,
        group: AnyGroupView,
        windows: GroupWindows | None,
        now: Now,
        yield_if_due: YieldIfDue,
    ) -> None:
        """One group, in the sampler's round."""
        if not self._is_due(group, windows, now.wall_ms):
            return
        before = _phase(group)
        observed = await self._observer.observe(
            group, windows, self.meter.rates_of(group.group_id), now, yield_if_due
        )
        if observed is None or before != _phase(group):
            return  # it changed during the inspection: the next round inspects it again
        group_id = group.group_id
        verdicts: list[Verdict] = []
        for verdict in verdicts_in_steps(
            observed,
            self._activity(group_id),
            self.limits,
            lambda error: self._skipped(VERDICTS, group_id, error),
        ):
            if verdict is None:
                await yield_if_due()
            else:
                verdicts.append(verdict)
        if before == _phase(group):
            self._compare(group_id, verdicts, now, generation_of(group))

    def _is_due(self, group: AnyGroupView, windows: GroupWindows | None, now_ms: int) -> bool:
        group_id = group.group_id
        if group_id in self._activities or group_id in self._active:
            return True
        if self.meter.busy and self.meter.rates_of(group_id):
            return True
        if not group.members:
            return False
        if group.state is not GroupState.STABLE:
            return True
        if windows is None:
            return False
        still_ms = now_ms - windows.still_since_ms if windows.still_since_ms else 0
        return windows.status is not LagStatus.OK or still_ms >= self.limits.no_progress_ms

    async def end_round(self, alive: set[str], now: Now, yield_if_due: YieldIfDue) -> None:
        """Clear the verdicts on deleted groups; stop watching groups idle for a whole window."""
        for group_id in [g for g in (*self._active, *self._activities) if g not in alive]:
            self._compare(group_id, [], now)
            self._activities.pop(group_id, None)
        await yield_if_due()
        horizon_ms = now.wall_ms - self.limits.window_ms
        quiet = [
            group_id
            for group_id, activity in self._activities.items()
            if activity.changed_at_ms < horizon_ms and group_id not in self._active
        ]
        for group_id in quiet:
            del self._activities[group_id]
        for _ in self.meter.end_interval(now.mono_ms, self.limits.commits_per_second):
            await yield_if_due()

    def _compare(
        self, group_id: str, verdicts: list[Verdict], now: Now, generation: int = -1
    ) -> None:
        now_ms = now.wall_ms
        before = self._active.get(group_id, {})
        active: dict[tuple[VerdictKind, str], ActiveVerdict] = {}
        for verdict in verdicts:
            key = (verdict.kind, verdict.subject)
            known = before.get(key)
            since_ms = now_ms if known is None else known.since_ms
            active[key] = ActiveVerdict(verdict, since_ms, generation)
            if known is None:
                self.found[verdict.kind.value] = self.found.get(verdict.kind.value, 0) + 1
                self._observe(VerdictFound(verdict))
                texts = (verdict.kind.value, verdict.subject, verdict.summary, verdict.remedy)
                self._record(VerdictBegunEntry(group_id, now_ms, *texts), now)
        for key, ended in before.items():
            if key not in active:
                lasted_ms = now_ms - ended.since_ms
                self._observe(VerdictCleared(ended.verdict, lasted_ms))
                kind, subject = key
                self._record(
                    VerdictEndedEntry(group_id, now_ms, kind.value, subject, lasted_ms), now
                )
        if active:
            self._active[group_id] = active
        else:
            self._active.pop(group_id, None)


def _phase(group: AnyGroupView) -> tuple[GroupState, int, int]:
    """What must not change while a group is inspected."""
    return group.state, generation_of(group), len(group.members)
